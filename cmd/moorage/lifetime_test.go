package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A server advertises how long idempotency keys are valid. That can be longer than changes are kept
// by default.
func TestLifetimeIsAdvertised(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{"PT30M": nil, "PT720H": {"--idempotency-lifetime", "720h"}} {
		server := startServe(t, append([]string{"--store", "memory", "--data", t.TempDir()}, args...)...)
		code, body := server.request(t, "GET", "/v1/config", "")
		if code != http.StatusOK || !strings.Contains(body, `"idempotency-key-lifetime":"`+want+`"`) {
			t.Errorf("%v: %d %s, want %s", args, code, body, want)
		}
	}
}

// A client repeats a change after the server has been restarted on the same folder. The server
// gives the same answer as before, even if that was a refusal.
func TestKeysSurviveARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.makeTable(t)
	const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"master":"Ada"}}]}`
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/namespaces/harbour/tables/ships", commit},
		{"POST", "/v1/namespaces", createNamespace}, // it exists
		{"DELETE", "/v1/namespaces/harbour/tables/ships", ""},
	}
	answers := func() (all []string) {
		for n, r := range requests {
			code, body := server.request(t, r.method, r.path, r.body, "Idempotency-Key", fmt.Sprintf("01926f3a-7b1c-7def-8123-%012d", n))
			all = append(all, fmt.Sprint(code, body))
		}
		return all
	}
	first := answers()
	server.stop()
	server = startServe(t, "--data", data)
	if again := answers(); !slices.Equal(again, first) {
		t.Errorf("answered\n%q\nand then\n%q", first, again)
	}
}
