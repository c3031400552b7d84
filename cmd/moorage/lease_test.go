package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostile is a name that does harm in a shell, in SQL and in JSON.
const hostile = `x'); DROP TABLE t; -- "$(touch pwned)` + "`touch pwned`" + `; touch pwned #`

// compaction is a program that commits under its lease. It represents programs that rewrite files,
// and reads all names from the file of its job.
const compaction = `#!/usr/bin/env python3
import json, os, sys, urllib.parse, urllib.request
job = json.load(open(os.environ["MOORAGE_JOB"]))
assert job["name"] == os.environ["MOORAGE_TABLE"] and job["lease"] == os.environ["MOORAGE_LEASE"]
assert "\x1f".join(job["namespace"]) == os.environ["MOORAGE_NAMESPACE"]
quote = lambda text: urllib.parse.quote(text, safe="")
url = "%s/v1/namespaces/%s/tables/%s" % (job["uri"], quote("\x1f".join(job["namespace"])), quote(job["name"]))
body = {"requirements": [{"type": "assert-table-uuid", "uuid": job["table-uuid"]}],
        "updates": [{"action": "set-properties", "updates": {"compacted": "yes"}}]}
ask = lambda lease: urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), {
    "Content-Type": "application/json", "X-Moorage-Lease": lease}))
try:
    ask(job["lease"][:33] + "99")
    sys.exit("a lease that nobody has is good for a commit")
except urllib.error.HTTPError as refused:
    assert refused.code == 409 and b"Lease lost" in refused.read()
ask(job["lease"])
print("compacted")
`

// A program runs under a lease, on a table of any name. When it ends, the lease is released. If the
// program fails, the lease is also released, and the command fails.
func TestLeaseRun(t *testing.T) {
	server := startServe(t, "--data", t.TempDir())
	if code, body := server.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	name := strings.NewReplacer(`"`, `\"`).Replace(hostile)
	code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", strings.Replace(createTable, "ships", name, 1))
	if code != http.StatusOK {
		t.Fatalf("create table: %d %s", code, body)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) string { return writeProgram(t, filepath.Join(dir, name), text) }
	run := func(program string) result {
		return runToEnd(t, "lease", "run", "--uri", server.uri, "--namespace", "harbour", "--table", hostile, "--exec", program)
	}
	if got := run(write("compact", compaction)); got.code != 0 || got.stdout != "compacted\n" {
		t.Errorf("the job: %+v", got)
	}
	if got := run(write("fail", "#!/bin/sh\nexit 3\n")); got.code != 1 || !strings.Contains(got.stderr, "exit status 3") {
		t.Errorf("a job that fails: %+v", got)
	}
	if code, body := server.request(t, "GET", "/management/v1/leases", ""); code != http.StatusOK || !strings.Contains(body, `"leases":[]`) {
		t.Errorf("leases are left: %d %s", code, body)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("the name of the table was run")
	}
}

// If the lease is lost, the program is ended, and the command reports that.
func TestLeaseRunLosesTheLease(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{
			"POST": `{"lease":"x-1","token":1}`, "PUT": `{"renewed":[],"lost":["x-1"]}`, "DELETE": `{"released":0}`,
		}[r.Method]
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	program := writeProgram(t, filepath.Join(t.TempDir(), "sleeps"), "#!/bin/sh\nexec sleep 600\n")
	got := runToEnd(t, "lease", "run", "--uri", server.URL, "--namespace", "a", "--table", "t", "--ttl", "10s", "--exec", program)
	if got.code != 1 || !strings.Contains(got.stderr, "the lease was lost") {
		t.Errorf("%+v", got)
	}
}
