package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
)

// The test provokes each finding about a node and its store. Without its cause, the finding is ok.
func TestFindingsOfNodes(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	sound := nodeFacts{
		versions: []string{"v1", "v1"}, read: 2 * time.Millisecond, write: 3 * time.Millisecond, apart: 18 * time.Millisecond, logAge: 9 * day, retention: 7 * day,
		config: cli.Config{Maintenance: cli.MaintenanceOn},
	}
	for _, finding := range sound.findings() {
		if finding.Level != client.LevelOK || finding.Remedy != "" {
			t.Errorf("a sound node has %+v", finding)
		}
	}
	for _, c := range []struct {
		change      func(*nodeFacts)
		level, what string
		fact        string
	}{
		{func(*nodeFacts) {}, client.LevelOK, "server", ", 2 nodes alike"},
		{func(*nodeFacts) {}, client.LevelOK, "store", "takes writes; a read took 2ms, the last write 3ms"},
		{func(*nodeFacts) {}, client.LevelOK, "clocks", "node and store within 18ms"},
		{func(*nodeFacts) {}, client.LevelOK, "changes", "kept for 7 days; the oldest is 9 days old"},
		{func(f *nodeFacts) { f.versions = []string{"v2", "v1", "v2"} }, client.LevelWarn, "server", "3 nodes run different versions: v1, v2"},
		{func(f *nodeFacts) { f.read = time.Second }, client.LevelWarn, "store", "a read took 1s"},
		{func(f *nodeFacts) { f.write = time.Second }, client.LevelWarn, "store", "takes writes; a read took 2ms, the last write 1s"},
		{func(f *nodeFacts) { f.write = 0 }, client.LevelOK, "store", "takes writes; a read took 2ms"},
		{func(f *nodeFacts) { f.unread = errors.New("no answer") }, client.LevelBad, "store", "cannot be read: no answer"},
		{func(f *nodeFacts) { f.unwritten = errors.New("read only") }, client.LevelBad, "store", "takes no writes: read only"},
		{func(f *nodeFacts) { f.apart = -time.Minute }, client.LevelWarn, "clocks", "node and store are 1m0s apart"},
		{func(f *nodeFacts) { f.logAge = 11 * day }, client.LevelWarn, "changes", "the oldest is 11 days old"},
		{func(f *nodeFacts) { f.config.LogLevel = slog.LevelDebug }, client.LevelWarn, "setting --log-level", "each request writes a line"},
		{func(f *nodeFacts) { f.config.AuditReads = 1 }, client.LevelWarn, "setting --audit-reads", "each read writes a line"},
		{func(f *nodeFacts) { f.config.Store = cli.StoreMemory }, client.LevelWarn, "setting --store", "the store is in memory"},
		{func(f *nodeFacts) { f.config.Maintenance = cli.MaintenanceOff }, client.LevelWarn, "setting --maintenance", "runs no maintenance"},
	} {
		facts := sound
		c.change(&facts)
		all := facts.findings()
		at := slices.IndexFunc(all, func(f client.Finding) bool { return f.What == c.what })
		if at < 0 || all[at].Level != c.level || !strings.Contains(all[at].Fact, c.fact) || (all[at].Remedy == "") != (c.level == client.LevelOK) {
			t.Errorf("want %s %s: %s; got %+v", c.level, c.what, c.fact, all)
		}
	}
}

// If the caller's key ends soon, the finding explains how to renew it.
func TestCallerFinding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	caller := moorage.Caller{Name: "key:etl", KeyID: "abc", Source: moorage.SourceKey, Ends: now.Add(24 * time.Hour)}
	want := client.Finding{
		Level: client.LevelWarn, What: "caller", Fact: "key:etl; its credential ends 2026-11-28T03:00:00Z", Remedy: "moorage key rotate key:etl abc",
	}
	if got := callerFinding(caller, now); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	caller.Source = moorage.SourceIssuer
	if got := callerFinding(caller, now); got.Level != client.LevelOK || got.Remedy != "" {
		t.Errorf("a token: %+v", got)
	}
}

