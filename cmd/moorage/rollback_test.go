package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
)

// atTerminal runs a command line as at a terminal of 80 columns, with stdin as the user's input.
func (s *served) atTerminal(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr lockedBuffer
	code := run(ctx, args, cli.Environment{
		Environ: []string{"MOORAGE_URI=" + s.uri, "NO_COLOR=1"}, Stdin: stdin, Stdout: &stdout, Stderr: &stderr,
		Columns: 80, Now: time.Now,
	})
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// answering is input that calls a function before it answers yes.
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

// If there is a commit between the question and the answer, the rollback fails with a conflict, and
// changes nothing.
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

// A rollback prints a command that undoes it. The command also works after further commits, and on
// other branches.
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

// A duration means the time of the question, and nothing else when it was answered.
func TestRollbackOfAViewToTheTimeOfTheQuestion(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	to, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	const then = "2026-01-02T03:04:05.678Z" // what the server takes 2h for
	var asked []string
	proxy := httputil.NewSingleHostReverseProxy(to)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/rollback") {
			proxy.ServeHTTP(w, r)
			return
		}
		var request client.RollbackRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		asked = append(asked, request.To+" "+request.PreviousMetadataLocation)
		_ = json.NewEncoder(w).Encode(client.RolledBack{
			Requirements: json.RawMessage("[]"), Updates: json.RawMessage(`[{"action":"set-properties"}]`),
			PreviousMetadataLocation: "file:///present", To: then,
		})
	}))
	defer between.Close()
	through := &served{uri: between.URL}
	for _, all := range [][]string{nil, {"--all"}} {
		asked = nil
		args := append([]string{"rollback", "harbour.busiest", "2h", "-y"}, all...)
		got := through.atTerminal(t.Context(), nil, args...)
		if want := []string{"2h ", then + " file:///present"}; got.code != cli.ExitDone || !slices.Equal(asked, want) {
			t.Errorf("%v: %+v\nit asked for %q, want %q", args, got, asked, want)
		}
	}
}

// The SQL of a view is compared and rolled back. If there is a commit between the question and the
// answer, the rollback fails with a conflict, and changes nothing.
func TestRollbackOfAViewOnlyAsAsked(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	const view = "/v1/namespaces/harbour/views/busiest"
	if status, answer := s.request(t, http.MethodPost, view, `{"requirements":[],"updates":[{"action":"add-view-version","view-version":
		{"version-id":2,"schema-id":0,"timestamp-ms":1700000000000,"summary":{},"default-namespace":["harbour"],"representations":[
		{"type":"sql","sql":"SELECT 1","dialect":"spark"},{"type":"sql","sql":"SELECT 2","dialect":"trino"}]}},
		{"action":"set-current-view-version","view-version-id":-1}]}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	differs := s.atTerminal(t.Context(), nil, "diff", "harbour.busiest", "--only", "sql", "-o", "wide")
	for _, line := range []string{"- spark SELECT", "+ spark SELECT 1\n", "- trino SELECT", "+ trino SELECT 2\n"} {
		if !strings.Contains(differs.stdout, line) {
			t.Errorf("diff lacks %q: %+v", line, differs)
		}
	}
	var between string
	got := s.atTerminal(t.Context(), &answering{do: func() {
		made := s.atTerminal(t.Context(), nil, "set", "harbour.busiest", "a=b")
		if made.code != cli.ExitDone {
			t.Errorf("the commit between: %+v", made)
		}
		_, between = s.request(t, http.MethodGet, view, "")
	}}, "rollback", "harbour.busiest", "now~1")
	if got.code != cli.ExitConflict || !strings.Contains(got.stderr, "goes back from its version 2 to its version 1:") {
		t.Errorf("a rollback after a commit: %+v", got)
	}
	if _, now := s.request(t, http.MethodGet, view, ""); now != between {
		t.Error("a rollback that conflicts changed the view")
	}
	if got = s.atTerminal(t.Context(), nil, "rollback", "harbour.busiest", "now~2", "-y"); got.code != cli.ExitDone {
		t.Errorf("rollback: %+v", got)
	}
	if got = s.atTerminal(t.Context(), nil, "diff", "harbour.busiest", "now~3", "-o", "name"); got.stdout != "properties\n" {
		t.Errorf("after the rollback differ: %+v", got)
	}
}
