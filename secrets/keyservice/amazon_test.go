package keyservice_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"moorage/secrets"
	"moorage/secrets/keyservice"
	"moorage/testkit/sealers"
)

// realAmazonKey is the variable with the aws-kms:// address of a real AWS key. With it,
// TestAmazonContract uses that key, with the credentials of the machine. realEndpoint is the
// variable with the URL of the service; by default, Amazon's.
const (
	realAmazonKey = "MOORAGE_TEST_AWS_KMS_KEY"
	realEndpoint  = "MOORAGE_TEST_AWS_KMS_ENDPOINT"
)

// TestMain gives the tests the credentials of the simulated service, through the same chain that a
// server uses. It hides the credentials of the machine.
func TestMain(m *testing.M) {
	if os.Getenv(realAmazonKey) == "" {
		useDouble()
	}
	os.Exit(m.Run())
}

func useDouble() {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": sealers.AccessKeyID, "AWS_SECRET_ACCESS_KEY": sealers.SecretAccessKey,
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
}

func newAmazon(t *testing.T, double *sealers.Amazon, key string) *keyservice.Amazon {
	t.Helper()
	s, err := keyservice.NewAmazon(keyservice.AmazonConfig{Address: keyservice.SchemeAmazon + "://" + key, Endpoint: double.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.SetTimeouts(keyservice.Patience, keyservice.Patience)
	return s
}

func TestAmazonContract(t *testing.T) {
	t.Parallel()
	sealers.Run(t, func(t *testing.T) sealers.Fixture {
		if key := os.Getenv(realAmazonKey); key != "" {
			s, err := keyservice.NewAmazon(keyservice.AmazonConfig{Address: key, Endpoint: os.Getenv(realEndpoint)})
			if err != nil {
				t.Fatal(err)
			}
			return sealers.Fixture{Source: s, PlainBytesMax: 4096, Foreign: true}
		}
		double := sealers.NewAmazon(t)
		key := double.NewKey(t)
		return sealers.Fixture{
			Source: newAmazon(t, double, key), Other: newAmazon(t, double, double.NewKey(t)),
			Refused: secrets.ErrNoKey, PlainBytesMax: 4096,
			Turn: func(t *testing.T) { double.Rotate(t, key) },
			Fail: func(requests, status int) {
				double.Fail(requests, sealers.Refusal{Status: status, Kind: "KMSInternalException"})
			},
			Close: double.Close,
		}
	})
}

// A refusal is reported in the service's words. A cause that can be fixed is not reported as
// damage.
func TestAmazonRefusals(t *testing.T) {
	t.Parallel()
	double := sealers.NewAmazon(t)
	s := newAmazon(t, double, double.NewKey(t))
	sealed, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind string
		want error
	}{
		{"AccessDeniedException", secrets.ErrAway},
		{"ExpiredTokenException", secrets.ErrAway},
		{"InvalidSignatureException", secrets.ErrAway},
		{"com.amazonaws.kms#DisabledException", secrets.ErrAway},
		{"NotFoundException", secrets.ErrAway},
		{"InvalidCiphertextException", secrets.ErrOpen},
		{"com.amazonaws.kms#IncorrectKeyException", secrets.ErrNoKey},
	} {
		double.Fail(1, sealers.Refusal{Status: http.StatusBadRequest, Kind: tt.kind, Words: "not you,\nnot now"})
		asked := double.Asked()
		_, err := s.Open(sealed, sealers.Owner)
		kind := tt.kind[strings.LastIndex(tt.kind, "#")+1:]
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), kind+": not you, not now") {
			t.Errorf("%s: %v; want %v", tt.kind, err, tt.want)
		}
		if got := double.Asked() - asked; got != 1 {
			t.Errorf("%s: asked %d times", tt.kind, got)
		}
	}
}

