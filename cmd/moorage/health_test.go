package main

import (
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
)

// TestHealthAndTop checks that health prints findings and exits as --fail-on requires, and that top
// prints the activity of the server.
func TestHealthAndTop(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	for _, c := range []struct {
		line string
		code int
		want []string
	}{
		{"health harbour.voyages", cli.ExitDone, []string{"ok    small files   12 files, mean ", "ok    deletes ", "ok    snapshots     ", "ok    manifests "}},
		{"health harbour.voyages --deep -o wide", cli.ExitDone, []string{"12 of 12 files below 32.0 MB", "limit: more than 1000", "ok    crowded partitions  12 partitions"}},
		{"health harbour.voyages --deep -o json", cli.ExitDone, []string{`"shape": {`, `"partition": "departed_month=20`, `"partitions": 12`}},
		{"health harbour.arrivals", cli.ExitNo, []string{"harbour.arrivals is a view; this command takes a table"}},
		{"health", cli.ExitUsage, []string{"takes a NAME"}},
		{"top", cli.ExitDone, []string{"commits ", "loads "}},
		{"top -o json --sort loads", cli.ExitDone, []string{`"minutes": [`, `"tables": [`}},
	} {
		got := runToEnd(t, append(strings.Fields(c.line), "--uri", s.uri)...)
		for _, want := range c.want {
			if got.code != c.code || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: %+v, want %d and %q", c.line, got, c.code, want)
			}
		}
	}
}
