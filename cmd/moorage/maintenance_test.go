package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMaintenanceByPolicy enables maintenance on a running server with commands, checks the source
// of each setting, and pauses and resumes maintenance. After the server has ended, the test
// disables maintenance on the store.
func TestMaintenanceByPolicy(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	server.growTable(t, 3*time.Hour, 4)
	at := []string{"--uri", server.uri}
	command := func(code int, want string, args ...string) {
		t.Helper()
		got := runToEnd(t, append(args, at...)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%s: %d, %s%s; want %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	table := []string{"table", "default.harbour.ships"}
	command(0, "snapshots: Disabled (default)", append([]string{"maintain", "status"}, table...)...)
	command(1, "No policy requires", "maintain", "run", "snapshots", table[1], "--by-policy")
	command(1, "At least 1 is safe", "maintain", "set", "server", "snapshots", "on", "--set", "maxSnapshotAgeHours=0")
	command(1, "has no setting", "maintain", "set", "server", "snapshots", "on", "--set", "unreferencedDays=3")
	const preview = "snapshots of warehouse default, if they were due now:\n" +
		"  table default.harbour.ships: 3 snapshots and 0 refs would expire, 5 files would be deleted\n" +
		"  1 table, 0 of them with nothing to do: 3 snapshots would expire, 5 files would be deleted\n"
	enable := []string{"maintain", "set", "warehouse", "default", "snapshots", "on", "--set", "maxSnapshotAgeHours=1"}
	command(0, preview, append(enable, "--dry-run")...)
	command(0, "snapshots: Disabled (default)", append([]string{"maintain", "status"}, table...)...)
	command(0, "nothing: the files that are there now stay", "maintain", "set", "server", "orphans", "on", "--dry-run")
	command(0, "0 tables to be compacted", "maintain", "set", "server", "compaction", "on", "--dry-run")
	command(0, preview+"warehouse default: icebergSnapshotManagement enabled maxSnapshotAgeHours=1\ndone\n", enable...)
	command(0, "snapshots: Not Yet Run (warehouse default)", append([]string{"maintain", "status"}, table...)...)
	command(0, "maxSnapshotAgeHours = 1 (warehouse default)", append([]string{"maintain", "status"}, table...)...)
	command(0, "done", "maintain", "pause", "namespace", "default.harbour", "--reason", "we move")
	command(0, "snapshots: Paused", append([]string{"maintain", "status"}, table...)...)
	command(0, "we move", append([]string{"maintain", "status"}, table...)...)
	command(0, "table default.harbour.ships was not paused itself\nstill paused since ", append([]string{"maintain", "resume"}, table...)...)
	command(1, "Resume it with moorage maintain resume namespace default.harbour", "maintain", "run", "snapshots", table[1])
	command(0, "done", "maintain", "resume", "namespace", "default.harbour")
	command(0, "done", "maintain", "run", "snapshots", table[1], "--by-policy")
	command(0, "done", "maintain", "rescan", "server")
	command(0, "nothing is bad", "doctor")
	command(0, "no maintenance is in progress", "maintain", "status")
	command(3, "No maintenance job has the id", "maintain", "job", "cancel", strings.Repeat("a", 32))
	command(3, "does not exist", "maintain", "status", "table", "default.harbour.none")
	awaitText(t, func() string {
		return runToEnd(t, append([]string{"maintain", "status", table[0], table[1]}, at...)...).stdout
	}, "due ")
	server.stop()
	at = []string{"--data", data}
	command(0, "jobs in progress go on; see moorage maintain status\ndone", "maintain", "set", table[0], table[1], "snapshots", "off")
	command(0, "snapshots: Disabled (table harbour.ships)", append([]string{"maintain", "status"}, table...)...)
	command(0, "nothing: the table harbour.ships says no", append(enable, "--dry-run")...)
	command(0, "done", "maintain", "set", table[0], table[1], "snapshots", "inherit")
	command(0, "(warehouse default)", append([]string{"maintain", "status"}, table...)...)
	command(0, "no problems", "doctor", "--deep")
	command(0, "done", "maintain", "pause", "server", "--reason", "we move again")
	server = startServe(t, at...)
	server.awaitLog(t, "maintenance is paused")
}

// TestServerMaintainsByItself checks that a server with a policy expires snapshots and deletes
// their files, and that a server with --maintenance off deletes nothing.
func TestServerMaintainsByItself(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data, "--maintenance", "off")
	grown := server.growTable(t, 3*time.Hour, 4)
	lists := func() int {
		found, err := filepath.Glob(strings.TrimPrefix(grown.location, "file://") + "/metadata/snap-*")
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if lists() != 4 {
		t.Fatalf("there are %d lists", lists())
	}
	enable := []string{
		"maintain", "set", "server", "snapshots", "on", "--unsafe", "--set", "maxSnapshotAgeHours=0", "--set", "deleteDelayHours=0", "--set", "minSnapshotsToExpire=1",
	}
	if got := runToEnd(t, append(enable, "--uri", server.uri)...); got.code != 0 {
		t.Fatal(got)
	}
	grown.grow(t)
	server.stop()
	if lists() != 5 {
		t.Errorf("a server without maintenance has left %d lists", lists())
	}
	server = startServe(t, "--data", data)
	server.awaitLog(t, "maintenance job ended")
	if lists() != 1 {
		t.Errorf("the server has left %d lists", lists())
	}
	server.stop()
	if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != 0 {
		t.Error(got)
	}
}

// awaitText waits until the result of text contains want.
func awaitText(t *testing.T, text func() string, want string) {
	t.Helper()
	last := ""
	for ended := time.Now().Add(patience); time.Now().Before(ended); time.Sleep(100 * time.Millisecond) {
		if last = text(); strings.Contains(last, want) {
			return
		}
	}
	t.Fatalf("%q never has %q", last, want)
}
