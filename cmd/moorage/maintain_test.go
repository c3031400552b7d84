package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
)

// TestMaintain expires snapshots of a table with commands on the store of a stopped server, and
// then lets a server delete the files.
func TestMaintain(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	server.growTable(t, 0, 4)
	server.stop()
	const table = "default.harbour.ships"
	command := func(code int, want string, args ...string) string {
		t.Helper()
		got := runToEnd(t, append(args, "--data", data)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%s: %d, %s%s; want %q", args, got.code, got.stdout, got.stderr, want)
		}
		return got.stdout
	}
	command(0, "0 snapshots and 0 refs would expire", "maintain", "run", "snapshots", table, "--dry-run")
	command(0, "3 snapshots and 0 refs would expire", "maintain", "run", "snapshots", table, "--dry-run", "--max-snapshot-age", "0s")
	command(0, "not yet run", "maintain", "status", "table", table)
	ran := command(0, "waiting, ", "maintain", "run", "snapshots", table, "--max-snapshot-age", "0s", "--delay", "1s")
	id := regexp.MustCompile(`[0-9a-f]{32}`).FindString(ran)
	listed := strings.Fields(command(0, "snap-", "maintain", "job", id))
	for _, path := range listed {
		if _, err := os.Stat(strings.TrimPrefix(path, "file://")); err != nil {
			t.Errorf("a listed file is not there: %v", err)
		}
	}
	command(0, "snapshots of table default.harbour.ships", "maintain", "status")
	command(0, "done", "maintain", "job", "pause", id, "--reason", "to wait")
	command(0, "paused by", "maintain", "status", "table", table)
	command(0, "done", "maintain", "job", "resume", id)
	command(0, "done", "maintain", "job", "quarantine", id, "--reason", "to look")
	command(3, "1 job blocked", "maintain", "status")
	command(0, "then: moorage maintain job retry "+id, "doctor")
	command(0, "nothing was given up", "doctor", "retry", "all") // a quarantine ends only if an operator names the job
	command(3, "1 job blocked", "maintain", "status")
	command(0, "done", "maintain", "job", "retry", id)
	command(4, "is not blocked", "maintain", "job", "retry", id)
	command(0, "nothing expires", "maintain", "run", "snapshots", table, "--max-snapshot-age", "0s")
	server = startServe(t, "--data", data)
	server.awaitLog(t, "maintenance job ended")
	for _, path := range listed {
		if _, err := os.Stat(strings.TrimPrefix(path, "file://")); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	server.stop()
	command(0, "snapshots done: 3 snapshots; ", "maintain", "status", "table", table)
	command(0, "no maintenance is in progress", "maintain", "status")
	if ran := command(0, "orphans done", "maintain", "run", "orphans", table, "--older-than", "24h"); strings.Contains(ran, "snapshots done") {
		t.Errorf("a run prints one from before: %s", ran)
	}
	owner := filepath.Join(data, "warehouse", "~moorage", "owner")
	if err := os.Remove(owner); err != nil {
		t.Fatal(err)
	}
	const other = "0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(owner, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	command(1, other, "maintain", "run", "orphans", table, "--older-than", "24h")
	command(0, other, "maintain", "run", "orphans", "warehouse", "default", "--adopt")
	command(0, "orphans done", "maintain", "run", "orphans", table, "--older-than", "24h")
}

// TestMaintainOnARunningServer repeats the steps of TestMaintain on a running server.
func TestMaintainOnARunningServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	server.growTable(t, 0, 4)
	const table = "default.harbour.ships"
	command := func(code int, want string, args ...string) string {
		t.Helper()
		got := runToEnd(t, append(args, "--uri", server.uri)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%s: %d, %s%s; want %q", args, got.code, got.stdout, got.stderr, want)
		}
		return got.stdout
	}
	young := []string{"--max-snapshot-age", "0s"}
	command(0, "0 snapshots and 0 refs would expire", "maintain", "run", "snapshots", table, "--dry-run")
	command(0, "0 snapshots and 0 refs would expire", "maintain", "run", "snapshots", table, "--dry-run", "--by-policy")
	command(2, "takes all settings from the policies", append([]string{"maintain", "run", "snapshots", table, "--dry-run", "--by-policy"}, young...)...)
	command(0, "5 files would be deleted", append([]string{"maintain", "run", "snapshots", table, "--dry-run"}, young...)...)
	command(0, "not yet run", "maintain", "status", "table", table)
	command(1, "a day old", "maintain", "run", "orphans", table, "--dry-run", "--older-than", "1h")
	command(0, "done", "maintain", "pause", "server", "--reason", "we move")
	command(1, "we move", append([]string{"maintain", "run", "snapshots", table}, young...)...)
	command(0, "done", "maintain", "resume", "server")
	command(0, "3 snapshots and 0 refs expired", append([]string{"maintain", "run", "snapshots", table}, young...)...)
	status := ""
	awaitText(t, func() string {
		status = command(0, "", "maintain", "status", "table", table)
		return status
	}, "waiting, 5 files")
	id := regexp.MustCompile(`[0-9a-f]{32}`).FindString(status)
	if listed := strings.Fields(command(0, "snap-", "maintain", "job", id)); len(listed) != 5 {
		t.Errorf("the job will delete %q", listed)
	}
	command(0, "done", "maintain", "job", "pause", id, "--reason", "to look")
	command(0, "to look", "maintain", "status")
	command(0, "snapshots: Paused", "maintain", "status", "table", table)
	command(0, "done", "maintain", "job", "resume", id)
	command(0, "done", "maintain", "job", "cancel", id)
	command(0, "snapshots cancelled", "maintain", "status", "table", table)
	command(0, "this store removes orphans", "maintain", "run", "orphans", "warehouse", "default", "--adopt")
	command(3, "does not exist", "maintain", "run", "orphans", "warehouse", "none", "--adopt")
	command(0, "0 files would be deleted", "maintain", "run", "orphans", table, "--dry-run")
}

