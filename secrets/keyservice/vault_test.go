package keyservice_test

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
	"moorage/secrets/keyservice"
	"moorage/testkit/sealers"
)

// engine simulates a transit engine according to its documentation, with a key called "moorage" of
// type aes256-gcm96.
type engine struct {
	// mu guards the fields below; a leaf.
	mu    sync.Mutex
	token string
	keys  []cipher.AEAD // by version, from 1
	down  int           // if not 0, the status of answers
	left  int           // number of such answers; negative for all
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
	var body map[string][]byte // except the ciphertext, which is a text
	var texts map[string]string
	_ = json.NewDecoder(r.Body).Decode(&texts)
	body = make(map[string][]byte)
	for name, text := range texts {
		body[name], _ = base64.StdEncoding.DecodeString(text)
	}
	switch {
	case e.left != 0:
		e.left--
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

func newVault(t *testing.T, server *httptest.Server, tokenFile string) *keyservice.Vault {
	t.Helper()
	s, err := keyservice.NewVault(keyservice.VaultConfig{
		Address: strings.Replace(server.URL, "http", keyservice.SchemePlain, 1) + "/team/transit/keys/moorage", TokenFile: tokenFile,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.SetTimeouts(keyservice.Patience, keyservice.Patience)
	return s
}

// realVaultKey is the variable with the hcvault:// address of a key in a real Vault. realToken is
// the variable with the path of a token file. With them, TestVaultContract uses that Vault.
const (
	realVaultKey = "MOORAGE_TEST_VAULT_KEY"
	realToken    = "MOORAGE_TEST_VAULT_TOKEN_FILE"
)

func TestVaultContract(t *testing.T) {
	t.Parallel()
	sealers.Run(t, func(t *testing.T) sealers.Fixture {
		if key := os.Getenv(realVaultKey); key != "" {
			s, err := keyservice.NewVault(keyservice.VaultConfig{Address: key, TokenFile: os.Getenv(realToken)})
			if err != nil {
				t.Fatal(err)
			}
			return sealers.Fixture{Source: s, PlainBytesMax: secrets.PlainBytesMax, Foreign: true}
		}
		e, server := newEngine(t)
		_, other := newEngine(t)
		tokenFile := writeToken(t, "s.first\n")
		s := newVault(t, server, tokenFile)
		return sealers.Fixture{
			Source: s, Other: newVault(t, other, tokenFile), Refused: secrets.ErrOpen,
			PlainBytesMax: secrets.PlainBytesMax, Text: true,
			Turn: func(t *testing.T) {
				if now, before, err := s.Turn(t.Context()); err != nil || now != "moorage v2" || before != "moorage v1" {
					t.Errorf("Turn = %q, %q, %v", now, before, err)
				}
			},
			Fail:  func(requests, status int) { e.set(func() { e.left, e.down = requests, status }) },
			Close: server.Close,
		}
	})
}

// The token is read for each call, so another program may renew it.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	e, server := newEngine(t)
	tokenFile := writeToken(t, "s.first\n")
	s := newVault(t, server, tokenFile)
	sealed, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if err != nil {
		t.Fatal(err)
	}
	e.set(func() { e.token = "s.second" })
	if _, err := s.Open(sealed, sealers.Owner); !errors.Is(err, secrets.ErrAway) {
		t.Errorf("Open with an old token: %v", err)
	}
	if err := os.WriteFile(tokenFile, []byte("s.second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if plain, err := s.Open(sealed, sealers.Owner); err != nil || string(plain) != "hunter2" {
		t.Errorf("Open with the token that was renewed = %q, %v", plain, err)
	}
	if err := os.Remove(tokenFile); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(sealed, sealers.Owner); !errors.Is(err, secrets.ErrAway) {
		t.Errorf("Open without a token: %v", err)
	}
}

// NewVault refuses an address that is not one of a key. In particular, no token is sent over a
// network unencrypted.
func TestVaultNewRefuses(t *testing.T) {
	t.Parallel()
	token := writeToken(t, "s.first")
	for _, config := range []keyservice.VaultConfig{
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
		if s, err := keyservice.NewVault(config); err == nil {
			t.Errorf("%+v is accepted: %v", config, s)
		}
	}
	if _, err := keyservice.NewVault(keyservice.VaultConfig{Address: "hcvault://vault:8200/team/transit/keys/moorage", TokenFile: token}); err != nil {
		t.Error(err)
	}
}
