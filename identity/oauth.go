package identity

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"moorage"
)

// Values in requests to the token endpoint.
const (
	grantCredentials = "client_credentials"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccess       = "urn:ietf:params:oauth:token-type:access_token"
	typeJWT          = "urn:ietf:params:oauth:token-type:jwt"
	scopeRole        = "PRINCIPAL_ROLE:" // followed by a role, or scopeAll
	scopeAll         = "ALL"
	scopeDefault     = "catalog"
)

// Error codes of the token endpoint. Source: RFC 6749, 5.2.
const (
	codeRequest     = "invalid_request"
	codeClient      = "invalid_client"
	codeGrant       = "invalid_grant"
	codeUnallowed   = "unauthorized_client"
	codeUnsupported = "unsupported_grant_type"
	codeScope       = "invalid_scope"
)

// OAuthError explains why the token endpoint refuses to issue a token.
type OAuthError struct {
	Status      int
	Code        string // as in RFC 6749, 5.2
	Description string // text for the client
}

// Error returns the code and the description.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

func oauthErrorf(code, format string, args ...any) error {
	status := http.StatusBadRequest
	if code == codeClient {
		status = http.StatusUnauthorized
	}
	return &OAuthError{Status: status, Code: code, Description: fmt.Sprintf(format, args...)}
}

func oauthTooMany() error {
	return &OAuthError{http.StatusTooManyRequests, codeRequest, "Too many invalid credentials come from this address"}
}

// TokenAnswer is the body of a successful response of the token endpoint.
type TokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
	IssuedType  string `json:"issued_token_type"`
	Scope       string `json:"scope"`
}

// tokenRequest is a request to the token endpoint.
type tokenRequest struct {
	form    url.Values
	header  string // the Authorization header; may be empty
	address string
	client  string
}

// Token answers a request to the token endpoint. body is the body of r.
//
// Errors: *OAuthError; KindUnavailable if the store does not answer.
func (a *Authenticator) Token(r *http.Request, body []byte) (TokenAnswer, error) {
	request, err := a.parseTokenRequest(r, body)
	if err != nil {
		return TokenAnswer{}, err
	}
	answer, err := a.token(r.Context(), request)
	refused, ok := errors.AsType[*OAuthError](err)
	switch {
	case ok && refused.Code == codeClient, ok && refused.Code == codeGrant:
		a.config.Refused(request.address, "token endpoint: "+refused.Code)
		if !a.failures.add(request.address) {
			err = oauthTooMany()
		}
	case moorage.KindOf(err) == moorage.KindTooManyRequests:
		err = oauthTooMany()
	}
	return answer, err
}

// parseTokenRequest reads a request to the token endpoint.
func (a *Authenticator) parseTokenRequest(r *http.Request, body []byte) (tokenRequest, error) {
	request := tokenRequest{address: a.addressOf(r), client: moorage.Cut(r.UserAgent(), moorage.ClientBytesMax)}
	if r.URL.RawQuery != "" {
		return request, oauthErrorf(codeRequest, "Nothing may be in the query: proxies write it into their logs")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return request, oauthErrorf(codeRequest, "The body must be application/x-www-form-urlencoded")
	}
	if request.form, err = url.ParseQuery(string(body)); err != nil {
		return request, oauthErrorf(codeRequest, "The body is not a form")
	}
	for name, values := range request.form {
		if len(values) > 1 {
			return request, oauthErrorf(codeRequest, "%.60q is given more than once", name)
		}
	}
	headers := r.Header["Authorization"]
	if len(headers) > 1 {
		return request, oauthErrorf(codeRequest, "There is more than one Authorization header")
	}
	if len(headers) == 1 {
		request.header = headers[0]
	}
	if a.config.Records == nil {
		return request, oauthErrorf(codeUnsupported, "This server issues no tokens: start it with --keys")
	}
	return request, nil
}

// token answers a request according to its grant type.
func (a *Authenticator) token(ctx context.Context, r tokenRequest) (TokenAnswer, error) {
	switch grant := r.form.Get("grant_type"); grant {
	case grantCredentials:
		return a.tokenForKey(ctx, r)
	case grantExchange:
		return a.exchange(ctx, r)
	case "":
		return TokenAnswer{}, oauthErrorf(codeRequest, "grant_type is missing")
	}
	return TokenAnswer{}, oauthErrorf(codeUnsupported, "There are %s and %s", grantCredentials, grantExchange)
}

