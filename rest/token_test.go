package rest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/identity"
	"moorage/internal/web"
)

// givenTokens gives a fixed answer to each request, and keeps the body of the request.
type givenTokens struct {
	answer identity.TokenAnswer
	err    error
	body   string
}

func (g *givenTokens) Token(_ *http.Request, body []byte) (identity.TokenAnswer, error) {
	g.body = string(body)
	return g.answer, g.err
}

// askToken sends a form to the token endpoint of a server that refuses all callers at its other
// endpoints.
func askToken(tokens Tokens, form string) *httptest.ResponseRecorder {
	server := mount(web.New(web.Config{
		Authenticate: func(*http.Request) (moorage.Caller, error) {
			return moorage.Caller{}, moorage.Errorf(moorage.KindNotAuthorized, "no")
		},
	}), Config{Catalog: &fakeCatalog{}, Tokens: tokens})
	return send(server, "POST", "/v1/oauth/tokens", form, "Content-Type", "application/x-www-form-urlencoded")
}

// wantToken fails unless an answer of the token endpoint has the status and the body, and must not
// be cached.
func wantToken(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, body)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: %q", got)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type: %q", got)
	}
}

// A request for a token needs no authentication.
func TestTokenAsksNobody(t *testing.T) {
	t.Parallel()
	tokens := &givenTokens{answer: identity.TokenAnswer{
		AccessToken: "a.b.c", TokenType: "bearer", ExpiresIn: 3600, IssuedType: "t", Scope: "catalog",
	}}
	w := askToken(tokens, "grant_type=client_credentials&scope=catalog")
	wantToken(t, w, 200, `{"access_token":"a.b.c","token_type":"bearer","expires_in":3600,"issued_token_type":"t","scope":"catalog"}`)
	if tokens.body != "grant_type=client_credentials&scope=catalog" {
		t.Errorf("read %q", tokens.body)
	}
	if w.Header().Get("WWW-Authenticate")+w.Header().Get("Retry-After") != "" {
		t.Errorf("headers %v", w.Header())
	}
}

// Failures have the form of OAuth, not that of the other operations.
func TestTokenFailures(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err                    error
		status                 int
		body, challenge, retry string
	}{
		"unknown client": {&identity.OAuthError{Status: 401, Code: "invalid_client", Description: `a "b"`}, 401,
			`{"error":"invalid_client","error_description":"a \"b\""}`, `Basic realm="moorage"`, ""},
		"bad grant": {&identity.OAuthError{Status: 400, Code: "invalid_grant", Description: "no"}, 400,
			`{"error":"invalid_grant","error_description":"no"}`, "", ""},
		"too many": {&identity.OAuthError{Status: 429, Code: "invalid_request", Description: "no"}, 429,
			`{"error":"invalid_request","error_description":"no"}`, "", "1"},
		"no room": {moorage.Errorf(moorage.KindTooManyRequests, "busy"), 429,
			`{"error":"temporarily_unavailable","error_description":"busy"}`, "", "1"},
		"store is down": {moorage.Errorf(moorage.KindUnavailable, "down"), 503,
			`{"error":"temporarily_unavailable","error_description":"down"}`, "", "1"},
		"bad body": {moorage.Errorf(moorage.KindBadRequest, "odd"), 400,
			`{"error":"invalid_request","error_description":"odd"}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := askToken(&givenTokens{err: row.err}, "grant_type=client_credentials")
			wantToken(t, w, row.status, row.body)
			if got := w.Header().Get("WWW-Authenticate"); got != row.challenge {
				t.Errorf("WWW-Authenticate: %q, want %q", got, row.challenge)
			}
			if got := w.Header().Get("Retry-After"); got != row.retry {
				t.Errorf("Retry-After: %q, want %q", got, row.retry)
			}
		})
	}
	if w := askToken(&givenTokens{err: errors.New("a secret")}, ""); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("a failure of the server: %d %s", w.Code, w.Body)
	}
}

// A form that is too long does not reach Tokens.
func TestTokenFormIsBounded(t *testing.T) {
	t.Parallel()
	tokens := &givenTokens{}
	w := askToken(tokens, strings.Repeat("a", tokenBodyBytesMax+1))
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"error":"invalid_request"`) || tokens.body != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A server without keys answers that it issues no tokens, even if callers need not authenticate.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	want := `{"error":"unsupported_grant_type","error_description":"This server issues no tokens: start it with --keys"}`
	wantToken(t, askToken(nil, "grant_type=client_credentials"), 400, want)
	open := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	wantToken(t, send(open, "POST", "/v1/oauth/tokens", ""), 400, want)
	wantFailure(t, send(open, "GET", "/v1/oauth/tokens", ""), 405, "MethodNotAllowedException")
}
