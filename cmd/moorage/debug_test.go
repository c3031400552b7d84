package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var debugLine = regexp.MustCompile(`--debug-listen" uri=(\S+)`)

// Metrics say what all clients do. They are for callers who may audit or operate the server, and
// for those who reach the port that asks for no key.
func TestMetricsNeedAPrivilege(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop() // makes the store
	keys := map[string]string{"root": newKey(t, "root", "--admin", "--data", data)}
	for _, name := range []string{"auditor", "operator", "reader"} {
		keys[name] = newKey(t, name, "--data", data)
	}
	server := startServe(t, "--data", data, "--keys", "--debug-listen", "0")
	for name, privilege := range map[string]string{"auditor": "audit", "operator": "operate"} {
		status, body := server.request(t, "POST", "/management/v1/grants",
			`{"changes":[{"change":"grant","privileges":["`+privilege+`"],"object":"server","grantee":"key:`+name+`"}]}`,
			"Authorization", "Bearer "+keys["root"])
		if status != http.StatusOK {
			t.Fatalf("grant: %d %s", status, body)
		}
	}
	for name, want := range map[string]int{"root": 200, "auditor": 200, "operator": 200, "reader": 403, "stranger": 401} {
		for _, method := range []string{"GET", "HEAD"} {
			status, body := server.request(t, method, "/metrics", "", "Authorization", "Bearer "+keys[name])
			if status != want || strings.Contains(body, "moorage_") != (want == 200 && method == "GET") {
				t.Errorf("%s %s: %d %s", name, method, status, body)
			}
		}
	}

	const verbose = "/readyz?verbose" // names folders and warehouses for the same callers
	for name, want := range map[string]bool{"root": true, "auditor": true, "reader": false, "stranger": false} {
		status, body := server.request(t, "GET", verbose, "", "Authorization", "Bearer "+keys[name])
		if status != http.StatusOK || strings.Contains(body, "free on the disk of "+data) != want ||
			strings.Contains(body, `"storages":"none fails"`) == want {
			t.Errorf("%s %s: %d %s", name, verbose, status, body)
		}
	}

	found := debugLine.FindStringSubmatch(server.stderr.String())
	if found == nil || !strings.HasPrefix(found[1], "http://127.0.0.1:") {
		t.Fatalf("the port of --debug-listen is %q; the log:\n%s", found, server.stderr)
	}
	debug := &served{uri: found[1]}
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/v1/config": 404, "/management/v1/doctor": 404,
	} {
		status, body := debug.request(t, "GET", path, "")
		if status != want || path == "/metrics" && !strings.Contains(body, "moorage_http_requests_total") {
			t.Errorf("%s is answered %d without a key: %s", path, status, body)
		}
	}
}
