package sealers

import (
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moorage/testkit/fakecloud"
)

// scopeKeys is the required scope of a token.
const scopeKeys = "https://www.googleapis.com/auth/cloudkms"

// Google simulates Cloud KMS with symmetric keys, and the service that issues tokens for it. It is
// safe for concurrent use.
//
// Source: Cloud KMS API, v1.
type Google struct {
	trouble
	URL string

	server *httptest.Server
	cloud  *fakecloud.GoogleCloud

	// keysMu guards the fields below. No other lock is taken under it.
	keysMu   sync.Mutex
	keys     map[string][]cipher.AEAD // each key's versions, by resource name; the last version is the primary
	disabled map[string]bool          // by the resource names of versions
	damage   int                      // number of next answers to corrupt in transit
}

// NewGoogle returns a Google that has no keys.
func NewGoogle(tb testing.TB) *Google {
	tb.Helper()
	g := &Google{
		cloud: fakecloud.NewGoogleCloud(tb), keys: make(map[string][]cipher.AEAD), disabled: make(map[string]bool),
	}
	g.server = httptest.NewServer(http.HandlerFunc(g.serve))
	tb.Cleanup(g.server.Close)
	g.URL = g.server.URL
	return g
}

// Close stops the server.
func (g *Google) Close() { g.server.Close() }

// CredentialsFile creates a file for GOOGLE_APPLICATION_CREDENTIALS, and returns its path.
func (g *Google) CredentialsFile(tb testing.TB) string {
	tb.Helper()
	key := g.cloud.Key(tb)
	key["token_uri"] = g.cloud.URL + "/token"
	text, err := json.Marshal(key)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "account.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Tokens returns the number of issued tokens.
func (g *Google) Tokens() int { return g.cloud.Issued() }

// NewKey creates a key and returns its resource name.
func (g *Google) NewKey(tb testing.TB) string {
	tb.Helper()
	g.keysMu.Lock()
	name := fmt.Sprintf("projects/test/locations/europe-north1/keyRings/moorage/cryptoKeys/key-%d", len(g.keys))
	g.keys[name] = nil
	g.keysMu.Unlock()
	g.Rotate(tb, name)
	return name
}

// Rotate creates a new version of a key, and makes it the primary version.
func (g *Google) Rotate(tb testing.TB, name string) {
	tb.Helper()
	drawn := newCipher(tb)
	g.keysMu.Lock()
	defer g.keysMu.Unlock()
	g.keys[name] = append(g.keys[name], drawn)
}

// Disable disables a version of a key, counted from 1. Values sealed with that version can no
// longer be opened.
func (g *Google) Disable(name string, version int) {
	g.keysMu.Lock()
	defer g.keysMu.Unlock()
	g.disabled[versionName(name, version)] = true
}

// Damage corrupts the given number of next answers in transit.
func (g *Google) Damage(answers int) {
	g.keysMu.Lock()
	defer g.keysMu.Unlock()
	g.damage = answers
}

func versionName(key string, version int) string {
	return fmt.Sprintf("%s/cryptoKeyVersions/%d", key, version)
}

// googleRequest is the body of both actions.
type googleRequest struct {
	Plaintext     []byte  `json:"plaintext"`
	PlainSum      *uint32 `json:"plaintextCrc32c,string"`
	Ciphertext    []byte  `json:"ciphertext"`
	CiphertextSum *uint32 `json:"ciphertextCrc32c,string"`
	Bound         []byte  `json:"additionalAuthenticatedData"`
	BoundSum      *uint32 `json:"additionalAuthenticatedDataCrc32c,string"`
}

func (g *Google) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytesMax))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, refusal := g.answer(r, body)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if refusal != nil {
		w.WriteHeader(refusal.Status)
		answer = map[string]any{"error": map[string]any{
			"code": refusal.Status, "message": refusal.Words, "status": refusal.Kind,
		}}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}

