package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
)

// TestChangesCommand prints the last events, the events of an object, and the events since the
// position in a file.
func TestChangesCommand(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--data", t.TempDir())
	server.makeTable(t)
	run := func(args ...string) string {
		t.Helper()
		got := runToEnd(t, append([]string{"changes", "--uri", server.uri}, args...)...)
		if got.code != cli.ExitDone {
			t.Fatalf("changes %q: %+v", args, got)
		}
		return got.stdout
	}
	lines := func(text string) int { return strings.Count(text, "\n") }
	if text := run(); lines(text) != 3 || !strings.Contains(text, "create-table") || !strings.Contains(text, " harbour.ships ") {
		t.Errorf("the last events:\n%s", text)
	}
	if text := run("harbour.ships", "-o", "name"); text != "harbour.ships\n" {
		t.Errorf("of a table: %q", text)
	}
	if text := run("harbour", "-n", "1", "-o", "name"); text != "harbour.ships\n" {
		t.Errorf("the last one of a namespace: %q", text)
	}
	if text := run("--since", "1h", "--operation", "create-namespace", "-o", "name"); text != "harbour\n" {
		t.Errorf("selected: %q", text)
	}
	state := filepath.Join(t.TempDir(), "position")
	if text := run("--state", state, "-o", "jsonl"); lines(text) != 3 {
		t.Errorf("from the first one on:\n%s", text)
	}
	if text := run("--state", state, "-o", "jsonl"); text != "" {
		t.Errorf("again: %q", text)
	}
	if code, body := server.request(t, http.MethodDelete, "/v1/namespaces/harbour/tables/ships", ""); code != http.StatusNoContent {
		t.Fatalf("drop: %d %s", code, body)
	}
	var event client.Event
	if text := run("--state", state, "-o", "jsonl"); json.Unmarshal([]byte(text), &event) != nil || event.Operation != "drop-table" {
		t.Errorf("what came since: %q", text)
	}
	if err := os.WriteFile(state, []byte("00000000.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runToEnd(t, "changes", "--state", state, "--uri", server.uri); got.code != cli.ExitFailed || !isSentence(got.stderr, "go on with after=") {
		t.Errorf("a position of another store: %+v", got)
	}
	if got := runToEnd(t, "changes", "--since", "yesterday", "--uri", server.uri); got.code != cli.ExitUsage {
		t.Errorf("a time that is none: %+v", got)
	}

	ctx, signal := context.WithCancel(t.Context())
	out, followed := newLockedBuffer(), make(chan int, 1)
	go func() {
		followed <- runWith(ctx, []string{"changes", "--follow", "-n", "1", "-o", "name", "--uri", server.uri}, out)
	}()
	awaitText(t, out.String, "harbour.ships\n")
	if code, body := server.request(t, "POST", "/v1/namespaces", `{"namespace":["later"]}`); code != http.StatusOK {
		t.Fatalf("create: %d %s", code, body)
	}
	awaitText(t, out.String, "later\n")
	signal()
	if code := <-followed; code != cli.ExitDone {
		t.Errorf("the signal ended it with %d", code)
	}
}

// changes --follow prints nothing if no event arrives during a wait, and prints the ages in each
// page as of the time of printing.
func TestFollowPrintsPagesAsOfTheirTime(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	const empty, event = `{"events":[],"next":"1"}`, `{"events":[{"operation":"drop-table","name":"orders",` +
		`"time":"2026-11-27T03:00:00Z"}],"next":"1"}`
	for output, want := range map[string]string{
		cli.OutputTable: "2 h ago  drop-table  orders\n4 h ago  drop-table  orders\n",
		cli.OutputNames: "orders\norders\n",
	} {
		pages := []string{event, empty, event}
		ctx, end := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if len(pages) == 0 {
				end()
				return
			}
			_, _ = io.WriteString(w, pages[0])
			pages = pages[1:]
		}))
		t.Cleanup(server.Close)
		var out, faults lockedBuffer
		now := begun
		code := run(ctx, []string{"changes", "--follow", "-o", output, "--uri", server.URL}, cli.Environment{
			Stdout: &out, Stderr: &faults, Columns: 80, Now: func() time.Time {
				now = now.Add(time.Hour)
				return now
			},
		})
		if code != cli.ExitDone || out.String() != want {
			t.Errorf("%s: exit %d, %q, %q", output, code, out.String(), faults.String())
		}
	}
}

// runWith runs a command until ctx ends, as with a signal.
func runWith(ctx context.Context, args []string, out io.Writer) int {
	return run(ctx, args, cli.Environment{Stdout: out, Stderr: io.Discard})
}

// guideShell matches a block of shell in a guide.
var guideShell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestChangesGuide runs the recipes of docs/guide/changes.md, with stand-ins for kcat and nats that
// write their input to a file.
func TestChangesGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	server := startServe(t, "--data", t.TempDir())
	server.makeTable(t)
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"moorage": fmt.Sprintf("%s=%s exec '%s' $(echo \"$@\" | sed 's/--follow//')", asCommand, asUsual, self),
		"kcat":    "cat > kafka.got",
		"nats":    `echo "$3" >> nats.got`,
	} {
		writeProgram(t, filepath.Join(folder, name), "#!/bin/sh\n"+script+"\n")
	}
	blocks := guideShell.FindAllStringSubmatch(string(guide), -1)
	for i, file := range []string{"", "events.jsonl", "kafka.got", "nats.got"} {
		block := strings.ReplaceAll(blocks[i][1], "sales", "harbour")
		block = strings.ReplaceAll(block, "orders", "ships")
		// For the test, the loop ends when the position does not move, and the commands run without
		// --follow.
		block = strings.ReplaceAll(block, `echo "$after" > position`, `[ "$after" = "$(cat position)" ] && exit; echo "$after" > position`)
		shell := exec.CommandContext(t.Context(), "bash", "-c", block)
		shell.Dir = folder
		shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "MOORAGE_URI="+server.uri, "MOORAGE_TOKEN=unused", "WAIT=0s")
		printed, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", block, err, printed)
		}
		if file == "" {
			if !strings.Contains(string(printed), "create-table") {
				t.Errorf("the first commands print %s", printed)
			}
			continue
		}
		got, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || strings.Count(string(got), "\n") != 3 || !strings.Contains(string(got), `"operation":"create-table"`) {
			t.Errorf("%s\n%s has %s (%v)", block, file, got, err)
		}
		if file == "kafka.got" && !regexp.MustCompile(`(?m)^[0-9a-f-]{36}\|\{`).Match(got) {
			t.Errorf("Kafka gets no key: %s", got)
		}
	}
}
