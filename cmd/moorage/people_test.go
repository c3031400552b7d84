package main

import (
	"bytes"
	"flag"
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
)

var updateScripts = flag.Bool("update", false, "rewrite the scripts in testdata")

// volatile matches the parts of the output of commands that differ from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "http://SERVER"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`(?m)  [0-9a-f]{8}$`), "  CHANGEID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`), "DATE AND TIME"},
	{regexp.MustCompile(`moorage @127\.0\.0\.1, [A-Z0-9]+(-\d+)?(\.\.\.)?`), "CLIENT, REQUEST"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "DATE-AND-TIME-ISO..."},
	{regexp.MustCompile(`[0-9a-f]{32}`), "ID"},
	{regexp.MustCompile(`2\.[0-8] kB`), "2.x kB"}, // a file of deletes names the folder of the test
	{regexp.MustCompile(`"bytes":2[0-8]\d\d,`), `"bytes":2xxx,`},
}

// anHourLater returns the environment of a command in which the time is an hour from now.
func (s *served) anHourLater(data string, stdout, stderr io.Writer) cli.Environment {
	return cli.Environment{
		Environ: []string{"MOORAGE_URI=" + s.uri, "HOME=" + data, "NO_COLOR=1"}, Stdout: stdout, Stderr: stderr,
		Now: func() time.Time { return time.Now().Add(time.Hour) },
	}
}

// steady replaces the volatile parts of output.
func steady(text string) string {
	for _, each := range volatile {
		text = each.pattern.ReplaceAllString(text, each.instead)
	}
	return text
}

// scriptResult runs a command line an hour from now, as at a terminal of 80 columns if isTerminal
// is true. It returns the output.
func (s *served) scriptResult(t *testing.T, data string, line, typed string, isTerminal bool) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := s.anHourLater(data, &stdout, &stderr)
	if isTerminal {
		env.Columns, env.Stdin = 80, strings.NewReader(typed)
	}
	args := strings.Fields(line)[2:] // after the prompt and "moorage"
	code := run(t.Context(), args, env)
	text := steady(strings.ReplaceAll(stdout.String()+stderr.String(), data, "DATA"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if code != 0 {
		text += fmt.Sprintf("[exit %d]\n", code)
	}
	return text
}

// TestScripts runs the scripts in testdata against a demo. A line that begins with "$ " is a
// command at a terminal, and one with "% " a command whose output is a pipe. A line with "< " is
// the input that the user types. -update rewrites the output in the scripts.
func TestScripts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.script")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(t.TempDir(), "demo")
			s := startDemo(t, "--data", data, "--listen", "127.0.0.1:0")
			var got strings.Builder
			typed := ""
			for line := range strings.SplitSeq(string(text), "\n") {
				switch {
				case strings.HasPrefix(line, "#") || strings.HasPrefix(line, "< "):
					typed += strings.TrimPrefix(line, "< ") + "\n"
					if line[0] == '#' {
						typed = ""
					}
					fmt.Fprintln(&got, line)
				case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "% "):
					fmt.Fprintf(&got, "%s\n%s", line, s.scriptResult(t, data, line, typed, line[0] == '$'))
					typed = ""
				}
			}
			if *updateScripts {
				if err := os.WriteFile(name, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != string(text) {
				t.Errorf("%s is not what the commands print (-update rewrites it):\n%s", name, got.String())
			}
		})
	}
}