// answer returns the answer to a request, or its refusal.
func (g *Google) answer(r *http.Request, body []byte) (map[string]any, *Refusal) {
	if refusal, refused := g.next(); refused {
		return nil, &refusal
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if scope := g.cloud.ScopeOf(token); scope != scopeKeys {
		return nil, &Refusal{http.StatusUnauthorized, "UNAUTHENTICATED", fmt.Sprintf("the token is for %q", scope)}
	}
	var asked googleRequest
	if err := decode(r, body, "application/json", &asked); err != nil || r.Method != http.MethodPost {
		return nil, invalidArgument("not a request: %v", err)
	}
	if asked.BoundSum == nil || *asked.BoundSum != sumOf(asked.Bound) {
		return nil, invalidArgument("the checksum of the additional data is wrong")
	}
	name, action, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), ":")
	g.keysMu.Lock()
	defer g.keysMu.Unlock()
	versions := g.keys[name]
	if len(versions) == 0 {
		return nil, &Refusal{http.StatusNotFound, "NOT_FOUND", "CryptoKey " + name + " not found."}
	}
	switch action {
	case "encrypt":
		return g.encryptLocked(name, asked)
	case "decrypt":
		return g.decryptLocked(name, asked)
	}
	return nil, &Refusal{http.StatusNotFound, "NOT_FOUND", "no such method"}
}

// encryptLocked seals with the primary version. g.keysMu must be held.
func (g *Google) encryptLocked(name string, asked googleRequest) (map[string]any, *Refusal) {
	if asked.PlainSum == nil || *asked.PlainSum != sumOf(asked.Plaintext) || asked.Ciphertext != nil {
		return nil, invalidArgument("the checksum of the plaintext is wrong")
	}
	version := len(g.keys[name])
	sealed := append([]byte{byte(version)}, seal(g.keys[name][version-1], asked.Plaintext, asked.Bound)...)
	answer := map[string]any{
		"name": versionName(name, version), "ciphertext": sealed, "ciphertextCrc32c": fmt.Sprint(sumOf(sealed)),
		"verifiedPlaintextCrc32c": true, "verifiedAdditionalAuthenticatedDataCrc32c": true,
		"protectionLevel": "SOFTWARE",
	}
	if g.damagesLocked() {
		sealed[len(sealed)-1] ^= 1
	}
	return answer, nil
}

// decryptLocked opens with any enabled version. g.keysMu must be held.
func (g *Google) decryptLocked(name string, asked googleRequest) (map[string]any, *Refusal) {
	if asked.CiphertextSum == nil || *asked.CiphertextSum != sumOf(asked.Ciphertext) || asked.Plaintext != nil {
		return nil, invalidArgument("the checksum of the ciphertext is wrong")
	}
	versions := g.keys[name]
	if len(asked.Ciphertext) < 1 || int(asked.Ciphertext[0]) < 1 || int(asked.Ciphertext[0]) > len(versions) {
		return nil, invalidArgument("Decryption failed: verify that 'name' refers to the correct CryptoKey.")
	}
	version := int(asked.Ciphertext[0])
	if g.disabled[versionName(name, version)] {
		return nil, &Refusal{http.StatusBadRequest, "FAILED_PRECONDITION",
			versionName(name, version) + " is not enabled, current state is: DISABLED."}
	}
	plain, err := open(versions[version-1], asked.Ciphertext[1:], asked.Bound)
	if err != nil {
		return nil, invalidArgument("Decryption failed: the ciphertext is invalid.")
	}
	answer := map[string]any{
		"plaintext": plain, "plaintextCrc32c": fmt.Sprint(sumOf(plain)), "protectionLevel": "SOFTWARE",
	}
	if version == len(versions) {
		answer["usedPrimary"] = true // the service omits the member if it is false
	}
	if g.damagesLocked() {
		plain[0] ^= 1
	}
	return answer, nil
}

// damagesLocked reports whether the next answer must be corrupted, and counts it. g.keysMu must be
// held.
func (g *Google) damagesLocked() bool {
	if g.damage == 0 {
		return false
	}
	g.damage--
	return true
}

func invalidArgument(format string, args ...any) *Refusal {
	return &Refusal{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

func sumOf(content []byte) uint32 { return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)) }
