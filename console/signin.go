package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/management/client"
)

// Providers signs visitors in at identity providers, by OpenID Connect. All methods are safe for
// concurrent use.
type Providers interface {
	// Names returns the names of the providers, sorted.
	Names() []string
	// Begin begins a sign-in at a provider. It returns the address at the provider to which the
	// browser must go. The provider sends the browser to redirect.
	Begin(ctx context.Context, provider, redirect string) (begun SignIn, address string, err error)
	// Finish returns the token of a visitor. returned are the parameters with which the provider
	// sent the browser back. The token is not yet checked.
	Finish(ctx context.Context, begun SignIn, returned url.Values) (token string, err error)
}

// SignIn is a sign-in at a provider that has begun. The browser keeps it encrypted.
type SignIn struct {
	Issuer   string `json:"issuer"` // name of the provider
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// noProviders is Providers of a server without identity providers.
type noProviders struct{}

// Names returns nil.
func (noProviders) Names() []string { return nil }

// Begin returns an error.
func (noProviders) Begin(context.Context, string, string) (SignIn, string, error) {
	return SignIn{}, "", moorage.Errorf(moorage.KindNotFound, "There is no identity provider to sign in at")
}

// Finish returns an error.
func (noProviders) Finish(context.Context, SignIn, url.Values) (string, error) {
	return "", moorage.Errorf(moorage.KindNotFound, "There is no identity provider to sign in at")
}

// begunSignIn is what a cookie has, encrypted, while a visitor is at a provider.
type begunSignIn struct {
	SignIn
	Back string    `json:"back"` // address of the page to show then
	Ends time.Time `json:"ends"`
}

// signInLife is how long a visitor has to sign in at a provider.
const signInLife = 10 * time.Minute

// signInCookie returns the name of the cookie of a sign-in that has begun.
func (ch channel) signInCookie() string { return ch.cookie() + "-login" }

// fieldProvider is the field of a form with the name of a provider.
const fieldProvider = "provider"

// showProvider begins a sign-in at the provider in the form, and sends the browser there. It sends
// the browser by a page, because some browsers let the answer to a form only lead to pages of the
// console.
func showProvider(ctx context.Context, v *visit) (*page, error) {
	if v.channel.cookie() == "" {
		return nil, &client.Error{Code: http.StatusForbidden, Message: needsTLS}
	}
	provider, back := v.form.Get(fieldProvider), v.form.Get(fieldBack)
	begun, address, err := v.providers.Begin(ctx, provider, v.uri+Root+returnPath+url.PathEscape(provider))
	if err != nil {
		return nil, v.refusedSignIn(back, err)
	}
	key, err := v.sessionKey(ctx)
	if err != nil {
		return nil, err
	}
	cookie := v.channel.signInCookie()
	sealed, fits, err := sealCookie(key, cookie, begunSignIn{begun, back, v.now.Add(signInLife)})
	if err != nil {
		return nil, err
	}
	if !fits { // the address of the page to show then is too long
		sealed, _, err = sealCookie(key, cookie, begunSignIn{begun, "", v.now.Add(signInLife)})
		if err != nil {
			return nil, err
		}
	}
	v.cookies = append(v.cookies, v.channel.named(cookie, sealed, signInLife))
	return &page{
		title: "Sign in", isBare: true, next: address,
		body: h.Div(h.Class("login"), h.H1(g.Text("Sign in with "), name(provider)),
			h.P(outside(address, g.Text("Go on to "), name(provider)))),
	}, nil
}

// finishSignIn answers a browser that a provider has sent back. Unlike other requests with GET it
// changes something: it begins a session. The state in the cookie shows that this browser has
// asked for it.
func (c *console) finishSignIn(w http.ResponseWriter, r *http.Request, v *visit, provider string) error {
	v.here = "" // the address has the code of the provider, which no page must repeat
	next, err := v.signIn(r, provider)
	if err != nil {
		return c.finish(w, r, v, nil, err)
	}
	return v.sendTo(w, next)
}

// signIn begins a session with the token that a provider gives, and returns the page to show then.
func (v *visit) signIn(r *http.Request, provider string) (target, error) {
	ctx := r.Context()
	cookie, err := r.Cookie(v.channel.signInCookie())
	if err != nil || v.channel.cookie() == "" {
		return target{}, v.refusedSignIn("", errNotBegun())
	}
	v.cookies = append(v.cookies, v.channel.named(cookie.Name, "", 0))
	key, err := v.sessionKey(ctx)
	if err != nil {
		return target{}, err
	}
	var begun begunSignIn
	isOurs := openCookie(key, cookie.Name, cookie.Value, &begun) && v.now.Before(begun.Ends)
	if !isOurs || begun.Issuer != provider {
		return target{}, v.refusedSignIn("", errNotBegun())
	}
	token, err := v.providers.Finish(ctx, begun.SignIn, v.query)
	if err != nil {
		return target{}, v.refusedSignIn(begun.Back, err)
	}
	made, err := tokenSession(ctx, v, token)
	if statusOf(err) == http.StatusUnauthorized {
		return target{}, v.refusedSignIn(begun.Back, moorage.Errorf(moorage.KindNotAuthorized,
			"The server does not accept the token of %s. An administrator finds the reason in the audit log", provider))
	}
	if err != nil {
		return target{}, err
	}
	return afterLogin(begun.Back), v.keep(key, made)
}

// errNotBegun returns the refusal of a browser that comes back from a provider without a sign-in.
func errNotBegun() error {
	return moorage.Errorf(moorage.KindNotAuthorized,
		"This browser has begun no sign-in in the last ten minutes, or another one since. Begin again")
}

// refusedSignIn returns the answer to a sign-in that failed: the form, with what happened.
func (v *visit) refusedSignIn(back string, err error) error {
	v.token, v.name = "", ""
	refused, ok := errors.AsType[*moorage.Error](err)
	if !ok || refused.Message == "" {
		return err
	}
	status := map[moorage.Kind]int{
		moorage.KindNotAuthorized: http.StatusUnauthorized, moorage.KindNotFound: http.StatusNotFound,
	}[refused.Kind]
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	return &refusedLogin{v.loginPage(back, refused.Message+"."), status}
}
