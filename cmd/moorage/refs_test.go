package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/cli"
)

// A ref that is moved keeps its retention, and --keep replaces only one of its limits.
func TestMovedRefKeepsRetention(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	const path = "/v1/namespaces/harbour/tables/ships"
	load := func() tableDocument {
		var loaded struct{ Metadata json.RawMessage }
		_, text := s.request(t, http.MethodGet, path, "")
		if err := json.Unmarshal([]byte(text), &loaded); err != nil {
			t.Fatal(err)
		}
		document, err := parseTable(loaded.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	christening := load().Refs["christening"].SnapshotID
	update, err := json.Marshal(map[string]any{"requirements": []any{}, "updates": []any{map[string]any{
		"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": christening,
		"max-ref-age-ms": 1000, "min-snapshots-to-keep": 2, "max-snapshot-age-ms": 3000,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if code, text := s.request(t, http.MethodPost, path, string(update)); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, c := range []struct {
		line string
		age  int64
	}{
		{"branch harbour.ships b main --move", 1000},
		{"branch harbour.ships b christening --move --keep 5s", 5000},
	} {
		if got := s.atTerminal(t.Context(), nil, strings.Fields(c.line)...); got.code != cli.ExitDone {
			t.Fatalf("%s: %+v", c.line, got)
		}
		moved := load().Refs["b"]
		if moved.MaxRefAgeMS == nil || *moved.MaxRefAgeMS != c.age || moved.MinSnapshots == nil ||
			*moved.MinSnapshots != 2 || moved.MaxSnapshotAgeMS == nil || *moved.MaxSnapshotAgeMS != 3000 {
			t.Errorf("%s leaves the retention %+v", c.line, moved)
		}
	}
}

// The branch main, which readers see, is never removed, and moves only after a question.
func TestMainIsNoBranchToMove(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"branch harbour.ships main -d":                 "the branch main cannot be removed",
		"branch harbour.ships main christening --move": "moorage rollback harbour.ships christening --any",
	} {
		got := runToEnd(t, append(strings.Fields(line), "--uri", "http://127.0.0.1:1")...)
		if got.code != cli.ExitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q and nothing sent", line, got, want)
		}
	}
}
