package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMaintenanceMetrics checks that each metric about maintenance changes when maintenance does
// the work in question.
func TestMaintenanceMetrics(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	grown := server.growTable(t, 3*time.Hour, 4)
	command := func(args ...string) string {
		t.Helper()
		got := runToEnd(t, append(args, "--uri", server.uri)...)
		if got.code != 0 {
			t.Fatalf("%s: %+v", args, got)
		}
		return got.stdout
	}
	await := func(name, labels string, want func(float64) bool) {
		t.Helper()
		last := 0.0
		for ended := time.Now().Add(patience); time.Now().Before(ended); time.Sleep(100 * time.Millisecond) {
			if last = server.metric(t, "moorage_maintenance_"+name, labels); want(last) {
				return
			}
		}
		t.Errorf("moorage_maintenance_%s{%s} stays %v", name, labels, last)
	}
	above := func(least float64) func(float64) bool { return func(v float64) bool { return v > least } }
	is := func(value float64) func(float64) bool { return func(v float64) bool { return v == value } }
	const table = "default.harbour.ships"

	// A job waits, is blocked, and is cancelled.
	command("maintain", "run", "snapshots", table, "--max-snapshot-age", "0s")
	await("commits_total", `kind="snapshots",outcome="done"`, is(1))
	await("jobs", `kind="snapshots",state="waiting"`, is(1))
	await("read_bytes_total", "", above(1000))
	id := regexp.MustCompile(`[0-9a-f]{32}`).FindString(command("maintain", "status"))
	command("maintain", "job", "quarantine", id, "--reason", "to see")
	command("maintain", "resume", "server") // makes the jobs run
	await("blocked", "", is(1))
	await("jobs", `kind="snapshots",state="blocked"`, is(1))
	command("maintain", "job", "cancel", id)
	command("maintain", "resume", "server")
	await("blocked", "", is(0))
	await("job_seconds_count", `kind="snapshots",outcome="cancelled"`, is(1))

	// Maintenance by policy deletes files, and keeps those outside of the table.
	outside := filepath.Join(data, "warehouse", "elsewhere.stats")
	if err := os.WriteFile(outside, []byte("stats"), 0o600); err != nil {
		t.Fatal(err)
	}
	statistics := fmt.Sprintf(`{"action":"set-statistics","statistics":{"snapshot-id":%d,"statistics-path":"file://%s",`+
		`"file-size-in-bytes":5,"file-footer-size-in-bytes":1,"blob-metadata":[]}}`, grown.Heads["main"].ID, outside)
	if code, answer := server.request(t, "POST", tablePath, `{"requirements":[],"updates":[`+statistics+`]}`); code != http.StatusOK {
		t.Fatalf("set statistics: %d %s", code, answer)
	}
	command("maintain", "set", "server", "snapshots", "on", "--unsafe", "--set", "maxSnapshotAgeHours=0", "--set", "deleteDelayHours=0",
		"--set", "minSnapshotsToExpire=1")
	grown.grow(t)
	await("changes_total", "", above(0))
	await("made_due_total", "", above(0))
	await("shards", "", above(0))
	await("checks_total", `outcome="done"`, above(0))
	await("jobs_begun_total", `kind="snapshots"`, above(0))
	await("job_seconds_count", `kind="snapshots",outcome="done"`, above(0))
	await("files_deleted_total", "", above(0))
	await("kept_total", `reason="outside"`, above(0))
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("the file outside is gone: %v", err)
	}

	// The other metrics exist, and show no problem.
	_, text := server.request(t, "GET", "/metrics", "")
	for _, name := range []string{"lag_seconds", "overdue_seconds", "missed_total", "walks", "bytes_deleted_total", "waited_seconds_total", "slowed_total"} {
		if !strings.Contains(text, "\nmoorage_maintenance_"+name+" ") {
			t.Errorf("there is no moorage_maintenance_%s", name)
		}
	}
	for _, name := range []string{"missed_total", "slowed_total", "blocked"} {
		await(name, "", is(0))
	}
}
