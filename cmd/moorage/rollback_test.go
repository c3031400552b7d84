package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
)

// atTerminal runs a command line of a person at a terminal of 80 columns, who types stdin.
func (s *served) atTerminal(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr lockedBuffer
	code := run(ctx, args, cli.Environment{
		Environ: []string{"MOORAGE_URI=" + s.uri, "NO_COLOR=1"}, Stdin: stdin, Stdout: &stdout, Stderr: &stderr,
		Columns: 80, Now: time.Now,
	})
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// answering is a person who does something before the answer yes.
type answering struct {
	do    func()
	typed bytes.Buffer
}

// Read implements io.Reader.
func (a *answering) Read(p []byte) (int, error) {
	if a.do != nil {
		a.do()
		a.do = nil
		a.typed.WriteString("yes\n")
	}
	return a.typed.Read(p)
}

// A commit between the question and the answer makes a rollback conflict, and nothing is changed.
func TestRollbackOnlyAsAsked(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	var between string
	got := s.atTerminal(t.Context(), &answering{do: func() {
		made := s.atTerminal(t.Context(), strings.NewReader("y\n"), "rollback", "harbour.ships", "now~1")
		if made.code != cli.ExitDone {
			t.Errorf("the commit between: %+v", made)
		}
		_, between = s.request(t, http.MethodGet, "/v1/namespaces/harbour/tables/ships", "")
	}}, "rollback", "harbour.ships", "christening")
	if got.code != cli.ExitConflict {
		t.Errorf("a rollback after a commit: %+v", got)
	}
	if _, now := s.request(t, http.MethodGet, "/v1/namespaces/harbour/tables/ships", ""); now != between {
		t.Error("a rollback that conflicts changed the table")
	}
}

// The line that a rollback prints takes it back, also after further commits, and on other branches.
func TestRollbackPrintsItsUndo(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	branch := "it's"
	head := func() string {
		_, loaded := s.request(t, http.MethodGet, "/v1/namespaces/harbour/tables/ships", "")
		return regexp.MustCompile(`"it's":\{[^}]*\}`).FindString(loaded)
	}
	if got := s.atTerminal(t.Context(), nil, "branch", "harbour.ships", branch, "main"); got.code != cli.ExitDone {
		t.Fatalf("branch: %+v", got)
	}
	before := head()
	got := s.atTerminal(t.Context(), nil, "rollback", "harbour.ships", "christening", "--ref", branch, "-y")
	undo := regexp.MustCompile(`^Done\. To undo: moorage rollback harbour\.ships (\S+\.metadata\.json) --ref 'it'\\''s'\n$`).
		FindStringSubmatch(got.stdout)
	if got.code != cli.ExitDone || undo == nil || head() == before {
		t.Fatalf("rollback of a branch: %+v, %s", got, head())
	}
	for _, line := range []string{
		"set harbour.ships a=b", fmt.Sprintf("rollback harbour.ships %s --ref it's -y", undo[1]),
	} {
		if got := s.atTerminal(t.Context(), nil, strings.Fields(line)...); got.code != cli.ExitDone {
			t.Fatalf("%s: %+v", line, got)
		}
	}
	if head() != before {
		t.Errorf("after the undo the branch is %s, not %s", head(), before)
	}
}
