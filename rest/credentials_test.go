package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/vending"
	"moorage/storage"
	"moorage/testkit/answers"
)

// vendedAccess returns the access of a client that gets credentials.
func vendedAccess(version string) vending.Delegated {
	return vending.Delegated{
		Delegation: vending.VendedCredentials, Prefix: "s3://lake/wh/a/t/", Version: version, Refresh: true,
		Credential: storage.Credential{
			Config:  map[string]string{"s3.access-key-id": "AK" + version, "s3.session-token": "token"},
			Expires: time.Unix(1, 0), RefreshedAt: "client.refresh-credentials-endpoint",
		},
		Encoded: fmt.Appendf(nil, `"s3.access-key-id":"AK%s","s3.session-token":"token"`, version),
	}
}

type credentialedAnswer struct {
	Config      map[string]string `json:"config"`
	Credentials []struct {
		Prefix string            `json:"prefix"`
		Config map[string]string `json:"config"`
	} `json:"storage-credentials"`
}

// TestLoadAnswersCredentials requests credentials, and checks their place in the answer.
func TestLoadAnswersCredentials(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 1)
	table.Config = map[string]string{"s3.region": "x"}
	fake := &fakeCatalog{table: table, access: vendedAccess("1")}
	h := NewServer(TestConfig{Catalog: fake})
	for _, path := range []string{tablePath, "/v1/w/namespaces/a%1Fb/tables/t"} {
		w := send(h, "GET", path, "", "X-Iceberg-Access-Delegation", "remote-signing, vended-credentials")
		var answer credentialedAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Credentials) != 1 {
			t.Fatalf("%v: %s", err, w.Body)
		}
		want := map[string]string{
			"s3.region": "x", "s3.access-key-id": "AK1", "s3.session-token": "token",
			"client.refresh-credentials-endpoint": strings.TrimPrefix(path, "/") + "/credentials",
		}
		if one := answer.Credentials[0]; one.Prefix != "s3://lake/wh/a/t/" || !maps.Equal(one.Config, want) ||
			!maps.Equal(answer.Config, want) {
			t.Errorf("%s answers %+v, want %v in both places", path, answer, want)
		}
		if got := w.Header().Get("Cache-Control"); got != "private, no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		if got := w.Header().Get("Vary"); !strings.Contains(got, "Authorization") {
			t.Errorf("Vary is %q", got)
		}
	}
	w := send(h, "GET", tablePath, "")
	if body := w.Body.String(); strings.Contains(body, "AK1") || strings.Contains(body, "storage-credentials") {
		t.Errorf("nobody asked, and the answer is %.300s", body)
	}
	w = send(h, "GET", tablePath, "", "X-Iceberg-Access-Delegation", "something-else")
	if strings.Contains(w.Body.String(), "AK1") {
		t.Error("an unknown delegation gets credentials")
	}
}

// TestLoadTagOfCredentials checks that the ETag stays the same exactly as long as the server
// returns the same credential.
func TestLoadTagOfCredentials(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 1), access: vendedAccess("1")}
	h := NewServer(TestConfig{Catalog: fake})
	const header, value = "X-Iceberg-Access-Delegation", "vended-credentials"
	first := send(h, "GET", tablePath, "", header, value).Header()["ETag"][0]
	if w := send(h, "GET", tablePath, "", header, value, "If-None-Match", first); w.Code != 304 {
		t.Errorf("with the same credential: %d", w.Code)
	}
	fake.access = vendedAccess("2")
	w := send(h, "GET", tablePath, "", header, value, "If-None-Match", first)
	if w.Code != 200 || w.Header()["ETag"][0] == first || !strings.Contains(w.Body.String(), "AK2") {
		t.Errorf("with a new credential: %d, tag %q", w.Code, w.Header()["ETag"])
	}
}

func TestLoadAnswersSigning(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{table: sampleTable(t, 1), access: vending.Delegated{Delegation: vending.RemoteSigning}}
	h := answers.Watched(t, NewServer(TestConfig{Catalog: fake}))
	body := send(h, "GET", tablePath, "", "X-Iceberg-Access-Delegation", "remote-signing").Body.Bytes()
	if got := signingConfig(t, body); got != "{}" {
		t.Errorf("remote-signing-config is %q", got)
	}
	answer := takeApart(t, body)
	want := map[string]string{
		"s3.remote-signing-enabled": "true", "s3.signer": "S3V4RestSigner",
		"s3.signer.endpoint": "v1/w/namespaces/a/tables/t/sign", "signer.endpoint": "v1/w/namespaces/a/tables/t/sign",
		"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
	}
	if !maps.Equal(answer.Config, want) {
		t.Errorf("config is %v, want %v", answer.Config, want)
	}
	for _, access := range []vending.Delegated{{Reason: "it rains"}, vendedAccess("1")} {
		fake.access = access
		body := send(h, "GET", tablePath, "", "X-Iceberg-Access-Delegation", "remote-signing").Body.Bytes()
		if got := signingConfig(t, body); got != "" {
			t.Errorf("remote-signing-config is %q, and nothing is signed", got)
		}
	}
	fake.access = vending.Delegated{Reason: "it rains"}
	answer = takeApart(t, send(h, "GET", tablePath, "", "X-Iceberg-Access-Delegation", "remote-signing").Body.Bytes())
	if answer.Config["moorage.delegation"] != "none: it rains" {
		t.Errorf("config is %v", answer.Config)
	}
}

