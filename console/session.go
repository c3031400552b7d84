package console

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/loopback"
	"moorage/internal/term"
	"moorage/internal/web"
	"moorage/management/client"
)

// session is what a cookie has, encrypted: the token of a visitor, and when it ends.
type session struct {
	Token   string    `json:"token"`
	Name    string    `json:"name"`             // of the visitor, as the API has it
	Renew   time.Time `json:"renew,omitzero"`   // when to ask for another token; zero: never
	Expires time.Time `json:"expires,omitzero"` // of the token; zero: not known
	Ends    time.Time `json:"ends"`             // of the session
}

const (
	// sessionLife is how long a session lasts, unless its token or key ends before.
	sessionLife = 8 * time.Hour
	// cookieBytesMax is the longest cookie that every browser keeps.
	cookieBytesMax = 4000
	// The names of the cookie. Browsers accept the first only over TLS. The second is for
	// connections on one machine.
	cookieSecure, cookieLocal = "__Host-moorage", "moorage"
)

// sealCookie encrypts content for a cookie called name. key has 32 bytes. If the cookie would be
// too long for browsers, value is empty and ok is false.
func sealCookie(key []byte, name string, content any) (value string, ok bool, err error) {
	plain, err := json.Marshal(content)
	if err != nil {
		return "", false, err
	}
	box, err := boxOf(key)
	if err != nil {
		return "", false, err
	}
	nonce := make([]byte, box.NonceSize(), box.NonceSize()+len(plain)+box.Overhead())
	rand.Read(nonce)
	sealed := base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, plain, []byte(name)))
	return sealed, len(sealed) <= cookieBytesMax, nil
}

// openCookie decrypts the cookie called name into content. It returns false if the cookie was not
// sealed with key under that name.
func openCookie(key []byte, name, value string, content any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return false
	}
	box, err := boxOf(key)
	if err != nil || len(sealed) < box.NonceSize() {
		return false
	}
	plain, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], []byte(name))
	return err == nil && json.Unmarshal(plain, content) == nil
}

