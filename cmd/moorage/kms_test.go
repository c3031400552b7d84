package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/secrets"
	"moorage/testkit/fakecloud"
	"moorage/testkit/sealers"
)

// kms is a test double of a key service.
type kms interface {
	NewKey(tb testing.TB) string
	Rotate(tb testing.TB, key string)
	Fail(requests int, refusal sealers.Refusal)
	Close()
}

// useAWS makes this process use the test double of AWS.
func useAWS(t *testing.T) (kms, string) {
	double := sealers.NewAmazon(t)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": sealers.AccessKeyID, "AWS_SECRET_ACCESS_KEY": sealers.SecretAccessKey,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return double, double.URL
}

func useGoogle(t *testing.T) (kms, string) {
	double := sealers.NewGoogle(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", double.CredentialsFile(t))
	return double, double.URL
}

// TestKeyInACloud reseals the secret of a warehouse, from a key in a file to a key in a cloud. Then
// it rotates that key, and stops the service. The test is not parallel, because the credentials are
// in the environment.
func TestKeyInACloud(t *testing.T) {
	for _, tt := range []struct {
		scheme string
		use    func(*testing.T) (kms, string)
	}{{"aws-kms://", useAWS}, {"gcp-kms://", useGoogle}} {
		t.Run(strings.TrimSuffix(tt.scheme, "://"), func(t *testing.T) {
			double, endpoint := tt.use(t)
			keyInACloud(t, double, endpoint, tt.scheme)
		})
	}
}

func keyInACloud(t *testing.T, double kms, endpoint, scheme string) {
	server := fakecloud.StartS3(t)
	data, keyFile := t.TempDir(), filepath.Join(t.TempDir(), "keys.json")
	secret := writeFile(t, "secret.json",
		`{"access-key-id":"`+fakecloud.S3AccessKeyID+`","secret-access-key":"`+fakecloud.S3SecretAccessKey+`"}`)
	inFile := []string{"--data", data, "--secrets-key", keyFile}
	key, at := double.NewKey(t), "?endpoint="+endpoint
	inCloud := []string{"--data", data, "--secrets-key", scheme + key + at}
	moving := append(inCloud, "--former-secrets-key", keyFile)
	command := func(want int, says string, words []string, settings []string) {
		t.Helper()
		got := runToEnd(t, append(words, settings...)...)
		if got.code != want || !strings.Contains(got.stdout+got.stderr, says) {
			t.Errorf("%q: %+v, want %d and %q", words, got, want, says)
		}
	}
	rotate := []string{"secrets", "rotate"}
	keep := []string{"secrets", "rotate", "--keep-key"}
	load := func(want int, says string, settings []string) {
		t.Helper()
		s := startServe(t, settings...)
		defer s.stop()
		code, body := s.request(t, "GET", "/v1/lake/namespaces/harbour/tables/ships", "")
		if code != want || !strings.Contains(body+s.stderr.String(), says) {
			t.Errorf("load with %q: %d %s, want %d and %q; log %s", settings, code, body, want, says, s.stderr.String())
		}
	}

	command(cli.ExitDone, "", []string{"secrets", "init", "--secrets-key", keyFile}, nil)
	s := startServe(t, inFile...) // creates the store
	s.stop()
	command(cli.ExitDone, "", []string{"warehouse", "create", "lake", "--location", "s3://" + server.NewBucket(t) + "/lake",
		ownOption, "s3.endpoint=" + server.Endpoint, ownOption, "s3.region=us-east-1", "--secret-file", secret}, inFile)
	s = startServe(t, inFile...)
	s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`)
	s.request(t, "POST", "/v1/lake/namespaces/harbour/tables",
		`{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`)
	s.stop()

	load(http.StatusInternalServerError, "it was sealed with a key of a file", inCloud)
	load(http.StatusOK, "", moving)
	command(cli.ExitDone, "sealed 1 secret", keep, moving)
	command(cli.ExitDone, "sealed 0 secrets", keep, moving)
	load(http.StatusOK, "", inCloud)
	load(http.StatusInternalServerError, "", inFile)

	command(cli.ExitFailed, "Then seal again with moorage secrets rotate --keep-key", rotate, inCloud)
	double.Rotate(t, key)
	load(http.StatusOK, "", inCloud)
	command(cli.ExitDone, "sealed 1 secret", keep, inCloud)
	command(cli.ExitDone, "sealed 0 secrets", keep, inCloud)
	load(http.StatusInternalServerError, "the key that the value was sealed with is not here",
		[]string{"--data", data, "--secrets-key", scheme + double.NewKey(t) + at})

	load(http.StatusOK, "", []string{
		"--data", data, "--secrets-key", keyFile, "--former-secrets-key", scheme + key + at,
	})

	double.Fail(-1, sealers.Refusal{Status: http.StatusForbidden, Kind: "AccessDenied", Words: "you may not"})
	load(http.StatusServiceUnavailable, "AccessDenied: you may not", inCloud)
	double.Close()
	load(http.StatusServiceUnavailable, "the keys cannot be reached", inCloud)
	command(cli.ExitFailed, "the keys cannot be reached", keep, inCloud)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var took []time.Duration // of a few starts, because the machine itself may be slow
	const most = 5 * time.Second
	for len(took) == 0 || len(took) < 4 && slices.Min(took) > most {
		begun := time.Now()
		s = startServe(t, "--data", data, "--secrets-key", scheme+key+"?endpoint=http://"+silent.Addr().String())
		if code, body := s.request(t, "GET", "/v1/config", ""); code != http.StatusOK {
			t.Errorf("a start while the service is silent: %d %s", code, body)
		}
		took = append(took, time.Since(begun))
		s.stop()
	}
	if slices.Min(took) > most {
		t.Errorf("starts while the service is silent took %s, want %s at most", took, most)
	}
}

// TestOpenSealer checks that an invalid address of a key stops the start with one sentence. No
// service is called.
func TestOpenSealer(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "keys.json")
	if _, err := secrets.Init(keyFile); err != nil {
		t.Fatal(err)
	}
	const inAWS, inGoogle = "aws-kms://arn:aws:kms:eu-north-1:111122223333:key/1",
		"gcp-kms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
	for _, tt := range []struct {
		name   string
		config cli.Config
		want   string // a part of the error; empty if there is no error
	}{
		{"none", cli.Config{}, ""},
		{"a file", cli.Config{SecretsKey: keyFile}, ""},
		{"from a file to AWS", cli.Config{SecretsKey: inAWS, FormerSecretsKey: keyFile}, ""},
		{"from AWS to Google", cli.Config{SecretsKey: inGoogle, FormerSecretsKey: inAWS}, ""},
		{"from a service that is none to AWS", cli.Config{SecretsKey: inAWS, FormerSecretsKey: inAWS + "?endpoint=kms"},
			"is not the address of a service"},
		{"another service", cli.Config{SecretsKey: "azure-kv://vault/key"}, "there is no key at azure-kv://"},
		{"an alias", cli.Config{SecretsKey: "aws-kms://alias/moorage"}, "an alias is none"},
		{"a former key that is none", cli.Config{SecretsKey: keyFile, FormerSecretsKey: "gcp-kms://p"}, "is not the address of a key"},
		{"an option of another service", cli.Config{SecretsKey: inAWS + "?token-file=a"}, "must be one of endpoint"},
		{"a Vault without a token", cli.Config{SecretsKey: "hcvault://vault:8200/transit/keys/moorage"}, "a file with the token is needed"},
	} {
		source, err := openSealer(tt.config)
		switch {
		case tt.want == "" && (err != nil || (source == nil) != (tt.config.SecretsKey == "")):
			t.Errorf("%s: %v, %v", tt.name, source, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
