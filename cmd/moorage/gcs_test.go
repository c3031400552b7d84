package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// TestDefaultWarehouseInGCS serves the warehouse default from a bucket, commits to a table, and
// checks it.
func TestDefaultWarehouseInGCS(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartGoogle(t)
	bucket := server.NewBucket(t)
	flags := []string{"--data", t.TempDir()}
	s := startServe(t, append(flags, "--default-location", "gs://"+bucket+"/lake/",
		defaultOption, "gcs.service.host="+server.URL, defaultOption, "gcs.no-auth=true")...)
	s.makeTable(t)
	const change = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`
	if code, body := s.request(t, "POST", tablePath, change); code != http.StatusOK {
		t.Fatalf("commit: %d %s", code, body)
	}
	if code, body := s.request(t, "GET", tablePath, ""); code != http.StatusOK || !strings.Contains(body, `"a":"b"`) {
		t.Errorf("load: %d %s", code, body)
	}
	config := s.loadedConfig(t, tablePath)
	if config["gcs.service.host"] != server.URL || config["gcs.no-auth"] != "true" {
		t.Errorf("config %v", config)
	}
	for _, want := range []string{"iceberg-gcp-bundle", "fs.native-gcs.enabled=true", "ACCESS_DELEGATION_MODE 'none'"} {
		if banner := s.stdout.String(); !strings.Contains(banner, want) || strings.Contains(banner, "HadoopFileIO") {
			t.Errorf("printed without %s:\n%s", want, banner)
		}
	}
	if names := server.Names(t, bucket); len(names) != 2 || !strings.HasPrefix(names[0], "lake/harbour/ships/metadata/") {
		t.Errorf("objects %q", names)
	}
	if log := s.stderr.String(); strings.Contains(log, "level=WARN") {
		t.Errorf("log:\n%s", log)
	}
	if code, body := s.request(t, "GET", "/management/v1/doctor?deep=true", ""); code != http.StatusOK || !strings.Contains(body, `1 table, 0 views: no problems`) {
		t.Errorf("check: %d %s", code, body)
	}
	if code := s.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if got := runToEnd(t, append([]string{"doctor", "--deep"}, flags...)...); got.code != cli.ExitDone || !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
}

// TestWarehouseCreateInGCS makes warehouses in a bucket that exists, in one that does not, and at
// an endpoint to which tokens must not be sent.
func TestWarehouseCreateInGCS(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartGoogle(t)
	bucket := server.NewBucket(t)
	data := t.TempDir()
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // makes the store
		t.Fatalf("exit code %d", code)
	}
	create := func(name, location string, more ...string) result {
		return runToEnd(t, append([]string{"warehouse", "create", name, "--data", data, "--location", location}, more...)...)
	}
	emulator := []string{ownOption, "gcs.service.host=" + server.URL, ownOption, "gcs.no-auth=true"}
	if got := create("nowhere", "gs://no-such-bucket/lake", emulator...); got.code != cli.ExitFailed || !isSentence(got.stderr, "there is no bucket called no-such-bucket") {
		t.Errorf("in a bucket that is not there: %+v", got)
	}
	if got := create("away", "gs://"+bucket+"/lake", "--storage-option", "gcs.service.host="+server.URL); got.code != cli.ExitFailed || !isSentence(got.stderr, "tokens are not sent to "+server.URL) {
		t.Errorf("with tokens for another host: %+v", got)
	}
	if got := create("vends", "gs://"+bucket+"/lake", append(emulator, "--delegation", "vended-credentials")...); got.code != cli.ExitFailed || !isSentence(got.stderr, "with gcs.no-auth=true there are no tokens for credentials") {
		t.Errorf("that is to give credentials without tokens: %+v", got)
	}
	if got := create("lake", "gs://"+bucket+"/lake", emulator...); got.code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	if names := server.Names(t, bucket); len(names) > 0 {
		t.Errorf("the probes left %q", names)
	}
	// The warehouse's record has the endpoint of the storage.
	s := startServe(t, "--data", data)
	if code, body := s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`); code != http.StatusOK {
		t.Fatalf("create a namespace: %d %s", code, body)
	}
	const table = `{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	if code, body := s.request(t, "POST", "/v1/lake/namespaces/harbour/tables", table); code != http.StatusOK {
		t.Fatalf("create a table: %d %s", code, body)
	}
}

// loadedTable has the parts of the answer to a load that tell engines how to reach the files.
type loadedTable struct {
	Metadata           struct{ Location string }
	Config             map[string]string
	StorageCredentials []struct {
		Prefix string
		Config map[string]string
	} `json:"storage-credentials"`
}

// TestVendingInGCS gives an engine a token for its table. The storage must refuse the token for
// other files.
func TestVendingInGCS(t *testing.T) {
	cloud := fakecloud.NewGoogleCloud(t)
	key := cloud.Key(t)
	key["token_uri"] = cloud.URL + "/token"
	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(keyFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", keyFile)
	flags := []string{"--data", t.TempDir(), "--trusted-storage", cloud.URL}
	if code := startServe(t, flags...).stop(); code != cli.ExitDone { // makes the store
		t.Fatalf("exit code %d", code)
	}
	bucket := cloud.Server.NewBucket(t)
	if got := runToEnd(t, append([]string{"warehouse", "create", "lake", "--location", "gs://" + bucket + "/wh",
		"--delegation", "vended-credentials", ownOption, "gcs.service.host=" + cloud.URL,
		ownOption, "gcs.sts.endpoint=" + cloud.URL}, flags...)...); got.code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	s := startServe(t, append(flags, "--log-level", "debug")...)
	ask := func(method, path, body string, into any) {
		t.Helper()
		code, answer := s.request(t, method, path, body, "X-Iceberg-Access-Delegation", "vended-credentials")
		if code != http.StatusOK || json.Unmarshal([]byte(answer), into) != nil {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	ask("POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`, &struct{}{})
	const schema = `"schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`
	var other, made, refreshed loadedTable
	ask("POST", "/v1/lake/namespaces/harbour/tables", `{"name":"other",`+schema+`}`, &other)
	ask("POST", "/v1/lake/namespaces/harbour/tables", `{"name":"ships",`+schema+`}`, &made)
	ask("GET", "/v1/lake/namespaces/harbour/tables/ships/credentials", "", &refreshed)
	if len(made.StorageCredentials) != 1 || made.StorageCredentials[0].Prefix != made.Metadata.Location+"/" {
		t.Fatalf("credentials for %+v, want one for %s/", made.StorageCredentials, made.Metadata.Location)
	}
	const refresh = "v1/lake/namespaces/harbour/tables/ships/credentials"
	for _, config := range []map[string]string{made.Config, made.StorageCredentials[0].Config, refreshed.StorageCredentials[0].Config} {
		ends, err := strconv.ParseInt(config["gcs.oauth2.token-expires-at"], 10, 64)
		if left := time.Until(time.UnixMilli(ends)); err != nil || left < 30*time.Minute || left > time.Hour {
			t.Errorf("the token ends in %s, %v", left, err)
		}
		if got := config["gcs.oauth2.refresh-credentials-endpoint"]; got != refresh {
			t.Errorf("it is renewed at %q, want %q", got, refresh)
		}
		token := config["gcs.oauth2.token"]
		for location, want := range map[string]int{
			made.Metadata.Location + "/data/a.parquet":       http.StatusOK,
			made.Metadata.Location + "/metadata/snap-1.avro": http.StatusOK,
			other.Metadata.Location + "/data/a.parquet":      http.StatusForbidden,
			made.Metadata.Location + "x/data/a.parquet":      http.StatusForbidden,
			"gs://" + bucket + "/wh/a.parquet":               http.StatusForbidden,
		} {
			if got := writeWith(t, cloud.URL, token, location); got != want {
				t.Errorf("a write of %s is answered %d, want %d", location, got, want)
			}
		}
		if log := s.stderr.String(); token == "" || strings.Contains(log, token) {
			t.Errorf("the token %q is in the log", token)
		}
	}
}

// writeWith writes an object with a token, and returns the status of the response.
func writeWith(t *testing.T, endpoint, token, location string) int {
	t.Helper()
	bucket, name, _ := strings.Cut(strings.TrimPrefix(location, "gs://"), "/")
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost,
		endpoint+"/upload/storage/v1/b/"+bucket+"/o?"+query.Encode(), strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
