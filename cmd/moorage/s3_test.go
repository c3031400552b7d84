package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// The flags for storage options: of a warehouse, and of the warehouse default.
const (
	ownOption     = "--storage-option"
	defaultOption = "--default-storage-option"
)

// inS3 returns the options of a warehouse in a test's S3 server, with credentials.
func inS3(flag, endpoint string) []string {
	return append(atS3(flag, endpoint), flag, "s3.profile="+s3Profile)
}

// atS3 is like inS3, without credentials.
func atS3(flag, endpoint string) []string {
	return []string{flag, "s3.endpoint=" + endpoint, flag, "s3.region=" + fakecloud.S3Region}
}

// front forwards requests to an S3 server, until it is closed or refuses them.
type front struct {
	*httptest.Server
	refuses atomic.Bool
}

func newFront(t *testing.T, endpoint string) *front {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f, proxy := new(front), httputil.NewSingleHostReverseProxy(target)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.refuses.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// loadedConfig returns the client configuration in the answer to a load.
func (s *served) loadedConfig(t *testing.T, path string) map[string]string {
	t.Helper()
	code, body := s.request(t, "GET", path, "")
	if code != http.StatusOK {
		t.Fatalf("load: %d %s", code, body)
	}
	var answer struct{ Config map[string]string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Config
}

// TestDefaultWarehouseInS3 serves the warehouse default from a bucket, drops its table with its
// files, and checks it.
func TestDefaultWarehouseInS3(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	flags := []string{"--data", t.TempDir()}
	place := append(inS3(defaultOption, server.Endpoint), "--default-location", "s3://"+bucket+"/lake/")
	s := startServe(t, append(place, flags...)...)
	s.makeTable(t)
	config := s.loadedConfig(t, tablePath)
	if config["s3.endpoint"] != server.Endpoint || config["s3.region"] != "us-east-1" || config["s3.path-style-access"] != "true" {
		t.Errorf("config %v", config)
	}
	for name, value := range config {
		if strings.Contains(value, fakecloud.S3SecretAccessKey) {
			t.Errorf("the secret is answered as %s", name)
		}
	}
	if banner := s.stdout.String(); !strings.Contains(banner, "iceberg-aws-bundle") || strings.Contains(banner, "HadoopFileIO") || !strings.Contains(banner, "ACCESS_DELEGATION_MODE 'none'") {
		t.Errorf("printed:\n%s", banner)
	}
	trino := "fs.native-s3.enabled=true\n  s3.endpoint=" + server.Endpoint + "\n  s3.region=us-east-1\n  s3.path-style-access=true\n  s3.aws-access-key=…\n"
	if banner := s.stdout.String(); !strings.Contains(banner, trino) || strings.Contains(banner, "fs.native-local") {
		t.Errorf("printed:\n%s", banner)
	}
	if found := server.Keys(t, bucket); len(found) == 0 || !strings.HasPrefix(found[0], "lake/harbour/ships/metadata/") {
		t.Errorf("keys %q", found)
	}
	if log := s.stderr.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, fakecloud.S3SecretAccessKey) {
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
	// With a wrong key, the check does not report a sound store as broken.
	wrong := "AWS_SHARED_CREDENTIALS_FILE=" + writeFile(t, "credentials", credentialsOf("wrong"))
	got := processToEnd(t, []string{wrong}, append([]string{"doctor", "--deep"}, flags...)...)
	if got.code != cli.ExitNo || strings.Contains(got.stdout, "problem: ") ||
		!strings.Contains(got.stdout, "bad   not checked: 1 file at s3://"+bucket+"/, of warehouse default: ") ||
		!strings.Contains(got.stdout, "no problems") || !strings.Contains(got.stderr, "1 bad finding") {
		t.Errorf("check with a wrong key: %+v", got)
	}
}

// TestWarehouseCreateInS3 makes warehouses in buckets that exist and in one that does not.
func TestWarehouseCreateInS3(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	data := t.TempDir()
	if code := startServe(t, "--data", data).stop(); code != cli.ExitDone { // creates the store
		t.Fatalf("exit code %d", code)
	}
	create := func(name, location string) result {
		return runToEnd(t, append([]string{"warehouse", "create", name, "--data", data, "--location", location},
			inS3(ownOption, server.Endpoint)...)...)
	}
	if got := create("nowhere", "s3://no-such-bucket/lake"); got.code != cli.ExitFailed || !isSentence(got.stderr, "there is no bucket called no-such-bucket") {
		t.Errorf("in a bucket that is not there: %+v", got)
	}
	if got := create("lake", "s3://"+bucket+"/lake"); got.code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	if found := server.Keys(t, bucket); len(found) > 0 {
		t.Errorf("the probe left %q", found)
	}
	// The warehouse's record has the endpoint, but not the keys.
	s := startServe(t, "--data", data)
	if code, body := s.request(t, "POST", "/v1/lake/namespaces", `{"namespace":["harbour"]}`); code != http.StatusOK {
		t.Fatalf("create a namespace: %d %s", code, body)
	}
	const table = `{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	if code, body := s.request(t, "POST", "/v1/lake/namespaces/harbour/tables", table); code != http.StatusOK {
		t.Fatalf("create a table: %d %s", code, body)
	}
	if config := s.loadedConfig(t, "/v1/lake/namespaces/harbour/tables/ships"); config["s3.endpoint"] != server.Endpoint {
		t.Errorf("config %v", config)
	}
}

// TestStorageAway starts a server while a warehouse's storage does not answer. The server reports
// that, and serves requests.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	front := newFront(t, server.Endpoint)
	flags := append(inS3(defaultOption, front.URL), "--data", t.TempDir(), "--default-location", "s3://"+server.NewBucket(t))
	if code := startServe(t, flags...).stop(); code != cli.ExitDone {
		t.Fatalf("exit code %d", code)
	}
	front.Close()
	s := startServe(t, flags...)
	s.awaitLog(t, "the storage of a warehouse fails")
	if code, body := s.request(t, "POST", "/v1/namespaces", `{"namespace":["harbour"]}`); code != http.StatusOK {
		t.Errorf("create a namespace: %d %s", code, body)
	}
}

// TestStorageThatFails uses a storage that refuses every call. The log has one line for reads and
// one for writes, however many there are. Metrics, /readyz?verbose and the command show the
// failure.
func TestStorageThatFails(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	front := newFront(t, server.Endpoint)
	flags := append(inS3(defaultOption, front.URL), "--data", t.TempDir(), "--default-location", "s3://"+server.NewBucket(t))
	if code := startServe(t, flags...).stop(); code != cli.ExitDone {
		t.Fatalf("exit code %d", code)
	}
	front.refuses.Store(true)
	s := startServe(t, flags...)
	const fails = "the storage of a warehouse fails"
	s.awaitLog(t, fails)
	s.must(t, "POST", "/v1/namespaces", createNamespace)
	for range 2 {
		if code, body := s.request(t, "POST", "/v1/namespaces/harbour/tables", createTable); code < http.StatusInternalServerError {
			t.Errorf("create a table: %d %s", code, body)
		}
	}
	if log := s.stderr.String(); strings.Count(log, fails) != 2 || strings.Count(log, "calls=writes") != 1 {
		t.Errorf("log, which has to have a line for reads and one for writes:\n%s", log)
	}
	if code, body := s.request(t, "GET", "/readyz?verbose", ""); code != http.StatusOK || !strings.Contains(body, `"storage of default, writes":"fails since `) {
		t.Errorf("ready: %d %s", code, body)
	}
	_, metrics := s.request(t, "GET", "/metrics", "")
	for _, want := range []string{
		`moorage_storage_calls_total{call="put",outcome="error",warehouse="default"} 2`,
		`moorage_storage_call_duration_seconds_count{call="put",warehouse="default"} 2`,
		`moorage_storage_failing_seconds{calls="writes",warehouse="default"} `, `moorage_disk_free_bytes{folder="`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	shown := runToEnd(t, "warehouse", "show", "default", "--uri", s.uri)
	if shown.code != cli.ExitDone || !strings.Contains(shown.stdout, "its storage FAILS: writes since ") {
		t.Errorf("%+v", shown)
	}
}

func TestS3Faults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--default-location", "s3://b", defaultOption, "s3.endpoint=127.0.0.1:9000"}, "s3.endpoint"},
		{[]string{"serve", "--default-location", "s3://b", defaultOption, "s3.path-style-access=maybe"}, "s3.path-style-access"},
		{[]string{"serve", "--default-location", "s3://b", defaultOption, "gcs.no-auth=true"}, "unknown option gcs.no-auth"},
		{[]string{"serve", "--default-location", "file:///srv", defaultOption, "s3.region=a"}, "in a cloud"},
		{[]string{"serve", defaultOption, "s3.region=a"}, "in a cloud"},
		{[]string{"serve", "--default-location", "abc://bucket"}, "--default-location"},
		{[]string{"warehouse", "create", "w", "--location", "s3://"}, "--location"},
	} {
		if got := runToEnd(t, tt.args...); got.code != cli.ExitUsage || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%q: %+v, want %s", tt.args, got, tt.want)
		}
	}
}