// The clock of the client is compared with the server's clock, which the answer gives in whole
// seconds.
func TestClientClock(t *testing.T) {
	t.Parallel()
	const remedy = "Synchronise both clocks, as with NTP: storages refuse requests that are signed minutes off"
	for ahead, want := range map[time.Duration]client.Finding{
		300 * time.Millisecond: {Level: client.LevelOK, What: "clock here", Fact: "within 1s of the server's"},
		-4 * time.Second:       {Level: client.LevelOK, What: "clock here", Fact: "within 4s of the server's"},
		90 * time.Second:       {Level: client.LevelWarn, What: "clock here", Fact: "1m30s ahead of the server's", Remedy: remedy},
		-time.Hour:             {Level: client.LevelWarn, What: "clock here", Fact: "1h0m0s behind the server's", Remedy: remedy},
	} {
		if got := clientClock(ahead); !reflect.DeepEqual(got, want) {
			t.Errorf("%s ahead: %+v, want %+v", ahead, got, want)
		}
	}
	// The server's clock is behind.
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"findings":[],"next-page-token":null}`)
	}))
	defer behind.Close()
	got := runToEnd(t, "doctor", "--uri", behind.URL)
	if got.code != cli.ExitDone || !strings.Contains(got.stdout, "warn  clock here: 1h0m") || !strings.Contains(got.stdout, " ahead of the server's\n      Synchronise") {
		t.Errorf("doctor prints %+v", got)
	}
}

// clockHere matches the difference of the clocks in the finding about this machine's clock, which
// includes the time that the answer took.
var clockHere = regexp.MustCompile(`within (\d+s) of`)

// withClockHere returns what doctor printed in the given time, with the difference of the clocks as
// if the answer had taken no time.
func withClockHere(t *testing.T, printed string, took time.Duration) string {
	t.Helper()
	found := clockHere.FindStringSubmatch(printed)
	if found == nil {
		t.Fatalf("no finding about the clock here:\n%s", printed)
	}
	// The server's time is in whole seconds.
	if apart, err := time.ParseDuration(found[1]); err != nil || apart > took+2*time.Second {
		t.Errorf("clocks %s apart, and the answer took %s at most", found[1], took)
	}
	return strings.Replace(printed, found[0], "within 1s of", 1)
}

// storeHere matches the finding about a store that takes writes, with its level and the time of a
// read and of a write.
var storeHere = regexp.MustCompile(`(?m)^(\w+) +store: takes writes; a read took ([^\s,]+)(?:, the last write ([^\s,]+))?$`)

// A server reports findings about its own state, its caller, and its connection to the store.
func TestFindingsOfServer(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--store", "memory", "--data", t.TempDir())
	began := time.Now()
	got := runToEnd(t, "doctor", "--uri", s.uri)
	got.stdout = withClockHere(t, got.stdout, time.Since(began))
	// On a machine that is slow, the finding about the store is a warning.
	store, isSlow := storeHere.FindStringSubmatch(got.stdout), false
	if store == nil {
		t.Fatalf("doctor prints %+v, which has no finding about the store", got)
	}
	for _, text := range store[2:] {
		took, err := time.ParseDuration(cmp.Or(text, "0s"))
		if err != nil {
			t.Error(err)
		}
		isSlow = isSlow || took > storeSlow
	}
	if want := map[bool]string{true: "warn", false: "ok"}[isSlow]; store[1] != want {
		t.Errorf("doctor prints %q, want %s", store[0], want)
	}
	for _, want := range []string{"ok    clock here: within 1s of the server's\n", ", the last write ", "ok    server: ", "ok    clocks: node and store within ", "ok    changes: kept for ",
		"warn  setting --store: "} {
		if got.code != cli.ExitDone || !strings.Contains(got.stdout, want) {
			t.Errorf("doctor prints %+v, want %q", got, want)
		}
	}
}
