package gcs_test

import (
	"maps"
	"strings"
	"testing"

	"moorage/storage/gcs"
	"moorage/testkit/fakecloud"
)

func TestWith(t *testing.T) {
	t.Parallel()
	got, err := gcs.Options{Project: "mine", Endpoint: "http://127.0.0.1:4443", Trusted: "http://127.0.0.1:4443"}.With(map[string]string{
		gcs.OptionProject: "theirs", gcs.OptionImpersonate: "engines@p.iam.gserviceaccount.com", gcs.OptionSTS: "https://sts.googleapis.com",
	})
	want := gcs.Options{
		Project: "theirs", Endpoint: "http://127.0.0.1:4443", STS: "https://sts.googleapis.com", Trusted: "http://127.0.0.1:4443",
		Impersonate: "engines@p.iam.gserviceaccount.com",
	}
	if err != nil || got != want {
		t.Errorf("With = %+v, %v; want %+v", got, err, want)
	}
}

func TestWithRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, value, want string }{
		{"s3.endpoint", "http://127.0.0.1", "unknown option"},
		{"gcs.oauth2.token", "x", "unknown option"},
		{gcs.OptionEndpoint, "127.0.0.1:4443", "not the address"},
		{gcs.OptionEndpoint, "https://user@storage.googleapis.com", "not the address"},
		{gcs.OptionEndpoint, "https://storage.googleapis.com/x", "not the address"},
		{gcs.OptionSTS, "", "not the address"},
		{gcs.OptionNoAuth, "maybe", "true or false"},
		{gcs.OptionProject, "a b", "the id of a project"},
		{gcs.OptionImpersonate, "a/b", "e-mail address"},
		{gcs.OptionImpersonate, "a@b:generateAccessToken?x=", "e-mail address"},
	} {
		_, err := gcs.Options{}.With(map[string]string{tt.name: tt.value})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("With(%s=%s) = %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
}

// TestTokensStayWithGoogle: no option of a place sends tokens to a host that the process does not
// trust.
func TestTokensStayWithGoogle(t *testing.T) {
	t.Parallel()
	process := gcs.Options{Trusted: "https://lake.example http://127.0.0.1:4443"}
	for endpoint, allowed := range map[string]bool{
		"https://storage.googleapis.com":             true,
		"https://private.googleapis.com":             true,
		"https://storage-lake.p.googleapis.com":      true,
		"http://127.0.0.1:4443":                      true, // the process trusts it
		"http://storage.googleapis.com":              false,
		"https://storage.googleapis.com:8443":        false,
		"https://storage.googleapis.com.example.org": false,
		"https://example.org":                        false,
		"https://evilgoogleapis.com":                 false,
		"https://googleapis.com":                     false,
		"http://127.0.0.1:4444":                      false,
	} {
		for _, name := range []string{gcs.OptionEndpoint, gcs.OptionSTS} {
			place := map[string]string{name: endpoint}
			if _, err := process.With(place); (err == nil) != allowed {
				t.Errorf("With(%v) = %v, want allowed %t", place, err, allowed)
			}
			place[gcs.OptionNoAuth] = "true"
			if _, err := process.With(place); err != nil {
				t.Errorf("With(%v) = %v; no token would go there", place, err)
			}
		}
	}
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options gcs.Options
		want    map[string]string
	}{
		{gcs.Options{}, map[string]string{}},
		{gcs.Options{Endpoint: "http://127.0.0.1:1", NoAuth: true, Project: "p", Impersonate: "a@b"}, map[string]string{
			"gcs.service.host": "http://127.0.0.1:1", "gcs.no-auth": "true", "gcs.project-id": "p",
		}},
	} {
		if got := open(t, tt.options, "gs://bucket/a").ClientConfig(); !maps.Equal(got, tt.want) {
			t.Errorf("ClientConfig of %+v = %v, want %v", tt.options, got, tt.want)
		}
	}
}

func TestWithSecret(t *testing.T) {
	t.Parallel()
	key := fakecloud.NewGoogleCloud(t).Key(t)
	got, err := gcs.Options{}.WithSecret(key)
	if err != nil || !strings.Contains(got.Key, key["private_key_id"]) {
		t.Errorf("WithSecret = %v", err)
	}
	if _, err := (gcs.Options{NoAuth: true}).WithSecret(key); err == nil {
		t.Error("WithSecret without tokens: no error")
	}
	for name, change := range map[string]func(map[string]string){
		"empty":        func(key map[string]string) { clear(key) },
		"another type": func(key map[string]string) { key["type"] = "authorized_user" },
		"no key":       func(key map[string]string) { delete(key, "private_key") },
		"no account":   func(key map[string]string) { delete(key, "client_email") },
		"of S3":        func(key map[string]string) { clear(key); key["access-key-id"] = "secret-part" },
	} {
		broken := maps.Clone(key)
		change(broken)
		_, err := gcs.Options{}.WithSecret(broken)
		if err == nil || strings.Contains(err.Error(), "secret-part") || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: WithSecret = %v, want an error without the secret", name, err)
		}
	}
}
