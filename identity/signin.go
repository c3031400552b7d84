package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"moorage"
)

// SignIn is a user's sign-in in progress. Only the browser that began it may hold its State, Nonce
// and Verifier, and the browser must not be able to read or change them.
type SignIn struct {
	Issuer   string `json:"issuer"`   // the alias
	Redirect string `json:"redirect"` // where the issuer sends the browser
	State    string `json:"state"`    // proves that the answer belongs to this sign-in
	Nonce    string `json:"nonce"`    // proves that the ID token was made for this sign-in
	Verifier string `json:"verifier"` // proves that this server requested the code
}

// secretLetters is the length of the secrets of a SignIn. It is the minimum that RFC 7636 allows
// for a verifier, and gives more than 256 bits.
const secretLetters = 43

// scopeOpenID is the scope that makes an issuer return an ID token.
const scopeOpenID = "openid"

// SignInIssuers returns the aliases of the issuers at which users can sign in, sorted.
func (a *Authenticator) SignInIssuers() []string {
	var aliases []string
	for _, each := range a.issuers {
		if each.config.SignIn.ID != "" {
			aliases = append(aliases, each.config.Alias)
		}
	}
	slices.Sort(aliases)
	return aliases
}

// BeginSignIn begins a user's sign-in at the issuer with this alias. It returns the address at the
// issuer to which the user's browser must go. From there, the issuer redirects the browser to
// redirect, with parameters for FinishSignIn. Source: OpenID Connect Core 1.0, 3.1, with PKCE of
// RFC 7636.
//
// Errors: KindNotFound if there is no such issuer at which users can sign in. KindUnavailable if
// the issuer's addresses are not known.
func (a *Authenticator) BeginSignIn(ctx context.Context, alias, redirect string) (begun SignIn, address string,
	err error) {
	const op = "identity.BeginSignIn"
	at, err := a.signInIssuer(alias)
	if err != nil {
		return SignIn{}, "", err
	}
	begun = SignIn{Issuer: alias, Redirect: redirect}
	for _, secret := range []*string{&begun.State, &begun.Nonce, &begun.Verifier} {
		if *secret, err = drawText(a.config.Random, secretLetters); err != nil {
			return SignIn{}, "", moorage.E(op, alias, moorage.KindInternal, err)
		}
	}
	client, _, err := at.signInClient(ctx, redirect)
	if err != nil {
		return SignIn{}, "", err
	}
	return begun, client.AuthCodeURL(begun.State, oauth2.S256ChallengeOption(begun.Verifier),
		oauth2.SetAuthURLParam("nonce", begun.Nonce)), nil
}

// FinishSignIn returns the token with which the user that began the sign-in can authenticate.
// returned holds the parameters with which the issuer redirected the browser. The token is not yet
// checked: Authenticate decides whether it is accepted.
//
// Errors: KindNotAuthorized, with a message for the user, if the parameters do not belong to this
// sign-in, or if the issuer refused. KindUnavailable if the issuer does not answer.
func (a *Authenticator) FinishSignIn(ctx context.Context, begun SignIn, returned url.Values) (string, error) {
	at, err := a.signInIssuer(begun.Issuer)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.FetchTimeout)
	defer cancel()
	client, found, err := at.signInClient(ctx, begun.Redirect)
	if err != nil {
		return "", err
	}
	// The state is checked first, because a stranger's page can send a browser here.
	if begun.State == "" || subtle.ConstantTimeCompare([]byte(begun.State), []byte(returned.Get("state"))) != 1 {
		return "", errSignIn(nil, "This answer does not belong to the sign-in that this browser began last. "+
			"Begin again")
	}
	// The answer of another issuer must not be accepted as this issuer's, because its code would
	// then be sent to this issuer. Source: RFC 9207, and RFC 9700, 4.4.
	if name := returned.Get("iss"); name != at.config.URL && (name != "" || found.IsNamed) {
		return "", errSignIn(nil, "This answer is not of the identity provider %s. Begin again", begun.Issuer)
	}
	if code := returned.Get("error"); code != "" {
		return "", errSignIn(nil, "The identity provider %s refused: %s", begun.Issuer, code)
	}
	if returned.Get("code") == "" {
		return "", errSignIn(nil, "The identity provider %s answered without a code. Begin again", begun.Issuer)
	}
	tokens, err := client.Exchange(context.WithValue(ctx, oauth2.HTTPClient, at.fetcher.client), returned.Get("code"),
		oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		return "", at.exchangeError(ctx, err)
	}
	idToken, _ := tokens.Extra("id_token").(string)
	if err := at.checkIDToken(ctx, idToken, begun.Nonce); err != nil {
		return "", at.idTokenError(ctx, err)
	}
	if at.config.SignIn.Token == TokenID {
		return idToken, nil
	}
	return tokens.AccessToken, nil
}

