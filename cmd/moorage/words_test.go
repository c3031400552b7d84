package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"moorage/internal/cli"
)

// homePageMax is the maximum length of the page at the root.
const homePageMax = 2000

// TestWordsOfTheServer sends requests with typical mistakes of newcomers, and compares the
// messages.
func TestWordsOfTheServer(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--store", "memory", "--data", t.TempDir())
	for path, want := range map[string]string{
		"/v1/config?warehouse=lake":                "Warehouse does not exist: lake",
		"/api/catalog/v1/config":                   "No such route: GET /api/catalog/v1/config; the base URI of this catalog is " + s.uri,
		"/catalog/v1/config":                       "; the base URI of this catalog is " + s.uri,
		"/iceberg/v1/config":                       "; the base URI of this catalog is " + s.uri,
		"/polaris/v1/config":                       "; the base URI of this catalog is " + s.uri,
		"/api/2.1/unity-catalog/iceberg/v1/config": "; the base URI of this catalog is " + s.uri,
		"/v1/v1/config":                            "; the base URI of this catalog is " + s.uri,
		"/":                                        "; the base URI of this catalog is " + s.uri,
		"/v1/nothing":                              `"No such route: GET /v1/nothing"`,
		"/v1/namespaces/harbour/tables/shipz":      "Table does not exist: harbour.shipz",
		"/management/v1/metadata?warehouse=w&namespace=a": "Parameter table is missing",
	} {
		code, body := s.request(t, "GET", path, "")
		if code < http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
	code, page := s.request(t, "GET", "/", "", "Accept", "text/html")
	if code != http.StatusOK || !strings.Contains(page, "console.css") {
		t.Errorf("a browser at the root does not come to the console: %d\n%s", code, page)
	}
	s = startServe(t, "--store", "memory", "--data", t.TempDir(), "--console=false")
	if code, page = s.request(t, "GET", "/console", ""); code != http.StatusNotFound {
		t.Errorf("the console is not off: %d\n%s", code, page)
	}
	code, page = s.request(t, "GET", "/", "", "Accept", "text/html")
	if code != http.StatusOK || len(page) > homePageMax || strings.Contains(page, "<script") {
		t.Errorf("a browser gets %d and %d bytes:\n%s", code, len(page), page)
	}
	for _, want := range []string{s.uri, "load_catalog(", "ATTACH &#39;default&#39; AS moorage", "curl -s"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
}

// TestWordsOfCommands runs command lines with typical mistakes, and compares the output.
func TestWordsOfCommands(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	for line, want := range map[string]string{
		"ls lake/":                     "Warehouse does not exist: lake. There are: default. Make one: moorage warehouse create lake --location URI",
		"show harbour.shipz":           "Table, view or namespace does not exist: harbour.shipz. Close: harbour.ships",
		"rollback harbour.shipz now~1": "Table or view does not exist: harbour.shipz. Close: harbour.ships",
		"tag harbour.arrivals eod":     "harbour.arrivals is a view; this command takes a table",
		"rollback harbour now~1":       "harbour is a namespace; this command takes a table or a view",
		"ls harbor":                    "Namespace does not exist: harbor. Close: harbour",
		"show lake/harbour.ships":      "Warehouse does not exist: lake. There are: default.",
	} {
		got := runToEnd(t, append(strings.Fields(line), "--uri", s.uri)...)
		if got.code == cli.ExitDone || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
	if got := runToEnd(t, "ls", "--uri", "http://127.0.0.1:1"); !strings.Contains(got.stderr, "no server answers at http://127.0.0.1:1") ||
		!strings.Contains(got.stderr, "start one with moorage demo or moorage serve, or name one with --uri") {
		t.Errorf("no server: %+v", got)
	}
}

// TestWordsOfStart starts servers that cannot run, creates warehouses that cannot be used, and
// compares the output.
func TestWordsOfStart(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--store", "memory", "--data", t.TempDir())
	holder := ""
	if runtime.GOOS == "linux" {
		holder = fmt.Sprintf(", %d (", os.Getpid())
	}
	address := strings.TrimPrefix(s.uri, "http://")
	for _, c := range []struct{ line, want string }{
		{"serve --store memory --data " + t.TempDir() + " --listen " + address, address + " is in use by another process" + holder},
		{"warehouse create etc --location file:///etc --uri " + s.uri, "Not allowed: the location file:///etc of a warehouse: "},
		{"warehouse create etc --location file:///etc --uri " + s.uri, "--allow-location"},
	} {
		got := runToEnd(t, strings.Fields(c.line)...)
		if got.code == cli.ExitDone || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %+v, want %s", c.line, got, c.want)
		}
	}
	if code, body := s.request(t, "POST", "/v1/namespaces", `{"namespace":["a"]}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	code, body := s.request(t, "POST", "/v1/namespaces/a/tables", `{"name":"t","location":"file:///etc/t","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}`)
	if code != http.StatusBadRequest || !strings.Contains(body, "add one with moorage warehouse change --allow-location): file:///etc/t; allowed are file:///") {
		t.Errorf("a location outside: %d %s", code, body)
	}
}