// signingConfig returns the member of a load's answer that tells newer clients to use signing.
func signingConfig(t *testing.T, body []byte) string {
	t.Helper()
	var answer struct {
		Signing json.RawMessage `json:"remote-signing-config"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Signing)
}

func TestLoadCredentials(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{access: vendedAccess("1")}
	h := NewServer(TestConfig{Catalog: fake})
	w := send(h, "GET", tablePath+"/credentials?planId=1", "")
	var answer credentialedAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || len(answer.Credentials) != 1 ||
		answer.Credentials[0].Config["s3.access-key-id"] != "AK1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Cache-Control"); got != "private, no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
	fake.fail = moorage.Errorf(moorage.KindBadRequest, "none")
	if w := send(h, "GET", tablePath+"/credentials", ""); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSignRequest(t *testing.T) {
	t.Parallel()
	fake := new(fakeCatalog)
	h := NewServer(TestConfig{Catalog: fake})
	const good = `{"region":"us-east-1","uri":"http://s3/b/k?delete","method":"POST",` +
		`"headers":{"Content-MD5":["x"]},"body":"<Delete/>","properties":{"a":"b"},"provider":"s3"}`
	w := send(h, "POST", tablePath+"/sign", good)
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"uri":"http://s3/b/k?delete","headers":{"Authorization":["AWS4"]}}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control is %q", got)
	}
	if got := fake.signed; got.Method != "POST" || got.Region != "us-east-1" || string(got.Body) != "<Delete/>" ||
		got.Headers["Content-MD5"][0] != "x" {
		t.Errorf("asked for %+v", got)
	}
	send(h, "POST", tablePath+"/sign", strings.Replace(good, `"body":"<Delete/>",`, "", 1))
	if fake.signed.Body != nil {
		t.Error("there is a body, although none was sent")
	}
	for name, body := range map[string]string{
		"no region":       strings.Replace(good, `"region":"us-east-1",`, "", 1),
		"no URI":          strings.Replace(good, `"uri":"http://s3/b/k?delete",`, "", 1),
		"no method":       strings.Replace(good, `"method":"POST",`, "", 1),
		"no headers":      strings.Replace(good, `"headers":{"Content-MD5":["x"]},`, "", 1),
		"a header's text": strings.Replace(good, `["x"]`, `"x"`, 1),
		"a number":        strings.Replace(good, `["x"]`, `[1]`, 1),
		"a list":          strings.Replace(good, `{"Content-MD5":["x"]}`, `[]`, 1),
		"other provider":  strings.Replace(good, `"s3"`, `"gcs"`, 1),
		"no JSON":         "x",
	} {
		calls := len(fake.calls)
		if w := send(h, "POST", tablePath+"/sign", body); w.Code != 400 || len(fake.calls) != calls {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	fake.fail = moorage.Errorf(moorage.KindForbidden, "not ours")
	if w := send(h, "POST", tablePath+"/sign", good); w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestStagedAccess requests access to a staged table with a token. The token is valid only for that
// table, and for the caller to which it was issued.
func TestStagedAccess(t *testing.T) {
	t.Parallel()
	const location = "s3://lake/wh/a/t-12"
	vended, signing := vendedAccess("1"), vending.Delegated{Delegation: vending.RemoteSigning}
	vended.Staged, signing.Staged = location, location
	sign := `{"region":"us-east-1","uri":"http://s3/b/k","method":"GET","headers":{}}`
	fake := &fakeCatalog{table: sampleTable(t, 1)}
	h := NewServer(TestConfig{Catalog: fake})
	create := func(access vending.Delegated) map[string]string {
		fake.access = access
		body := `{"name":"t","stage-create":true,"schema":{"type":"struct","fields":[]}}`
		w := send(h, "POST", "/v1/w/namespaces/a/tables", body, "X-Iceberg-Access-Delegation", string(access.Delegation))
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		return takeApart(t, w.Body.Bytes()).Config
	}
	refresh := create(vended)["client.refresh-credentials-endpoint"]
	endpoint := create(signing)["s3.signer.endpoint"]
	for _, path := range []string{refresh, endpoint} {
		if !strings.HasPrefix(path, "v1/w/namespaces/a/tables/t/") || !strings.Contains(path, "?staged=") {
			t.Fatalf("the endpoint is %q", path)
		}
	}
	fake.access = vended
	w := send(h, "GET", "/"+refresh, "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `tables/t/credentials?staged=`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(h, "POST", "/"+endpoint, sign); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !slices.Equal(fake.staged, []string{location, location}) {
		t.Errorf("the catalog was told %q", fake.staged)
	}
	for _, path := range []string{
		strings.Replace(refresh, "tables/t/", "tables/u/", 1), "v1/w/namespaces/a/tables/t/credentials?staged=x",
		"v1/w/namespaces/a/tables/t/credentials?staged=",
	} {
		if w := send(h, "GET", "/"+path, ""); w.Code != 403 {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	if len(fake.staged) != 2 {
		t.Errorf("the catalog was asked %d times", len(fake.staged))
	}
}

// In an answer without other settings, the credential is the first member.
func TestAppendCredential(t *testing.T) {
	t.Parallel()
	credential := []byte(`"k":"v"`)
	for config, want := range map[string]string{
		`{}`:        `[{"prefix":"s3://b","config":{"k":"v"}}]`,
		`{"a":"b"}`: `[{"prefix":"s3://b","config":{"a":"b","k":"v"}}]`,
	} {
		if got := string(appendCredential(nil, "s3://b", []byte(config), credential)); got != want {
			t.Errorf("with %s: %s, want %s", config, got, want)
		}
	}
	if got := string(appendConfig([]byte("x"), []byte("{}"), nil)); got != "x{}" {
		t.Errorf("without a credential: %s", got)
	}
}
