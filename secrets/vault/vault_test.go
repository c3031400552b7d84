package vault_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"moorage/secrets"
	"moorage/secrets/vault"
)

// engine answers as a transit engine is documented to, with a key called "moorage" of the kind
// aes256-gcm96.
type engine struct {
	// mu guards the fields below; a leaf.
	mu    sync.Mutex
	token string
	keys  []cipher.AEAD // by version, from 1
	down  int           // a status that every call is answered with; 0: none
}

func newEngine(t *testing.T) (*engine, *httptest.Server) {
	t.Helper()
	e := &engine{token: "s.first"}
	e.turn()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, server
}

func (e *engine) turn() {
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	e.keys = append(e.keys, sealer)
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	refuse := func(code int, text string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{text}})
	}
	answer := func(data any) { _ = json.NewEncoder(w).Encode(map[string]any{"data": data}) }
	var body map[string][]byte // but the ciphertext, which is a text
	var texts map[string]string
	_ = json.NewDecoder(r.Body).Decode(&texts)
	body = make(map[string][]byte)
	for name, text := range texts {
		body[name], _ = base64.StdEncoding.DecodeString(text)
	}
	switch {
	case e.down != 0:
		refuse(e.down, "down")
	case r.Header.Get("X-Vault-Token") != e.token:
		refuse(http.StatusForbidden, "permission denied")
	case r.URL.Path == "/v1/team/transit/encrypt/moorage":
		nonce := make([]byte, 12)
		rand.Read(nonce)
		sealed := e.keys[len(e.keys)-1].Seal(nonce, nonce, body["plaintext"], body["associated_data"])
		answer(map[string]any{"ciphertext": fmt.Sprintf("vault:v%d:%s", len(e.keys), base64.StdEncoding.EncodeToString(sealed))})
	case r.URL.Path == "/v1/team/transit/decrypt/moorage":
		parts := strings.SplitN(texts["ciphertext"], ":", 3)
		if len(parts) < 3 || parts[0] != "vault" {
			refuse(http.StatusBadRequest, "invalid ciphertext: no prefix")
			return
		}
		version, err := strconv.Atoi(strings.TrimPrefix(parts[1], "v"))
		if err != nil || version < 1 || version > len(e.keys) {
			refuse(http.StatusBadRequest, "invalid ciphertext: version")
			return
		}
		sealed, err := base64.StdEncoding.DecodeString(parts[2])
		if err != nil || len(sealed) < 12 {
			refuse(http.StatusBadRequest, "invalid ciphertext")
			return
		}
		plain, err := e.keys[version-1].Open(nil, sealed[:12], sealed[12:], body["associated_data"])
		if err != nil {
			refuse(http.StatusBadRequest, "cipher: message authentication failed")
			return
		}
		answer(map[string]any{"plaintext": base64.StdEncoding.EncodeToString(plain)})
	case r.URL.Path == "/v1/team/transit/keys/moorage/rotate" && r.Method == http.MethodPost:
		e.turn()
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/v1/team/transit/keys/moorage" && r.Method == http.MethodGet:
		answer(map[string]any{"latest_version": len(e.keys), "type": "aes256-gcm96"})
	default:
		refuse(http.StatusNotFound, "")
	}
}

// set changes e between calls.
func (e *engine) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

