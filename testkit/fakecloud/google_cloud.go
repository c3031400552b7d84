package fakecloud

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// GoogleAccount is the account whose key a GoogleCloud accepts. GoogleImpersonated is an account
// that GoogleAccount can impersonate.
const (
	GoogleAccount      = "moorage@test.iam.gserviceaccount.com"
	GoogleImpersonated = "engines@test.iam.gserviceaccount.com"
)

// googleKey is generated only once, because the generation is slow.
var googleKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// GoogleCloud simulates the services around the storage, at one URL. It issues tokens for a key
// (/token), tokens of other accounts (IAM credentials API), and downscoped tokens (security token
// service). It is also a gate in front of a GoogleServer. The gate requires a token with each
// request. It evaluates the conditions of the token's boundary, and forwards the request if the
// boundary allows it. It is safe for concurrent use.
type GoogleCloud struct {
	URL    string
	Server *GoogleServer

	// Loosen changes the boundary of a token before it is stored, to imitate a cloud that does not
	// enforce a boundary. If it is nil, no boundary changes. It must not be changed after the first
	// request.
	Loosen func(rules []GoogleRule) []GoogleRule
	// Life is the lifetime of tokens for keys. It must not be changed after the first request.
	Life time.Duration

	proxy *httputil.ReverseProxy
	key   *rsa.PrivateKey

	// mu guards the fields below. No other lock is taken under it.
	mu     sync.Mutex
	tokens map[string]*grant
	count  int
}

// grant has the permissions of a token until it expires.
type grant struct {
	ends  time.Time
	scope string
	// gates are the compiled rules of the token's boundary; nil if it has no boundary.
	gates []gate
}

// GoogleRule is a rule of a credential access boundary.
type GoogleRule struct {
	Permissions []string `json:"availablePermissions"`
	Resource    string   `json:"availableResource"`
	Condition   *struct {
		Expression string `json:"expression"`
	} `json:"availabilityCondition"`
}

// NewGoogleCloud returns a GoogleCloud in front of the server of this process.
func NewGoogleCloud(tb testing.TB) *GoogleCloud {
	tb.Helper()
	server := StartGoogle(tb)
	target, err := url.Parse(server.URL)
	if err != nil {
		tb.Fatalf("fakecloud: google: %v", err)
	}
	drawn, err := googleKey()
	if err != nil {
		tb.Fatalf("fakecloud: google: %v", err)
	}
	c := &GoogleCloud{Server: server, Life: time.Hour, key: drawn, tokens: make(map[string]*grant)}
	c.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
	}}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /token", c.giveToken)
	routes.HandleFunc("POST /v1/token", c.narrow)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token" || r.URL.Path == "/v1/token":
			routes.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/v1/projects/"):
			c.impersonate(w, r)
		default:
			c.pass(w, r)
		}
	}))
	tb.Cleanup(front.Close)
	c.URL = front.URL
	return c
}

// Key returns the key of GoogleAccount as Google issues keys: a JSON object of strings.
func (c *GoogleCloud) Key(tb testing.TB) map[string]string {
	tb.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		tb.Fatalf("fakecloud: google: %v", err)
	}
	return map[string]string{
		"type": "service_account", "project_id": "test", "private_key_id": "1", "client_email": GoogleAccount,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"token_uri":   "http://127.0.0.1:1/nobody-asks-here",
	}
}

// KeyText returns Key as the text of a file.
func (c *GoogleCloud) KeyText(tb testing.TB) string {
	tb.Helper()
	text, err := json.Marshal(c.Key(tb))
	if err != nil {
		tb.Fatalf("fakecloud: google: %v", err)
	}
	return string(text)
}

// issue returns a new token with the rights in made.
func (c *GoogleCloud) issue(made *grant) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	token := fmt.Sprintf("ya29.%s-%d", rand.Text(), c.count)
	c.tokens[token] = made
	return token
}

