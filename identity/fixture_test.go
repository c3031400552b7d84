package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"moorage"
	"moorage/testkit"
)

type clock = testkit.Clock

func newClock() *clock { return testkit.NewClockAt(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)) }

// fakeRecords is a store in memory that several Authenticators can share.
type fakeRecords struct {
	mu       sync.Mutex
	keys     map[string]APIKey
	public   map[string]PublicKey
	speaks   map[string]string // by principal
	roles    map[string][]string
	down     error
	lookups  int // lookups of public keys
	checks   int // checks of API keys
	epoch    uint64
	narrowed []string
}

func newRecords() *fakeRecords {
	return &fakeRecords{
		keys: map[string]APIKey{}, public: map[string]PublicKey{}, speaks: map[string]string{}, roles: map[string][]string{},
	}
}

func (f *fakeRecords) APIKey(_ context.Context, id string) (APIKey, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks++
	key, found := f.keys[id]
	key.Epoch = f.epoch
	return key, found, f.down
}

func (f *fakeRecords) Epoch(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch, f.down
}

func (f *fakeRecords) Store(context.Context) (string, error) { return "store1", f.down }

func (f *fakeRecords) PublicKey(_ context.Context, kid string) (PublicKey, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookups++
	key, found := f.public[kid]
	return key, found, f.down
}

func (f *fakeRecords) Publish(_ context.Context, kid string, key PublicKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down == nil {
		f.public[kid] = key
	}
	return f.down
}

func (f *fakeRecords) SpeaksFor(_ context.Context, caller moorage.Caller) (string, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.narrowed = caller.Only
	alias, may := f.speaks[caller.Name]
	return alias, may && len(caller.Via) == 0, f.down
}

func (f *fakeRecords) HasRole(_ context.Context, caller moorage.Caller, role string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.roles[caller.Name], role), f.down
}

// fixture is an Authenticator with everything that it needs.
type fixture struct {
	*Authenticator
	t       *testing.T
	clock   *clock
	records *fakeRecords
	issuer  *testIssuer

	mu      sync.Mutex
	refused []string // reasons
	issued  []Issued
}

// patience is the timeout of fetches from the issuers of tests. Only a fetch that hangs takes
// longer.
const patience = 2 * time.Minute

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: newClock(), records: newRecords()}
	f.issuer = newTestIssuer(t, f.clock)
	config := Config{
		Issuers: []IssuerConfig{f.issuer.config()}, FetchTimeout: patience, Records: f.records, Now: f.clock.Now,
		Refused: func(_, reason string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.refused = append(f.refused, reason)
		},
		Issued: func(_ context.Context, issued Issued) { f.issued = append(f.issued, issued) },
	}
	if change != nil {
		change(&config)
	}
	made, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.Authenticator = made
	return f
}

// key adds an API key and returns its text.
func (f *fixture) key(principal string, roles ...string) NewKey {
	f.t.Helper()
	made, err := NewAPIKey(rand.Reader, "")
	if err != nil {
		f.t.Fatal(err)
	}
	f.records.keys[made.ID] = APIKey{Principal: principal, Roles: roles, Secrets: []KeySecret{
		{SHA256: made.SHA256, Generation: 1, Ends: f.clock.Now().Add(90 * 24 * time.Hour)},
	}}
	return made
}

// ask authenticates a request with the given Authorization headers.
func (f *fixture) ask(headers ...string) (moorage.Caller, error) {
	return f.askFrom("192.0.2.1:7", headers...)
}

func (f *fixture) askFrom(remote string, headers ...string) (moorage.Caller, error) {
	r := httptest.NewRequest("GET", "/v1/config", nil)
	r.RemoteAddr = remote
	for _, header := range headers {
		r.Header.Add("Authorization", header)
	}
	return f.Authenticate(r)
}

func (f *fixture) lastReason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.refused) == 0 {
		return ""
	}
	return f.refused[len(f.refused)-1]
}

// post sends a form to the token endpoint.
func (f *fixture) post(header string, pairs ...string) (TokenAnswer, error) {
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return f.postBody(header, "", form.Encode())
}