// TestLeftovers lets a server, and then a command on its store, report the files outside of all
// tables. No file may be deleted.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	table := server.growTable(t, 0, 4)
	week := time.Now().Add(-8 * 24 * time.Hour)
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(data, "warehouse", "harbour", filepath.FromSlash(name))
		for _, err := range []error{
			os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("left"), 0o600), os.Chtimes(path, week, week),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	left, hidden := file("ctas/data/a.parquet"), file("ctas/_temporary/b.parquet")
	where := []string{"--uri", server.uri}
	command := func(code int, want string, args ...string) {
		t.Helper()
		got := runToEnd(t, append(args, where...)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%s: %d, %s%s; want %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	look := []string{"maintain", "run", "orphans", "warehouse", "default", "--dry-run"}
	with := func(more ...string) []string { return append(slices.Clone(look), more...) }
	all := func() {
		t.Helper()
		command(0, "warehouse default: 1 file outside of all tables and views, 4 bytes; this read 4 manifests", look...)
		command(0, "file://"+left, look...)
		command(0, "kept 1 file: a hidden name", look...)
		command(0, "Nothing was deleted. Tables of other catalogs", look...)
		command(1, "at least seven days old", with("--older-than", "24h")...)
		command(0, "1 file outside", with("--older-than", "24h", "--unsafe")...)
		command(3, "does not exist", "maintain", "run", "orphans", "warehouse", "none", "--dry-run")
		command(2, "either --dry-run or --adopt", "maintain", "run", "orphans", "warehouse", "default")
	}
	all()
	code, answer := server.request(t, "POST", "/management/v1/maintenance/run",
		`{"kind":"orphans","object":{"warehouse":"default"},"settings":{}}`)
	if code != http.StatusBadRequest {
		t.Errorf("a job on a warehouse: %d %s", code, answer)
	}
	server.stop()
	where = []string{"--data", data}
	all()
	command(0, "no maintenance is in progress", "maintain", "status")
	for _, path := range []string{left, hidden} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for path := range table.Reach(map[int64]bool{table.Snapshots[0].ID: true}) {
		if strings.Contains(path, "snap-") {
			if err := os.Remove(strings.TrimPrefix(path, "file://")); err != nil {
				t.Fatal(err)
			}
		}
	}
	command(3, "the report would not be whole, so it names no file: the files of harbour.ships cannot be read", look...)
}

// TestPlanOnOneScreen checks that a plan about many snapshots fits a terminal of 80 columns and 24
// lines. With -v it must name each snapshot.
func TestPlanOnOneScreen(t *testing.T) {
	t.Parallel()
	table, err := client.ParseObject("table", "default.harbour.ships")
	if err != nil {
		t.Fatal(err)
	}
	plan := client.MaintenancePlan{
		Object: table, Kind: cli.KindSnapshots, Reach: "full", Manifests: 1200, ReadBytes: 48_211_000, Files: 700,
		Kept: []client.MaintenanceKept{{Reason: "it lies outside of the table", Files: 3}},
	}
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range 700 {
		snapshot := client.MaintenancePlanSnapshot{ID: 1 << 60, Why: fmt.Sprintf("reason %d", i%9)}
		if i < 600 {
			snapshot = client.MaintenancePlanSnapshot{ID: 1 << 60, Expires: true, Time: day.Add(time.Duration(i) * time.Hour)}
		}
		plan.Snapshots = append(plan.Snapshots, snapshot)
		plan.Refs = append(plan.Refs, fmt.Sprintf("tag-%d", i))
		plan.Sample = append(plan.Sample, "file:///lake/harbour/ships/data/"+strings.Repeat("x", 80))
	}
	var short, long strings.Builder
	writePlan(&short, plan, false)
	writePlan(&long, plan, true)
	lines := strings.Split(strings.TrimSpace(short.String()), "\n")
	if len(lines) > 22 || slices.ContainsFunc(lines, func(line string) bool { return len(line) > 80 }) {
		t.Errorf("more than a screen:\n%s", short.String())
	}
	for _, want := range []string{
		"600 snapshots and 700 refs would expire", "those of 2026-11-01T00:00:00Z to 2026-11-25T23:00:00Z",
		"stays    12 snapshots: reason 6", "700 files would be deleted; that reads 1200 manifests, 48.2 MB", "kept 3 files",
	} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, short.String())
		}
	}
	if strings.Count(long.String(), "\n") < 2100 {
		t.Errorf("with -v it has %d lines", strings.Count(long.String(), "\n"))
	}
}
