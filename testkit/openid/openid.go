// Package openid simulates an identity provider with the authorization code flow of OpenID Connect.
// It is as strict as a real provider: a code works once, for one client and one address, and only
// with the PKCE verifier. It signs in one user without asking.
package openid

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client that the provider knows, and the audience of its access tokens.
const (
	ClientID = "moorage-console"
	Audience = "moorage"
)

// Provider is a running provider. Its fields can be changed while no request is in progress.
type Provider struct {
	*httptest.Server
	// Subject is the user that signs in. Default ann.
	Subject string
	// Secret is the secret of the client. Default: a public client.
	Secret string
	// Life is the lifetime of tokens. Default ten minutes.
	Life time.Duration
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// Change changes the claims of a token before the provider signs it. kind is access or id.
	Change func(kind string, claims map[string]any)
	// Alter changes the parameters that the provider adds when it redirects a browser back.
	Alter func(back url.Values)
	// Discovery holds members of the discovery document that replace the correct ones.
	Discovery map[string]any

	private ed25519.PrivateKey
	mu      sync.Mutex        // guards the field below; leaf
	codes   map[string]issued // codes that were not exchanged
}

// issued holds the data of an issued code.
type issued struct{ redirect, challenge, nonce string }

// New starts a provider. It ends with the test.
func New(t testing.TB) *Provider {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{
		Subject: "ann", Life: 10 * time.Minute, Now: time.Now, Change: func(string, map[string]any) {},
		Alter: func(url.Values) {}, private: private, codes: map[string]issued{},
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /.well-known/openid-configuration", p.discover)
	routes.HandleFunc("GET /keys", p.keys)
	routes.HandleFunc("GET /authorize", p.authorize)
	routes.HandleFunc("POST /token", p.exchange)
	p.Server = httptest.NewServer(routes)
	t.Cleanup(p.Close)
	return p
}

// Authorize acts as a browser that opens address. It returns the parameters with which the provider
// redirects the browser back.
func (p *Provider) Authorize(t testing.TB, address string) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		t.Fatalf("the provider answers %s to %s", answer.Status, address)
	}
	return back.Query()
}

func (p *Provider) discover(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": p.URL + "/token", "authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "none"},
	}
	for name, value := range p.Discovery {
		document[name] = value
	}
	answer(w, http.StatusOK, document)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	public := p.private.Public().(ed25519.PublicKey)
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
		"kty": "OKP", "crv": "Ed25519", "x": encoded(public), "kid": "1", "alg": "EdDSA", "use": "sig",
	}}})
}

// authorize redirects a browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	isRight := q.Get("client_id") == ClientID && q.Get("response_type") == "code" && q.Get("state") != "" &&
		q.Get("code_challenge_method") == "S256" && q.Get("nonce") != "" &&
		slices.Contains(strings.Fields(q.Get("scope")), "openid")
	if !isRight {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = issued{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	p.Alter(back)
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// exchange answers with the tokens for a code.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	id, secret, isBasic := r.BasicAuth()
	if !isBasic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != p.Secret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	found, isKnown := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !isKnown || found.redirect != r.PostFormValue("redirect_uri") || found.challenge != encoded(sum[:]) {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"token_type": "Bearer", "expires_in": int(p.Life.Seconds()),
		"access_token": p.token("access", map[string]any{"aud": Audience}),
		"id_token":     p.token("id", map[string]any{"aud": ClientID, "nonce": found.nonce}),
	})
}

// token returns a signed token.
func (p *Provider) token(kind string, more map[string]any) string {
	now := p.Now()
	claims := map[string]any{"iss": p.URL, "sub": p.Subject, "iat": now.Unix(), "exp": now.Add(p.Life).Unix()}
	for name, value := range more {
		claims[name] = value
	}
	p.Change(kind, claims)
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err) // a test's claims can always be encoded
	}
	text := encoded([]byte(`{"alg":"EdDSA","kid":"1"}`)) + "." + encoded(body)
	return text + "." + encoded(ed25519.Sign(p.private, []byte(text)))
}

func encoded(content []byte) string { return base64.RawURLEncoding.EncodeToString(content) }

func answer(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content)
}