func (f *fixture) postBody(header, query, body string) (TokenAnswer, error) {
	r := httptest.NewRequest("POST", "/v1/oauth/tokens"+query, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return f.Token(r, []byte(body))
}

// tokenOf returns a token for a key.
func (f *fixture) tokenOf(key NewKey) string {
	f.t.Helper()
	answer, err := f.post("", "grant_type", grantCredentials, "client_secret", key.Text)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.AccessToken
}

// testIssuer is an outside issuer of tokens.
type testIssuer struct {
	*httptest.Server
	clock   *clock
	fetches atomic.Int64 // fetches of keys

	mu        sync.Mutex
	keys      jose.JSONWebKeySet
	discovery map[string]string // members that replace the correct ones
	answer    func(w http.ResponseWriter, r *http.Request) bool
}

type signingKey struct {
	kid       string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

// Keys that tests share, because generating RSA keys is slow.
var (
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey  = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newEdKey(kid string) signingKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return signingKey{kid, jose.EdDSA, must(private, err)}
}

func rsaSigner() signingKey { return signingKey{"rsa", jose.RS256, rsaKey()} }
func ecSigner() signingKey  { return signingKey{"ec", jose.ES256, ecKey()} }

func newTestIssuer(t *testing.T, clock *clock) *testIssuer {
	i := &testIssuer{clock: clock}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	i.publish(rsaSigner(), ecSigner())
	return i
}

func (i *testIssuer) config() IssuerConfig {
	return IssuerConfig{Alias: "corp", URL: i.URL, Audience: "moorage", Subject: "sub", Roles: "realm_access.roles"}
}

// publish sets the keys of the issuer.
func (i *testIssuer) publish(keys ...signingKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = jose.JSONWebKeySet{}
	for _, key := range keys {
		i.keys.Keys = append(i.keys.Keys, jose.JSONWebKey{
			Key: key.private.Public(), KeyID: key.kid, Algorithm: string(key.algorithm), Use: "sig",
		})
	}
}

// does makes the issuer call answer for each request. If answer returns false, the issuer gives its
// usual answer.
func (i *testIssuer) does(answer func(w http.ResponseWriter, r *http.Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

func (i *testIssuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	answer, keys, differs := i.answer, i.keys, i.discovery
	i.mu.Unlock()
	if r.URL.Path == "/keys" {
		i.fetches.Add(1)
	}
	if answer != nil && answer(w, r) {
		return
	}
	switch r.URL.Path {
	case discoveryPath:
		document := map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		for name, value := range differs {
			document[name] = value
		}
		_ = json.NewEncoder(w).Encode(document)
	case "/keys":
		_ = json.NewEncoder(w).Encode(keys)
	default:
		http.NotFound(w, r)
	}
}

// claims returns valid claims.
func (i *testIssuer) claims() map[string]any {
	now := i.clock.Now().Unix()
	return map[string]any{
		"iss": i.URL, "sub": "ann", "aud": "moorage", "iat": now, "exp": now + 600,
		"realm_access": map[string]any{"roles": []string{"writers", "analysts"}},
	}
}

// sign returns a token with claims, modified by pairs of names and values. A nil value removes a
// claim.
func (i *testIssuer) sign(by signingKey, pairs ...any) string {
	claims := i.claims()
	for n := 0; n < len(pairs); n += 2 {
		if pairs[n+1] == nil {
			delete(claims, pairs[n].(string))
			continue
		}
		claims[pairs[n].(string)] = pairs[n+1]
	}
	return signed(by, must(json.Marshal(claims)), nil)
}

// signed returns a token with the given body, and with additional members in its header.
func signed(by signingKey, body []byte, header map[jose.HeaderKey]any) string {
	options := &jose.SignerOptions{ExtraHeaders: header}
	key := any(by.private)
	if by.kid != "" {
		key = jose.JSONWebKey{Key: by.private, KeyID: by.kid}
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: by.algorithm, Key: key}, options))
	return must(must(signer.Sign(body)).CompactSerialize())
}

func wantReason(t *testing.T, f *fixture, err error, reason string) {
	t.Helper()
	if moorage.KindOf(err) != moorage.KindNotAuthorized || f.lastReason() != reason {
		t.Errorf("got %v for the reason %q, want the reason %q", err, f.lastReason(), reason)
	}
}

var errDown = errors.New("the store is down")

// wrong returns key with a wrong secret.
func (f *fixture) wrong(key NewKey) string {
	f.t.Helper()
	other, err := NewAPIKey(rand.Reader, key.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return other.Text
}
