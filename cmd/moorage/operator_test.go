package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOperatorSteersMaintenance checks that the privilege operate alone is enough to set the
// server's policies, and to pause and resume maintenance. None of these commands fails because the
// caller may not see the state of maintenance.
func TestOperatorSteersMaintenance(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	root := newKey(t, "root", "--admin", "--data", data)
	server := startServe(t, "--data", data, "--keys")
	ask := func(token, want string, words ...string) result {
		t.Helper()
		got := runToEnd(t, append(words, "--uri", server.uri, "--token", token)...)
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%q: %+v, want %q", words, got, want)
		}
		return got
	}
	ops := newKey(t, "ops", "--uri", server.uri, "--token", root)
	ask(root, "The principal of the API key ops is key:ops.", "grant", "operate", "on", "server", "to", "ops")
	ask(root, "", "grant", "operate", "on", "server", "to", "key:ops")
	ask(root, "", "grant", "describe", "on", "server", "to", "key:root")
	if got := runToEnd(t, "maintain", "status", "server", "--uri", server.uri, "--token", ops); got.code == 0 {
		t.Errorf("ops may see the state: %+v", got)
	}
	ask(ops, "done", "maintain", "pause", "server", "--reason", "a test")
	ask(root, "a test", "maintain", "status", "server")
	ask(ops, "done", "maintain", "resume", "server")
	ask(ops, "done", "maintain", "set", "server", "snapshots", "on")
	status := ask(root, "server: icebergSnapshotManagement enabled", "maintain", "status", "server")
	if strings.Contains(status.stdout, "paused") {
		t.Errorf("it is paused still: %+v", status)
	}
}