// signInIssuer returns the issuer with this alias, if users can sign in there.
func (a *Authenticator) signInIssuer(alias string) (*issuer, error) {
	for _, each := range a.issuers {
		if each.config.Alias == alias && each.config.SignIn.ID != "" {
			return each, nil
		}
	}
	return nil, moorage.Errorf(moorage.KindNotFound, "There is no identity provider %s to sign in at", alias)
}

// errSignIn returns the error for a refused sign-in, with a message for the user.
func errSignIn(cause error, format string, args ...any) error {
	return &moorage.Error{Kind: moorage.KindNotAuthorized, Message: fmt.Sprintf(format, args...), Err: cause}
}

// signInClient returns this server's client at the issuer, and the issuer's discovery document.
func (i *issuer) signInClient(ctx context.Context, redirect string) (*oauth2.Config, *discovery, error) {
	found := i.discovered()
	if found == nil {
		i.renew(ctx)
		if found = i.discovered(); found == nil {
			return nil, nil, i.noSignIn(ctx, errors.New("its discovery document is not known"))
		}
	}
	for _, endpoint := range []string{found.Authorize, found.Token} {
		if err := checkEndpoint(endpoint); err != nil {
			return nil, nil, i.noSignIn(ctx, err)
		}
	}
	scopes := i.config.SignIn.Scopes
	if len(scopes) == 0 {
		scopes = []string{scopeOpenID}
	}
	client := &oauth2.Config{
		ClientID: i.config.SignIn.ID, RedirectURL: redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: found.Authorize, TokenURL: found.Token, AuthStyle: oauth2.AuthStyleInParams},
	}
	if file := i.config.SignIn.SecretFile; file != "" {
		secret, err := readBounded(file)
		if err != nil {
			return nil, nil, i.noSignIn(ctx, fmt.Errorf("read console-client-secret-file: %w", err))
		}
		client.ClientSecret = strings.TrimSpace(string(secret))
		// Without a list of methods, an issuer accepts the header. Source: OpenID Connect
		// Discovery.
		if len(found.Methods) == 0 || slices.Contains(found.Methods, "client_secret_basic") {
			client.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
		}
	}
	return client, found, nil
}

func (i *issuer) discovered() *discovery {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.found
}

// noSignIn returns the error for a sign-in that is impossible at the moment. The user cannot fix
// the cause, so the cause goes to the log.
func (i *issuer) noSignIn(ctx context.Context, cause error) error {
	i.logger.LogAttrs(ctx, slog.LevelWarn, "people cannot sign in at an issuer",
		slog.String("error", moorage.OneLine(cause.Error())))
	return unavailable("sign in at issuer "+i.config.Alias, cause)
}

// exchangeError returns the error for a code that the issuer did not exchange. The issuer's message
// goes to the log.
func (i *issuer) exchangeError(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return i.noSignIn(ctx, err)
	case refused.ErrorCode == "": // its text has the whole answer, which may repeat the request
		return i.noSignIn(ctx, fmt.Errorf("the token endpoint answers %s", refused.Response.Status))
	}
	i.logger.LogAttrs(ctx, slog.LevelWarn, "an issuer refused the code of a sign-in",
		slog.String("error", moorage.OneLine(refused.ErrorCode+" "+refused.ErrorDescription)))
	return errSignIn(err, "The identity provider %s refused: %s. Begin again", i.config.Alias, refused.ErrorCode)
}

// checkIDToken returns an error unless text is an ID token of the issuer, made for the sign-in with
// this nonce. Source: OpenID Connect Core 1.0, 3.1.3.7.
func (i *issuer) checkIDToken(ctx context.Context, text, nonce string) error {
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	if from, _ := t.claims.text("iss"); from != i.config.URL {
		return refuse(reasonIssuer)
	}
	if _, err := i.checkSignature(ctx, t); err != nil {
		return err
	}
	if _, err := t.claims.checkTimes(i.now(), lifetimeMax, leeway); err != nil {
		return err
	}
	audiences, err := t.claims.texts("aud")
	party, isNamed := t.claims.text("azp")
	if err != nil || !slices.Contains(audiences, i.config.SignIn.ID) || isNamed && party != i.config.SignIn.ID {
		return refuse(reasonAudience)
	}
	if given, _ := t.claims.text("nonce"); nonce == "" || given != nonce {
		return refuse(reasonNonce)
	}
	return nil
}

// idTokenError returns the error for an ID token that checkIDToken did not accept.
func (i *issuer) idTokenError(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	i.logger.LogAttrs(ctx, slog.LevelWarn, "an issuer returned an ID token that does not fit a sign-in",
		slog.String("reason", refused.reason))
	return errSignIn(err, "The identity provider %s returned an ID token that does not fit this sign-in (%s). "+
		"Begin again", i.config.Alias, refused.reason)
}