// A long list takes one request for each page, and none for a single table. It has a column for
// everything that the server knows, and is in the order of --sort.
func TestLongListTakesARequestAPage(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch {
		case r.URL.Path != "/management/v1/objects":
			fmt.Fprint(w, `{"namespace":["a"],"properties":{}}`)
		case r.URL.Query().Get("pageToken") == "":
			fmt.Fprint(w, `{"objects":[{"kind":"namespace","warehouse":"default","namespace":["a"],"name":"inner","protected":true},
				{"kind":"table","warehouse":"default","namespace":["a"],"name":"old"}],"next-page-token":"2"}`)
		default:
			fmt.Fprint(w, `{"objects":[{"kind":"table","warehouse":"default","namespace":["a"],"name":"t","by":"key:etl","protected":true,
				"labelled":true,"summary":{"format":2,"at":"2026-11-27T03:12:00Z","rows":1200000,"bytes":310000000,"files":41}},
				{"kind":"view","warehouse":"default","namespace":["a"],"name":"v","by":"ann@corp","summary":{"format":1,"at":"2026-11-28T03:12:00Z"}}],
				"next-page-token":null}`)
		}
	}))
	defer server.Close()
	const old = "table  old       -       -      -  -                     -\n"
	const view = "view   v                           2026-11-28T03:12:00Z  ann@corp\n"
	const inner = "ns     inner                                                       protected\n"
	const table = "table  t      1.2M  310 MB     41  2026-11-27T03:12:00Z  key:etl   protected, labels\n"
	const header = "KIND   NAME   ROWS    SIZE  FILES  CHANGED               BY        NOTE\n"
	for sort, want := range map[string]string{
		"name": header + inner + old + table + view, "rows": header + table + inner + old + view,
		"size": header + table + inner + old + view, "changed": header + view + table + inner + old,
	} {
		asked = nil
		var stdout, stderr bytes.Buffer
		env := cli.Environment{
			Environ: []string{"MOORAGE_URI=" + server.URL, "HOME=" + t.TempDir()}, Stdout: &stdout, Stderr: &stderr, Now: time.Now,
		}
		code := run(t.Context(), []string{"ls", "-l", "--sort", sort, "a"}, env)
		if code != 0 || stdout.String() != want {
			t.Errorf("--sort %s: exit %d, %s\n%swant\n%s", sort, code, stderr.String(), stdout.String(), want)
		}
		if len(asked) != 3 {
			t.Errorf("--sort %s asks %q", sort, asked)
		}
	}
}

// A real bash completes the names of a namespace, a table, a branch and an engine, with requests to
// the server.
func TestCompletionOfNamesInBash(t *testing.T) {
	t.Parallel()
	s := startDemo(t, "--data", filepath.Join(t.TempDir(), "demo"), "--listen", "127.0.0.1:0")
	script := runToEnd(t, "completion", "bash").stdout
	for line, want := range map[string]string{
		"moorage show har": "harbour.", "moorage show harbour.v": "harbour.voyages", "moorage ls default/harbour.sh": "default/harbour.ships",
		"moorage tag harbour.ships chr": "christening", "moorage diff harbour.voyages aud": "audit", "moorage connect duc": "duckdb",
		"moorage show harbour.ships sna": "snapshots",
	} {
		words := strings.Fields(line)
		complete := func() (string, error) {
			check := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-c", fmt.Sprintf(`source /dev/stdin
compopt() { :; }
moorage() { %q "$@"; }
COMP_LINE=%q; COMP_POINT=%d; COMP_WORDS=(%s); COMP_CWORD=%d; COMP_TYPE=9; COMP_KEY=9
__start_moorage; echo "${COMPREPLY[@]}"`, os.Args[0], line, len(line), line, len(words)-1))
			check.Env = append(os.Environ(), asCommand+"="+asUsual, "MOORAGE_URI="+s.uri)
			check.Stdin = strings.NewReader(script)
			out, err := check.CombinedOutput()
			return strings.TrimSpace(string(out)), err
		}
		// A completion offers nothing if the answer takes longer than completeTimeout of package
		// cli.
		const completeTimeout = 300 * time.Millisecond
		var got string
		var err error
		for mayBeLate, ended := true, time.Now().Add(patience); mayBeLate && time.Now().Before(ended); {
			began := time.Now()
			got, err = complete()
			mayBeLate = got == "" && err == nil && time.Since(began) > completeTimeout
		}
		if err != nil || got != want {
			t.Errorf("%s is completed to %q, %v; want %s", line, got, err, want)
		}
	}
}

// Commands for people work in the same way on the store of a stopped server.
func TestPeopleOnAStoppedStore(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "demo")
	s := startDemo(t, "--data", data, "--listen", "127.0.0.1:0")
	if code := s.stop(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for line, want := range map[string]string{
		"ls harbour": "table  voyages", "set harbour.ships a=b": "a (none) -> b", "diff harbour.ships": "+ a b",
		"tree": "harbour.", "api GET /v1/config": `"endpoints"`,
	} {
		if line == "diff harbour.ships" {
			continue // after the others, below
		}
		if got := runToEnd(t, append(strings.Fields(line), "--data", data)...); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	if got := runToEnd(t, "diff", "harbour.ships", "--data", data); got.code != 0 || !strings.Contains(got.stdout, "+ a b") {
		t.Errorf("diff: %+v", got)
	}
}