// hasEnded reports whether a session or its token has ended.
func (s session) hasEnded(now time.Time) bool {
	return !now.Before(s.Ends) || !s.Expires.IsZero() && !now.Before(s.Expires)
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// channel is how a browser reaches the server.
type channel struct {
	isTLS bool // the connection of the browser is encrypted
	// isLocal means that the browser is on the server's machine, and uses a name that only works
	// there. No proxy is between them, as far as a server can know.
	isLocal bool
}

// channelOf returns how the browser that sent r reaches the server.
func (c *console) channelOf(r *http.Request) channel {
	isLocal := web.IsDirect(r) && loopback.Is(r.Host) && !c.config.IsFromProxy(r)
	return channel{isTLS: r.TLS != nil || c.config.IsEncrypted(r), isLocal: isLocal}
}

// cookie returns the name of the session's cookie; empty if the channel must not carry it.
func (ch channel) cookie() string {
	switch {
	case ch.isTLS:
		return cookieSecure
	case ch.isLocal:
		return cookieLocal
	}
	return ""
}

// make returns the session's cookie with a value. An empty value deletes it.
func (ch channel) make(value string) *http.Cookie { return ch.named(ch.cookie(), value, sessionLife) }

// named returns a cookie with a value for as long as life. An empty value deletes it.
func (ch channel) named(name, value string, life time.Duration) *http.Cookie {
	made := &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: ch.isTLS, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if value == "" {
		made.MaxAge = -1
	}
	return made
}

// resume finds the session of the visitor that sent r. It renews a token that ends soon.
func (c *console) resume(r *http.Request, v *visit) error {
	v.channel = c.channelOf(r)
	cookie, err := r.Cookie(v.channel.cookie())
	if !c.config.Authenticates || err != nil || v.channel.cookie() == "" {
		return nil
	}
	key, err := c.config.SessionKey(r.Context())
	if err != nil {
		return err
	}
	var found session
	if !openCookie(key, cookie.Name, cookie.Value, &found) || found.hasEnded(v.now) {
		v.cookies = append(v.cookies, v.channel.make(""))
		return nil
	}
	v.token, v.name = found.Token, found.Name
	if found.Renew.IsZero() || v.now.Before(found.Renew) {
		return nil
	}
	renewed, err := exchange(r.Context(), v, url.Values{
		"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":      {found.Token},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	})
	if err != nil {
		return nil // the present token is good until it expires
	}
	renewed.Ends = found.Ends
	return v.keep(key, renewed)
}

// keep makes s the session of the visitor.
func (v *visit) keep(key []byte, s session) error {
	sealed, fits, err := sealCookie(key, v.channel.cookie(), s)
	if err != nil {
		return err
	}
	if !fits {
		return &client.Error{Code: http.StatusBadRequest,
			Message: "The token is too long for a browser's cookie. Sign in with a key."}
	}
	v.token, v.name = s.Token, s.Name
	v.cookies = append(v.cookies, v.channel.make(sealed))
	return nil
}

// tokenBytesMax bounds the answer of the token endpoint.
const tokenBytesMax = 64 << 10

// exchange asks the token endpoint for a token.
func exchange(ctx context.Context, v *visit, form url.Values) (session, error) {
	headers := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	answer, err := v.api.Send(ctx, http.MethodPost, client.RootIceberg+"/oauth/tokens", headers,
		strings.NewReader(form.Encode()))
	if err != nil {
		return session{}, err
	}
	defer answer.Body.Close()
	var token struct {
		Token   string `json:"access_token"`
		Expires int64  `json:"expires_in"` // seconds
		Why     string `json:"error_description"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, tokenBytesMax)).Decode(&token); err != nil {
		return session{}, err
	}
	if answer.StatusCode != http.StatusOK {
		return session{}, &client.Error{Code: answer.StatusCode, Type: "NotAuthorizedException", Message: token.Why}
	}
	life := time.Duration(token.Expires) * time.Second
	return session{
		Token: token.Token, Name: claimsOf(token.Token).Subject,
		Renew: v.now.Add(life / 2), Expires: v.now.Add(life), Ends: v.now.Add(sessionLife),
	}, nil
}

// loginPage asks for a key.
type loginPage struct {
	back    string
	why     string // why the visitor is asked again
	channel channel
	// providers are the names of the identity providers at which the visitor can sign in.
	providers []string
}

// loadLogin loads the page that asks for a key.
func loadLogin(_ context.Context, v *visit) (*page, error) {
	return v.loginPage(v.query.Get(fieldBack), "").page(), nil
}

// loginPage returns the page that asks the visitor to sign in. why is empty at the first time.
func (v *visit) loginPage(back, why string) loginPage {
	return loginPage{back: back, why: why, channel: v.channel, providers: v.providers.Names()}
}

func (m loginPage) page() *page {
	return &page{title: "Sign in", body: m.node(), isBare: true}
}

// node returns the page.
func (m loginPage) node() g.Node {
	title := h.H1(g.Text("Sign in to Moorage"))
	if m.channel.cookie() == "" {
		return h.Div(h.Class("login"), title,
			h.P(h.Class("warning"), g.Text(needsTLS+" Without it, others on the network could read your key.")),
			command("moorage", "serve", "--tls-cert", "FILE", "--tls-key", "FILE").node())
	}
	return h.Div(h.Class("login"), title,
		g.If(m.why != "", h.P(h.Class("warning"), h.Role("alert"), text(m.why))),
		g.Map(m.providers, func(provider string) g.Node {
			return act(to(placeProvider, client.Object{}, fieldProvider, provider, fieldBack, m.back),
				h.Button(h.Class("primary"), g.Text("Sign in with "), name(provider)))
		}),
		g.If(len(m.providers) > 0, h.P(h.Class("or"), g.Text("or"))),
		act(to(placeLogin, client.Object{}, fieldBack, m.back),
			h.Label(h.For("key"), g.Text("API key, or a token of your identity provider")),
			h.Input(h.ID("key"), h.Name("credential"), h.Type("password"), h.Required(), h.AutoComplete("off"),
				g.If(len(m.providers) == 0, h.AutoFocus()),
				g.Attr("spellcheck", "false")),
			h.Button(g.If(len(m.providers) == 0, h.Class("primary")), g.Text("Sign in"))),
		h.P(h.Class("faint"), g.Text("The browser keeps an encrypted token for at most 8 hours, "+
			"not the key. An administrator makes a key:")),
		command("moorage", "key", "create", "ann").node())
}

// needsTLS is what visitors read who cannot sign in, because others could read their credentials.
const needsTLS = "Signing in needs TLS, or a TLS proxy in front of the server."

// afterLogin returns the page to show after a visitor has signed in.
func afterLogin(address string) target {
	next := back(address)
	if next.place == placeLogin {
		return to(placeHome, client.Object{})
	}
	return next
}

// changeLogin begins a session with the key or the token in the form.
func changeLogin(ctx context.Context, v *visit) (target, error) {
	next := afterLogin(v.form.Get(fieldBack))
	credential := strings.TrimSpace(v.form.Get("credential"))
	if v.channel.cookie() == "" {
		return target{}, &client.Error{Code: http.StatusForbidden, Message: needsTLS}
	}
	begun, err := exchange(ctx, v, url.Values{"grant_type": {"client_credentials"}, "client_secret": {credential}})
	if statusOf(err) == http.StatusUnauthorized || statusOf(err) == http.StatusBadRequest {
		begun, err = tokenSession(ctx, v, credential)
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == http.StatusUnauthorized {
		return target{}, &refusedLogin{v.loginPage(v.form.Get(fieldBack),
			"The server does not know this key or token, or it has expired."), http.StatusUnauthorized}
	}
	if err != nil {
		return target{}, err
	}
	key, err := v.sessionKey(ctx)
	if err != nil {
		return target{}, err
	}
	return next, v.keep(key, begun)
}

// tokenSession begins a session with a token of an identity provider, if the API accepts it.
func tokenSession(ctx context.Context, v *visit, token string) (session, error) {
	v.token = token
	var state client.Access
	err := v.get(ctx, "/access", nil, &state)
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable:
		err = nil // the operation refuses the request, so the token was accepted before
	}
	if err != nil {
		v.token = ""
		return session{}, err
	}
	name := cmp.Or(state.Caller, claimsOf(token).Subject)
	return session{Token: token, Name: name, Expires: expiryOf(token), Ends: v.now.Add(sessionLife)}, nil
}

// refusedLogin is the answer to a sign-in that failed: the form again.
type refusedLogin struct {
	form   loginPage
	status int
}

// Error implements error.
func (e *refusedLogin) Error() string { return e.form.why }

// claims has what a page shows of a token. The API verifies tokens; these claims decide nothing.
type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"`
}

// claimsOf reads the claims of a token without verifying it.
func claimsOf(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(content, &c) != nil {
		return claims{}
	}
	return c
}

// expiryOf returns when a token expires, or the zero time if it does not say so.
func expiryOf(token string) time.Time {
	if c := claimsOf(token); c.Expires > 0 {
		return time.Unix(c.Expires, 0)
	}
	return time.Time{}
}

// changeLogout ends the session in the visitor's browser.
func changeLogout(_ context.Context, v *visit) (target, error) {
	if v.channel.cookie() != "" {
		v.cookies = append(v.cookies, v.channel.make(""))
	}
	return to(placeLogin, client.Object{}), nil
}

// visitor returns the name of the visitor for the top of a page, with the way out.
func (f frame) visitor() g.Node {
	if f.who == "" {
		return nil
	}
	return h.Div(h.Class("session"), h.Span(h.Class("faint short"), h.Title(term.Clean(f.who)), name(f.who)),
		act(to(placeLogout, client.Object{}), h.Button(g.Text("Sign out"))))
}