func writeToken(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newSealer(t *testing.T, server *httptest.Server, tokenFile string) *vault.Sealer {
	t.Helper()
	s, err := vault.New(vault.Config{
		Address: strings.Replace(server.URL, "http", vault.SchemePlain, 1) + "/team/transit/keys/moorage", TokenFile: tokenFile,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var owner = secrets.Owner{Store: "5a", Secret: "01.server", Warehouse: "77"}

// A value opens for its owner, as long as the engine and the token are there.
func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	e, server := newEngine(t)
	tokenFile := writeToken(t, "s.first\n")
	s := newSealer(t, server, tokenFile)
	const plain = `{"secret-access-key":"hunter2"}`
	sealed, err := s.Seal([]byte(plain), owner)
	if err != nil || strings.Contains(string(sealed), "hunter2") {
		t.Fatalf("Seal = %q, %v", sealed, err)
	}
	open := func(sealed []byte, owner secrets.Owner, want error) {
		t.Helper()
		got, err := s.Open(sealed, owner)
		if !errors.Is(err, want) || want == nil && string(got) != plain || want != nil && got != nil {
			t.Errorf("Open = %q, %v; want %v", got, err, want)
		}
	}
	open(sealed, owner, nil)
	for _, moved := range []secrets.Owner{
		{Store: "5b", Secret: owner.Secret, Warehouse: owner.Warehouse}, {Store: owner.Store, Secret: "02.server", Warehouse: owner.Warehouse},
		{Store: owner.Store, Secret: owner.Secret, Warehouse: "78"},
	} {
		open(sealed, moved, secrets.ErrOpen)
	}
	for i := range sealed {
		changed := append([]byte{}, sealed...)
		changed[i] ^= 1
		if got, err := s.Open(changed, owner); err == nil && string(got) != plain || err == nil && i > 12 && i < len(sealed)-4 {
			t.Errorf("a value with byte %d changed opens to %q", i, got)
		}
	}
	open(nil, owner, secrets.ErrOpen)

	e.set(func() { e.token = "s.second" })
	open(sealed, owner, secrets.ErrAway)
	if err := os.WriteFile(tokenFile, []byte("s.second"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(sealed, owner, nil) // the token was renewed
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusTemporaryRedirect, http.StatusInternalServerError} {
		e.set(func() { e.down = status })
		open(sealed, owner, secrets.ErrAway)
		if _, err := s.Seal([]byte(plain), owner); !errors.Is(err, secrets.ErrAway) {
			t.Errorf("Seal while the engine answers %d: %v", status, err)
		}
	}
	server.Close()
	open(sealed, owner, secrets.ErrAway)
}

// A value of a file is not taken for one of an engine, nor the other way round.
func TestValuesOfAFile(t *testing.T) {
	t.Parallel()
	_, server := newEngine(t)
	s := newSealer(t, server, writeToken(t, "s.first"))
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	ofFile, err := keys.Seal([]byte("a secret that is long enough"), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ofFile, owner); !errors.Is(err, secrets.ErrNoKey) {
		t.Errorf("a value of a file: %v", err)
	}
	ofEngine, err := s.Seal([]byte("a secret that is long enough"), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open(ofEngine, owner); !errors.Is(err, secrets.ErrOpen) {
		t.Errorf("a value of an engine: %v", err)
	}
}

// After a turn old values open, and Rewrap seals them with the new version, once.
func TestTurn(t *testing.T) {
	t.Parallel()
	_, server := newEngine(t)
	s := newSealer(t, server, writeToken(t, "s.first"))
	sealed, err := s.Seal([]byte("hunter2"), owner)
	if err != nil {
		t.Fatal(err)
	}
	now, before, err := s.Turn(t.Context())
	if err != nil || now != "moorage v2" || before != "moorage v1" {
		t.Fatalf("Turn = %q, %q, %v", now, before, err)
	}
	again, changed, err := s.Rewrap(sealed, owner)
	if err != nil || !changed || !strings.Contains(string(again), "vault:v2:") {
		t.Errorf("Rewrap = %q, %t, %v", again, changed, err)
	}
	if third, changed, err := s.Rewrap(again, owner); err != nil || changed || string(third) != string(again) {
		t.Errorf("Rewrap a second time = %q, %t, %v", third, changed, err)
	}
	if plain, err := s.Open(again, owner); err != nil || string(plain) != "hunter2" {
		t.Errorf("Open = %q, %v", plain, err)
	}
	if _, _, err := s.Rewrap(sealed, secrets.Owner{Store: "1", Secret: "2", Warehouse: "3"}); !errors.Is(err, secrets.ErrOpen) {
		t.Errorf("Rewrap for another owner: %v", err)
	}
}

// New refuses what names no key. In particular no token goes over a network in the clear.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	token := writeToken(t, "s.first")
	for _, config := range []vault.Config{
		{Address: "hcvault://vault:8200/transit/keys/moorage"}, // without a token
		{Address: "hcvault://vault:8200/transit/moorage", TokenFile: token},
		{Address: "hcvault://vault:8200/transit/keys/a/b", TokenFile: token},
		{Address: "hcvault:///transit/keys/moorage", TokenFile: token},
		{Address: "hcvault://user:word@vault:8200/transit/keys/moorage", TokenFile: token},
		{Address: "hcvault+http://vault:8200/transit/keys/moorage", TokenFile: token},
		{Address: "hcvault+http://192.0.2.1:8200/transit/keys/moorage", TokenFile: token},
		{Address: "hcvault://vault:8200/transit/keys/moorage", TokenFile: token, CAFile: filepath.Join(t.TempDir(), "none")},
		{Address: "hcvault://vault:8200/transit/keys/moorage", TokenFile: token, CAFile: token},
	} {
		if s, err := vault.New(config); err == nil {
			t.Errorf("%+v is accepted: %v", config, s)
		}
	}
	if _, err := vault.New(vault.Config{Address: "hcvault://vault:8200/team/transit/keys/moorage", TokenFile: token}); err != nil {
		t.Error(err)
	}
}
