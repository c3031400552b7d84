package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moorage/internal/cli"
)

// A name that ends in a dot is a namespace. mv moves an object into it, and register refuses it.
func TestTrailingDotIsANamespace(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"mk zoo", "Made namespace zoo.\n", cli.ExitDone},
		{"mk zoo.sub", "Made namespace zoo.sub.\n", cli.ExitDone},
		{"mv harbour.ports zoo.sub.", "Renamed table harbour.ports to zoo.sub.ports.\n", cli.ExitDone},
		{"mv zoo.sub.ports harbour.", "Renamed table zoo.sub.ports to harbour.ports.\n", cli.ExitDone},
		{"register zoo.sub. file:///v1.metadata.json", "", cli.ExitUsage},
	} {
		if got := s.atTerminal(t.Context(), nil, strings.Fields(c.line)...); got.code != c.code || got.stdout != c.want {
			t.Errorf("%s: %+v", c.line, got)
		}
	}
}

// No command prints the control characters of a name to a terminal. Commands whose output is for
// programs leave such a name out.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--store", "memory", "--data", t.TempDir())
	const evil = "evil\x1b[2J\nplain"
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"mk", "plain"}, cli.ExitDone, "Made namespace plain.\n", ""},
		{[]string{"mk", evil}, cli.ExitDone, `Made namespace "evil\x1b[2J\nplain".` + "\n", ""},
		{[]string{"ls", "-o", "name"}, cli.ExitFailed, "plain.\n", `evil\x1b[2J\nplain`},
		{[]string{"show", evil, "-o", "name"}, cli.ExitFailed, "", `evil\x1b[2J\nplain`},
		{[]string{"show", "x" + evil}, cli.ExitNo, "", `does not exist: "xevil\x1b[2J\nplain"`},
		{[]string{"show", "x." + evil + "/"}, cli.ExitUsage, "", `evil\x1b[2J\nplain`},
	} {
		got := s.atTerminal(t.Context(), nil, c.args...)
		if got.code != c.code || got.stdout != c.stdout || !strings.Contains(got.stderr, c.stderr) ||
			strings.ContainsAny(got.stderr, "\x1b") {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	got := s.atTerminal(t.Context(), strings.NewReader("n\n"), "rm", evil)
	if want := `Drop namespace "evil\x1b[2J\nplain". Go on? [y/N] moorage: nothing was changed` + "\n"; got.stderr != want {
		t.Errorf("a question: %+v", got)
	}
}

// silent is an input from which a command reads no answer, but which calls a function when the
// command reads.
type silent struct {
	do   func()
	ends <-chan struct{}
}

// Read implements io.Reader.
func (s silent) Read([]byte) (int, error) {
	s.do()
	<-s.ends
	return 0, io.EOF
}

// A signal ends a command at its question, and nothing is sent.
func TestSignalAtAQuestion(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	ctx, signal := context.WithCancel(t.Context())
	got := s.atTerminal(ctx, silent{do: signal, ends: t.Context().Done()}, "rm", "harbour.ports")
	if got.code != cli.ExitNo || !strings.HasSuffix(got.stderr, "[y/N] \nmoorage: nothing was changed\n") {
		t.Errorf("a signal: %+v", got)
	}
	if code, _ := s.request(t, http.MethodGet, "/v1/namespaces/harbour/tables/ports", ""); code != http.StatusOK {
		t.Errorf("the table answers %d", code)
	}
}

// If another table has got the name since the question, it is not dropped.
func TestRemoveOnlyWhatWasShown(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	got := s.atTerminal(t.Context(), &answering{do: func() {
		for _, line := range []string{"mv harbour.ports harbour.former", "mv harbour.ships harbour.ports"} {
			if got := s.atTerminal(t.Context(), nil, strings.Fields(line)...); got.code != cli.ExitDone {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}}, "rm", "harbour.ports")
	if got.code != cli.ExitConflict || !strings.Contains(got.stderr, "it is another table since the question") {
		t.Errorf("rm of another table: %+v", got)
	}
	if code, _ := s.request(t, http.MethodGet, "/v1/namespaces/harbour/tables/ports", ""); code != http.StatusOK {
		t.Errorf("the other table answers %d", code)
	}
}

// An object that was created again since the question stays, and so do new objects in a namespace.
func TestRemoveBelowOnlyWhatWasShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		again  []string // the commands that run while the question waits
		stderr string
		left   []string // the objects that remain
	}{
		{
			[]string{"rm harbour.ships --yes", "mv harbour.ports harbour.ships"}, "it is another table since the question",
			[]string{"harbour.", "harbour.ships"},
		},
		{
			[]string{"rm harbour -R --yes", "mk harbour"}, "it is another namespace since the question", []string{"harbour."},
		},
		{[]string{"mk harbour.new"}, "not empty", []string{"harbour.", "harbour.new."}},
		{[]string{"rm harbour.ships --yes"}, "Go on?", nil},
	} {
		s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
		got := s.atTerminal(t.Context(), &answering{do: func() {
			for _, line := range c.again {
				if got := s.atTerminal(t.Context(), nil, strings.Fields(line)...); got.code != cli.ExitDone {
					t.Errorf("%s: %+v", line, got)
				}
			}
		}}, "rm", "-R", "harbour.")
		if isDone := got.code == cli.ExitDone; isDone != (c.left == nil) || !strings.Contains(got.stderr, c.stderr) {
			t.Errorf("%q: %+v", c.again, got)
		}
		list := s.atTerminal(t.Context(), nil, "ls", "-R", "-o", "name")
		for _, name := range c.left {
			if !slices.Contains(strings.Fields(list.stdout), name) {
				t.Errorf("%q: %s is gone: %q", c.again, name, list.stdout)
			}
		}
		if c.left == nil && list.stdout != "" {
			t.Errorf("%q: there is %q", c.again, list.stdout)
		}
	}
}

// If a proxy loses the answer to a change, moorage api reports that the outcome is unknown.
func TestAPIOfALostAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, answer string
		code           int
	}{
		{http.MethodPost, "bad gateway", cli.ExitUnknown},
		{http.MethodGet, "bad gateway", cli.ExitFailed},
		{http.MethodPost, `{"error":{"code":502,"type":"ServiceUnavailableException","message":"Later"}}`, cli.ExitFailed},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, c.answer)
		}))
		t.Cleanup(server.Close)
		if got := runToEnd(t, "api", c.method, "/v1/config", "--uri", server.URL); got.code != c.code {
			t.Errorf("%s answered %s: %+v", c.method, c.answer, got)
		}
	}
}