// tokenForKey answers a request that authenticates with an API key.
func (a *Authenticator) tokenForKey(ctx context.Context, r tokenRequest) (TokenAnswer, error) {
	caller, shown, err := a.clientOf(ctx, r)
	if err != nil {
		return TokenAnswer{}, err
	}
	if !shown {
		return TokenAnswer{}, oauthErrorf(codeRequest, "client_secret is missing")
	}
	return a.issue(ctx, r, caller, a.config.Now())
}

// clientOf returns the caller of the API key in the header or form of a request. If there is no API
// key, shown is false.
func (a *Authenticator) clientOf(ctx context.Context, r tokenRequest) (caller moorage.Caller, shown bool, err error) {
	var id, secret string
	ok := false
	scheme, credential, _ := strings.Cut(r.header, " ")
	switch inForm := r.form.Get("client_secret"); {
	case strings.EqualFold(scheme, "Basic"):
		id, secret, ok = parseBasic(strings.TrimSpace(credential))
		if inForm != "" {
			formID, formSecret, formOK := parsePair(r.form.Get("client_id"), inForm)
			if !formOK || formID != id || formSecret != secret {
				return caller, true, oauthErrorf(codeRequest, "The header and the form have different credentials")
			}
		}
	case inForm != "":
		id, secret, ok = parsePair(strings.TrimSpace(r.form.Get("client_id")), strings.TrimSpace(inForm))
	default:
		return caller, false, nil
	}
	if !ok {
		return caller, true, oauthErrorf(codeClient, "Invalid credentials")
	}
	key, err := a.checkKey(ctx, id, secret)
	if refused, ok := errors.AsType[*refusal](err); ok {
		if refused.isKey {
			a.note(r.address, refused)
		}
		err = oauthErrorf(codeClient, "Invalid credentials")
		if !refused.ended.IsZero() {
			err = oauthErrorf(codeClient, textEnded, refused.ended.UTC().Format(time.RFC3339))
		}
	}
	return key.caller, true, err
}

// issue gives caller a token. If the request has a scope, the token is limited to roles
// accordingly.
func (a *Authenticator) issue(ctx context.Context, r tokenRequest, caller moorage.Caller, authenticated time.Time) (
	TokenAnswer, error) {
	caller.Address, caller.Client = r.address, r.client
	scope := r.form.Get("scope")
	only, err := a.narrow(ctx, caller, scope)
	if err != nil {
		return TokenAnswer{}, err
	}
	caller.Only = only
	text, life, err := a.give(ctx, caller, authenticated, r.form.Get("grant_type"))
	if err != nil {
		return TokenAnswer{}, err
	}
	if !isScope(scope) {
		scope = scopeDefault
	}
	return TokenAnswer{
		AccessToken: text, TokenType: "bearer", ExpiresIn: int64(life / time.Second), IssuedType: typeAccess,
		Scope: scope,
	}, nil
}

// narrow returns the roles to which scope limits caller. It returns nil if there is no limit.
func (a *Authenticator) narrow(ctx context.Context, caller moorage.Caller, scope string) ([]string, error) {
	var asked []string
	for _, word := range strings.Fields(scope) {
		if role, ok := strings.CutPrefix(word, scopeRole); ok && role != scopeAll {
			asked = append(asked, role)
		}
	}
	if asked == nil {
		return caller.Only, nil
	}
	for _, role := range asked {
		has := caller.Only == nil || slices.Contains(caller.Only, role)
		if has {
			var err error
			if has, err = a.config.Records.HasRole(ctx, caller, role); err != nil {
				return nil, unavailable("look up a role", err)
			}
		}
		if !has {
			return nil, oauthErrorf(codeScope, "You do not have the role %.100q", role)
		}
	}
	slices.Sort(asked)
	return slices.Compact(asked), nil
}

// isScope reports whether a response may contain scope. Source: RFC 6749, 3.3.
func isScope(scope string) bool {
	if scope == "" || len(scope) > 1000 || scope != strings.Join(strings.Fields(scope), " ") {
		return false
	}
	return strings.IndexFunc(scope, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}
