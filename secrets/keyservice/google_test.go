package keyservice_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"moorage/secrets"
	"moorage/secrets/keyservice"
	"moorage/testkit/sealers"
)

// realGoogleKey is the variable with the gcp-kms:// address of a real Google key. With it,
// TestGoogleContract uses that key, with the credentials of the machine.
const realGoogleKey = "MOORAGE_TEST_GCP_KMS_KEY"

// newGoogleDouble returns a simulated service. Its credentials are in the environment, so tests
// that use it are not parallel.
func newGoogleDouble(t *testing.T) *sealers.Google {
	t.Helper()
	double := sealers.NewGoogle(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", double.CredentialsFile(t))
	return double
}

func newGoogle(t *testing.T, double *sealers.Google, key string) *keyservice.Google {
	t.Helper()
	s, err := keyservice.NewGoogle(keyservice.GoogleConfig{Address: keyservice.SchemeGoogle + "://" + key, Endpoint: double.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.SetTimeouts(keyservice.Patience, keyservice.Patience)
	if got := s.TokenTimeout(); got != keyservice.AttemptTimeout {
		t.Errorf("a request for a token may take %s, want %s", got, keyservice.AttemptTimeout)
	}
	s.SetTokenTimeout(keyservice.Patience)
	return s
}

func TestGoogleContract(t *testing.T) {
	sealers.Run(t, func(t *testing.T) sealers.Fixture {
		if key := os.Getenv(realGoogleKey); key != "" {
			s, err := keyservice.NewGoogle(keyservice.GoogleConfig{Address: key})
			if err != nil {
				t.Fatal(err)
			}
			return sealers.Fixture{Source: s, PlainBytesMax: secrets.PlainBytesMax, Foreign: true}
		}
		double := newGoogleDouble(t)
		key := double.NewKey(t)
		return sealers.Fixture{
			Source: newGoogle(t, double, key), Other: newGoogle(t, double, double.NewKey(t)),
			Refused: secrets.ErrNoKey, PlainBytesMax: secrets.PlainBytesMax,
			Turn: func(t *testing.T) { double.Rotate(t, key) },
			Fail: func(requests, status int) {
				double.Fail(requests, sealers.Refusal{Status: status, Kind: "UNAVAILABLE"})
			},
			Close: double.Close,
		}
	})
}

// A refusal is reported in the service's words. A cause that can be fixed is not reported as
// damage.
func TestGoogleRefusals(t *testing.T) {
	double := newGoogleDouble(t)
	key := double.NewKey(t)
	s := newGoogle(t, double, key)
	sealed, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status int
		kind   string
		want   error
	}{
		{http.StatusForbidden, "PERMISSION_DENIED", secrets.ErrAway},
		{http.StatusNotFound, "NOT_FOUND", secrets.ErrAway},
		{http.StatusBadRequest, "INVALID_ARGUMENT", secrets.ErrOpen},
	} {
		double.Fail(1, sealers.Refusal{Status: tt.status, Kind: tt.kind, Words: "not you,\nnot now"})
		asked := double.Asked()
		_, err := s.Open(sealed, sealers.Owner)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.kind+": not you, not now") {
			t.Errorf("%s: %v; want %v", tt.kind, err, tt.want)
		}
		if got := double.Asked() - asked; got != 1 {
			t.Errorf("%s: asked %d times", tt.kind, got)
		}
	}

	double.Rotate(t, key)
	double.Disable(key, 1)
	if _, err := s.Open(sealed, sealers.Owner); !errors.Is(err, secrets.ErrAway) || !strings.Contains(err.Error(), "DISABLED") {
		t.Errorf("a value of a version that is disabled: %v", err)
	}
}

// A withdrawn token is replaced with a new one.
func TestTokenIsReplaced(t *testing.T) {
	double := newGoogleDouble(t)
	s := newGoogle(t, double, double.NewKey(t))
	double.Fail(1, sealers.Refusal{Status: http.StatusUnauthorized, Kind: "UNAUTHENTICATED"})
	if _, err := s.Seal([]byte("hunter2"), sealers.Owner); err != nil {
		t.Errorf("with a token that was withdrawn: %v", err)
	}
	if got := double.Tokens(); got != 2 {
		t.Errorf("%d tokens were made, want 2", got)
	}
}

// Without credentials, the error names the missing ones.
func TestNoCredentials(t *testing.T) {
	double := newGoogleDouble(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
	_, err := newGoogle(t, double, double.NewKey(t)).Seal([]byte("hunter2"), sealers.Owner)
	if !errors.Is(err, secrets.ErrAway) || !strings.Contains(err.Error(), "there are no credentials for Cloud KMS") {
		t.Errorf("Seal: %v", err)
	}
}

// If the token service accepts connections but never answers, the request for a token ends after
// its timeout.
func TestSilentTokens(t *testing.T) {
	double := newGoogleDouble(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	content, err := os.ReadFile(os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := regexp.MustCompile(`"token_uri":"[^"]*"`).ReplaceAllString(string(content),
		`"token_uri":"http://`+listener.Addr().String()+`"`)
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, []byte(elsewhere), 0o600); err != nil || elsewhere == string(content) {
		t.Fatal(err, elsewhere)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	s := newGoogle(t, double, double.NewKey(t))
	s.SetTimeouts(time.Hour, time.Hour) // so that only the timeout of the request for a token ends the call
	s.SetTokenTimeout(50 * time.Millisecond)
	if _, err = s.Seal([]byte("hunter2"), sealers.Owner); !errors.Is(err, secrets.ErrAway) {
		t.Errorf("Seal: %v", err)
	}
}

// If an answer was changed in transit, the request is repeated. An answer that stays wrong is not
// used.
func TestChecksums(t *testing.T) {
	double := newGoogleDouble(t)
	s := newGoogle(t, double, double.NewKey(t))
	double.Damage(3)
	sealed, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if err != nil {
		t.Fatalf("Seal with three answers damaged: %v", err)
	}
	double.Damage(3)
	if plain, err := s.Open(sealed, sealers.Owner); err != nil || string(plain) != "hunter2" {
		t.Errorf("Open with three answers damaged: %q, %v", plain, err)
	}
	double.Damage(8)
	if plain, err := s.Open(sealed, sealers.Owner); !errors.Is(err, secrets.ErrAway) || plain != nil {
		t.Errorf("Open with all answers damaged: %q, %v", plain, err)
	}
	if sealed, err := s.Seal([]byte("hunter2"), sealers.Owner); !errors.Is(err, secrets.ErrAway) || sealed != nil {
		t.Errorf("Seal with all answers damaged: %q, %v", sealed, err)
	}
}

// Only the key's administrator can create versions.
func TestGoogleTurn(t *testing.T) {
	double := newGoogleDouble(t)
	_, _, err := newGoogle(t, double, double.NewKey(t)).Turn(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--location europe-north1 --keyring moorage --key key-0") {
		t.Errorf("Turn: %v", err)
	}
}

// NewGoogle refuses an address that is not one of a key, and a service that must not get a token.
func TestGoogleNewRefuses(t *testing.T) {
	const key = "gcp-kms://projects/p/locations/europe-north1/keyRings/r/cryptoKeys/k"
	for _, config := range []keyservice.GoogleConfig{
		{Address: key + "/cryptoKeyVersions/1"},
		{Address: "gcp-kms://projects/p/locations/global/keyRings/r"},
		{Address: "gcp-kms://projects/p/locations/../keyRings/r/cryptoKeys/k"},
		{Address: "gcp-kms://projects/p/locations/global/keyRings/r/cryptoKeys/k:encrypt"},
		{Address: strings.TrimPrefix(key, "gcp-kms://")},
		{Address: key, Endpoint: "http://kms.example.com"},
		{Address: key, Endpoint: "https://kms.example.com?x=1"},
	} {
		if s, err := keyservice.NewGoogle(config); err == nil {
			t.Errorf("%+v is accepted: %v", config, s)
		}
	}
	if _, err := keyservice.NewGoogle(keyservice.GoogleConfig{Address: key}); err != nil {
		t.Error(err)
	}
}