// The service throttles with status 400. The request is retried a few times.
func TestThrottled(t *testing.T) {
	t.Parallel()
	double := sealers.NewAmazon(t)
	s := newAmazon(t, double, double.NewKey(t))
	throttled := sealers.Refusal{Status: http.StatusBadRequest, Kind: "ThrottlingException", Words: "Rate exceeded"}
	double.Fail(3, throttled)
	if _, err := s.Seal([]byte("hunter2"), sealers.Owner); err != nil {
		t.Errorf("throttled three times: %v", err)
	}
	asked := double.Asked()
	double.Fail(-1, throttled)
	_, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if !errors.Is(err, secrets.ErrAway) || !strings.Contains(err.Error(), "Rate exceeded") {
		t.Errorf("throttled for good: %v", err)
	}
	if got := double.Asked() - asked; got != 4 {
		t.Errorf("asked %d times", got)
	}
}

// If the service does not report the material, a sealed value stays unchanged. Otherwise each
// Rewrap would seal it again, and a move would never end.
func TestMaterialWithoutName(t *testing.T) {
	t.Parallel()
	double := sealers.NewAmazon(t)
	double.Mute()
	key := double.NewKey(t)
	s := newAmazon(t, double, key)
	sealed, err := s.Seal([]byte("hunter2"), sealers.Owner)
	if err != nil {
		t.Fatal(err)
	}
	double.Rotate(t, key)
	if again, changed, err := s.Rewrap(sealed, sealers.Owner); err != nil || changed || !bytes.Equal(again, sealed) {
		t.Errorf("Rewrap = %q, %t, %v", again, changed, err)
	}
	if plain, err := s.Open(sealed, sealers.Owner); err != nil || string(plain) != "hunter2" {
		t.Errorf("Open = %q, %v", plain, err)
	}
}

// Only the key's administrator can rotate it.
func TestAmazonTurn(t *testing.T) {
	t.Parallel()
	double := sealers.NewAmazon(t)
	_, _, err := newAmazon(t, double, double.NewKey(t)).Turn(t.Context())
	if err == nil || !strings.Contains(err.Error(), "aws kms rotate-key-on-demand --region "+sealers.Region) {
		t.Errorf("Turn: %v", err)
	}
}

// New refuses an address that is not one of a key, and a service that must not get signed requests.
func TestAmazonNewRefuses(t *testing.T) {
	t.Parallel()
	const key = "aws-kms://arn:aws:kms:eu-north-1:111122223333:key/mrk-1"
	for _, config := range []keyservice.AmazonConfig{
		{Address: "aws-kms://arn:aws:kms:eu-north-1:111122223333:alias/moorage"},
		{Address: "aws-kms://arn:aws:s3:eu-north-1:111122223333:key/1"},
		{Address: "aws-kms://arn:aws:kms:eu-north-1:1111:key/1"},
		{Address: "aws-kms://arn:aws:kms:eu/../x:111122223333:key/1"},
		{Address: "aws-kms://1234abcd"},
		{Address: "arn:aws:kms:eu-north-1:111122223333:key/1"},
		{Address: "aws-kms://arn:aws-iso:kms:us-iso-east-1:111122223333:key/1"}, // its service is not known
		{Address: key, Endpoint: "http://kms.example.com"},
		{Address: key, Endpoint: "https://user:word@kms.example.com"},
		{Address: key, Endpoint: "kms.example.com"},
		{Address: key, Endpoint: "https://kms.example.com/path"},
	} {
		if s, err := keyservice.NewAmazon(config); err == nil {
			t.Errorf("%+v is accepted: %v", config, s)
		}
	}
	for _, config := range []keyservice.AmazonConfig{
		{Address: key}, {Address: key, Endpoint: "https://vpce-1.kms.eu-north-1.vpce.amazonaws.com"},
		{Address: "aws-kms://arn:aws-cn:kms:cn-north-1:111122223333:key/1"},
		{Address: "aws-kms://arn:aws-iso:kms:us-iso-east-1:111122223333:key/1", Endpoint: "https://kms.example.com"},
	} {
		if _, err := keyservice.NewAmazon(config); err != nil {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
