package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

var debugLine = regexp.MustCompile(`--debug-listen" uri=(\S+)`)

// Metrics reveal the activity of all clients. They are only for callers that may audit or operate
// the server, and for clients that can reach the port without authentication.
func TestMetricsNeedAPrivilege(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop() // creates the store
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

	const verbose = "/readyz?verbose" // shows folders and warehouses to the same callers
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
		"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/cmdline": 404,
	} {
		status, body := debug.request(t, "GET", path, "")
		if status != want || path == "/metrics" && !strings.Contains(body, "moorage_http_requests_total") {
			t.Errorf("%s is answered %d without a key: %s", path, status, body)
		}
	}
}

// Profiles are only for programs on this machine, and only on the port of --debug-listen.
func TestProfiles(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--debug-listen", "0")
	debug := &served{uri: debugLine.FindStringSubmatch(server.stderr.String())[1]}
	status, body := debug.request(t, "GET", "/debug/pprof/profile?seconds=1", "")
	if status != http.StatusOK || !strings.HasPrefix(body, "\x1f\x8b") {
		t.Errorf("a profile of the processors is answered %d: %.20q", status, body)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/vars"} {
		if status, body := server.request(t, "GET", path, ""); status != http.StatusNotFound {
			t.Errorf("the main port answers %s with %d: %s", path, status, body)
		}
	}
	handler := withProfiles(http.NotFoundHandler())
	for name, asked := range map[string]struct {
		peer, host string
		want       int
	}{
		"this machine":              {"127.0.0.1:4000", "127.0.0.1:9181", http.StatusOK},
		"this machine, IPv6":        {"[::1]:4000", "localhost:9181", http.StatusOK},
		"another machine":           {"10.0.0.9:4000", "10.0.0.7:9181", http.StatusNotFound},
		"a page in a browser":       {"127.0.0.1:4000", "evil.example:9181", http.StatusNotFound},
		"a peer without an address": {"@", "localhost", http.StatusNotFound},
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/goroutine", nil)
		r.RemoteAddr, r.Host = asked.peer, asked.host
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, r); answer.Code != asked.want {
			t.Errorf("%s: %d, want %d", name, answer.Code, asked.want)
		}
	}
}