// Issued returns how many tokens were issued.
func (c *GoogleCloud) Issued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// ScopeOf returns the scope of a token. It is empty if the token is not valid.
func (c *GoogleCloud) ScopeOf(token string) string {
	if found := c.grantOf(token); found != nil {
		return found.scope
	}
	return ""
}

// bearer returns the grant of a request's token, or nil if the request has no valid token.
func (c *GoogleCloud) bearer(r *http.Request) *grant {
	value, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return c.grantOf(value)
}

func (c *GoogleCloud) grantOf(token string) *grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.tokens[token]
	if found == nil || time.Now().After(found.ends) {
		return nil
	}
	return found
}

// giveToken issues a token in exchange for an assertion that is signed with the key.
func (c *GoogleCloud) giveToken(w http.ResponseWriter, r *http.Request) {
	claims, err := verify(r.FormValue("assertion"), &c.key.PublicKey)
	if err != nil || claims.Issuer != GoogleAccount {
		refuse(w, http.StatusBadRequest, "Invalid JWT Signature.")
		return
	}
	made := c.issue(&grant{ends: time.Now().Add(c.Life), scope: claims.Scope})
	answer(w, map[string]any{"access_token": made, "token_type": "Bearer", "expires_in": int(c.Life.Seconds())})
}

// impersonate issues a token of GoogleImpersonated to a caller with a token of GoogleAccount.
func (c *GoogleCloud) impersonate(w http.ResponseWriter, r *http.Request) {
	asker := c.bearer(r)
	var asked struct {
		Scope    []string
		Lifetime string
	}
	account := strings.TrimPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/")
	switch {
	case asker == nil || asker.gates != nil || !strings.HasSuffix(asker.scope, "/cloud-platform"):
		refuse(w, http.StatusUnauthorized, "Request had invalid authentication credentials.")
		return
	case account != GoogleImpersonated+":generateAccessToken":
		refuse(w, http.StatusForbidden, "Permission 'iam.serviceAccounts.getAccessToken' denied")
		return
	case json.NewDecoder(r.Body).Decode(&asked) != nil:
		refuse(w, http.StatusBadRequest, "Invalid JSON payload received.")
		return
	}
	life, err := strconv.Atoi(strings.TrimSuffix(asked.Lifetime, "s"))
	if err != nil || life < 1 || life > 3600 {
		refuse(w, http.StatusBadRequest, "The token lifetime must be between 1 and 3600 seconds.")
		return
	}
	ends := time.Now().Add(time.Duration(life) * time.Second)
	answer(w, map[string]any{
		"accessToken": c.issue(&grant{ends: ends, scope: strings.Join(asked.Scope, " ")}),
		"expireTime":  ends.UTC().Format(time.RFC3339),
	})
}

// narrow issues a token that is restricted to a boundary. It ends when the token in the request
// ends.
func (c *GoogleCloud) narrow(w http.ResponseWriter, r *http.Request) {
	root := c.grantOf(r.FormValue("subject_token"))
	if root == nil || root.gates != nil || !strings.HasSuffix(root.scope, "/cloud-platform") {
		refuse(w, http.StatusBadRequest, "The subject token is not valid.")
		return
	}
	var options struct {
		AccessBoundary struct {
			Rules []GoogleRule `json:"accessBoundaryRules"`
		} `json:"accessBoundary"`
	}
	if err := json.Unmarshal([]byte(r.FormValue("options")), &options); err != nil {
		refuse(w, http.StatusBadRequest, "Invalid options.")
		return
	}
	rules := options.AccessBoundary.Rules
	gates, err := gatesOf(rules)
	if err == nil && c.Loosen != nil {
		gates, err = gatesOf(c.Loosen(rules))
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	made := c.issue(&grant{ends: root.ends, scope: root.scope, gates: gates})
	answer(w, map[string]any{
		"access_token": made, "token_type": "Bearer", "expires_in": int(time.Until(root.ends).Seconds()),
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
	})
}

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // the client may have disconnected
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": message}})
}
