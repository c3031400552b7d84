package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/internal/cli"
)

// startOver starts a server with an empty warehouse, whose tables may lie below the folders too.
func startOver(t *testing.T, folders ...string) *served {
	t.Helper()
	args := []string{"--data", filepath.Join(t.TempDir(), "data")}
	for _, folder := range folders {
		args = append(args, "--allow-location", "file://"+folder)
	}
	return startServe(t, args...)
}

// moved runs a command against s, and fails the test unless it ends with code.
func (s *served) moved(t *testing.T, code int, args ...string) result {
	t.Helper()
	r := runToEnd(t, append(args, "--uri", s.uri)...)
	if r.code != code {
		t.Fatalf("moorage %s ended with %d, want %d:\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// startSample starts a demo. It returns the folder of its tables too.
func startSample(t *testing.T) (demo *served, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "demo")
	return startDemo(t, "--data", folder, "--listen", "127.0.0.1:0"), folder
}

// TestTransferThere brings a catalog of tables and views from one server to others and back, in
// each way that there is. It is identical everywhere.
func TestTransferThere(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	journal := filepath.Join(t.TempDir(), "journal")
	list := demo.moved(t, 0, "export", "list").stdout
	if !strings.HasPrefix(list, "namespace,name,kind,metadata-location\n") || strings.Count(list, "\n") != 6 {
		t.Fatalf("the list is\n%s", list)
	}

	mirror := startOver(t, folder)
	plan := mirror.moved(t, 0, "import", "rest", demo.uri, "--dry-run").stdout
	if !strings.Contains(plan, "5 objects: 5 new.") {
		t.Errorf("the plan is\n%s", plan)
	}
	if names := mirror.moved(t, 0, "ls", "-o", "name").stdout; names != "" {
		t.Errorf("a plan made %s", names)
	}
	mirror.moved(t, 0, "import", "rest", demo.uri, "--state", journal)
	if refused := mirror.moved(t, 1, "set", "harbour.ships", "a=b"); !strings.Contains(refused.stderr, "403") || !strings.Contains(refused.stderr, "mirror of "+demo.uri) {
		t.Errorf("a commit to a mirror: %s", refused.stderr)
	}
	mirror.moved(t, 0, "set", "harbour.", "note=here")
	demo.moved(t, 0, "set", "harbour.", "note=there")
	if r := mirror.moved(t, 3, "import", "rest", demo.uri); !strings.Contains(r.stdout+r.stderr, "5 compared, 5 alike") ||
		!strings.Contains(r.stderr, "1 object differ") {
		t.Errorf("with another property of the namespace it printed %s%s", r.stdout, r.stderr)
	}
	mirror.moved(t, 0, "set", "harbour.", "note=there")
	demo.moved(t, 0, "set", "harbour.ships", "a=b")
	if plan := mirror.moved(t, 3, "import", "rest", demo.uri, "--dry-run").stdout; !strings.Contains(plan, "1 moved, 4 same") {
		t.Errorf("the plan is\n%s", plan)
	}
	if listed := mirror.moved(t, 0, "ls", "-l", "harbour").stdout; strings.Count(listed, "mirror of "+demo.uri) != 5 {
		t.Errorf("the mirrors are listed as\n%s", listed)
	}
	mirror.moved(t, 0, "import", "cutover", "rest", demo.uri, "--source-frozen", "--yes", "--state", journal+".cut")
	if now := mirror.moved(t, 0, "export", "list").stdout; now != demo.moved(t, 0, "export", "list").stdout {
		t.Errorf("after the cut-over the list is\n%s", now)
	}
	mirror.moved(t, 0, "set", "harbour.ships", "c=d")

	third := startOver(t, folder)
	mirror.moved(t, 0, "export", "rest", third.uri, "--into", "x")
	exported := third.moved(t, 0, "export", "list").stdout
	if want := strings.ReplaceAll(mirror.moved(t, 0, "export", "list").stdout, "harbour,", "x.harbour,"); exported != want {
		t.Errorf("the exported list is\n%s, want\n%s", exported, want)
	}

	back := startOver(t, folder)
	file := filepath.Join(t.TempDir(), "tables.csv")
	if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	back.moved(t, 0, "import", "list", file, "--writable", "--include", "x.harbour.*")
	if now := back.moved(t, 0, "export", "list").stdout; now != exported {
		t.Errorf("the list came back as\n%s", now)
	}
	back.moved(t, 0, "set", "x.harbour.ports", "e=f")
	if plan := back.moved(t, 3, "import", "list", file, "--writable", "--dry-run").stdout; !strings.Contains(plan, "changed-here") {
		t.Errorf("the plan is\n%s", plan)
	}
}

// TestTransferGone: a mirror whose table was dropped at the source stays one, and the cut-over
// names it.
func TestTransferGone(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	s := startOver(t, folder)
	s.moved(t, 0, "import", "rest", demo.uri)
	demo.moved(t, 0, "rm", "harbour.ports", "--yes")
	said := s.moved(t, 3, "import", "cutover", "rest", demo.uri, "--source-frozen", "--yes")
	if !strings.Contains(said.stdout, "harbour.ports  The source has it no more") || !strings.Contains(said.stderr, "4 objects cut over, and 1 object not") {
		t.Errorf("it printed %s%s", said.stdout, said.stderr)
	}
	s.moved(t, 0, "set", "harbour.ships", "a=b")
}

// TestTransferWritable: an import makes no ordinary tables while a policy would delete files that
// the source needs, unless the caller confirms that the source is not used any more.
func TestTransferWritable(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	file := writeFile(t, "tables.csv", demo.moved(t, 0, "export", "list").stdout)
	for name, scope := range map[string][]string{
		"server": {"server"}, "warehouse": {"warehouse", "default"}, "namespace": {"namespace", "default.harbour"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startOver(t, folder)
			s.created(t, "/v1/default/namespaces", `{"namespace":["harbour"]}`)
			words := []string{"import", "list", file, "--writable"}
			s.moved(t, 0, append(append([]string{"maintain", "set"}, scope...), "compaction", "on")...)
			s.moved(t, 0, append(append([]string{"maintain", "set"}, scope...), "orphans", "on")...)
			refused := s.moved(t, 4, words...)
			if !strings.Contains(refused.stderr, "orphans of") || !strings.Contains(refused.stderr, "--source-frozen") {
				t.Errorf("the refusal is %s", refused.stderr)
			}
			if names := s.moved(t, 0, "ls", "harbour", "-o", "name").stdout; names != "" {
				t.Errorf("a refused import made %s", names)
			}
			s.moved(t, 0, append(words, "--source-frozen")...)
			s.moved(t, 0, "set", "harbour.ships", "a=b")
		})
	}
}

// proxied serves a proxy of s. It calls before with each request, and the client gets no answer if
// answers returns false.
func (s *served) proxied(t *testing.T, before func(r *http.Request), answers func(r *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if !answers(r) {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTransferSwitchedOn: a policy that is switched on while an import makes ordinary tables stops
// it at once. The server refuses each register, so nothing gets past a check that came too early.
func TestTransferSwitchedOn(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	s := startOver(t, folder)
	var once sync.Once
	// The properties of namespaces are read when the plan is made, and all checks have passed.
	source := demo.proxied(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/harbour") {
			once.Do(func() { s.moved(t, 0, "maintain", "set", "warehouse", "default", "orphans", "on") })
		}
	}, func(*http.Request) bool { return true })
	words := []string{"import", "rest", source, "--writable"}
	refused := s.moved(t, 3, words...)
	if strings.Count(refused.stdout, "orphans of default may delete files") != 5 {
		t.Errorf("it printed %s%s", refused.stdout, refused.stderr)
	}
	if names := s.moved(t, 0, "ls", "harbour", "-o", "name").stdout; names != "" {
		t.Errorf("it made %s", names)
	}
	s.moved(t, 4, words...)
	s.moved(t, 0, "maintain", "set", "warehouse", "default", "orphans", "off")
	s.moved(t, 0, words...)
	s.moved(t, 0, "set", "harbour.ships", "a=b")
}

// TestTransferDetachUnseen: a source lets go of a table after one more commit, and its answer is
// lost. The repeated cut-over gets the answer again, so the commit is here.
func TestTransferDetachUnseen(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	s := startOver(t, folder)
	var lost atomic.Bool
	lost.Store(true)
	isUnregister := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/unregister") }
	var once sync.Once
	source := demo.proxied(t, func(r *http.Request) {
		if isUnregister(r) {
			once.Do(func() { demo.moved(t, 0, "set", "harbour.ships", "last=commit") })
		}
	}, func(r *http.Request) bool { return !isUnregister(r) || !lost.Load() })
	only := []string{"--include", "harbour.ships", "--state", filepath.Join(t.TempDir(), "journal")}
	s.moved(t, 0, append([]string{"import", "rest", source}, only...)...)
	cut := append([]string{"import", "cutover", "rest", source, "--detach", "--yes"}, only...)
	s.moved(t, 1, cut...)
	if names := demo.moved(t, 0, "ls", "harbour", "-o", "name").stdout; strings.Contains(names, "ships") {
		t.Fatalf("the source has %s", names)
	}
	s.moved(t, 1, "set", "harbour.ships", "a=b") // a mirror still
	lost.Store(false)
	s.moved(t, 0, cut...)
	if props := s.moved(t, 0, "show", "harbour.ships", "props").stdout; !containsPair(props, "last", "commit") {
		t.Errorf("the last commit at the source is lost:\n%s", props)
	}
	s.moved(t, 0, "set", "harbour.ships", "a=b")
}

// TestTransferWatch: the mirrors follow the source until the command is stopped.
func TestTransferWatch(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	s := startOver(t, folder)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	out, faults := newLockedBuffer(), new(lockedBuffer)
	ended := make(chan int)
	go func() {
		args := []string{"import", "rest", demo.uri, "--watch", "1ms", "--state", filepath.Join(t.TempDir(), "journal"), "--uri", s.uri}
		ended <- run(ctx, args, cli.Environment{Stdout: out, Stderr: faults})
	}()
	awaitRuns := func(more int) {
		t.Helper()
		const said = "the next one begins in"
		for all := strings.Count(out.String(), said) + more; strings.Count(out.String(), said) < all; {
			select {
			case <-out.written:
			case <-ctx.Done():
				t.Fatalf("it printed %s%s", out, faults)
			}
		}
	}
	awaitRuns(1)
	demo.moved(t, 0, "set", "harbour.ships", "a=b")
	awaitRuns(2) // the first one may have begun before
	if now := s.moved(t, 0, "export", "list").stdout; now != demo.moved(t, 0, "export", "list").stdout {
		t.Errorf("the mirrors are\n%s", now)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ended with %d: %s", code, faults)
	}
}

// TestTransferFiles brings the tables of a folder that no catalog has.
func TestTransferFiles(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	list := demo.moved(t, 0, "export", "list", "--exclude", "*.arrivals", "--exclude", "*.busiest").stdout
	demo.stop()
	s := startOver(t, folder)
	plan := s.moved(t, 3, "import", "files", "file://"+folder+"/warehouse", "--dry-run").stdout
	if !strings.Contains(plan, "2 unreadable, 3 new") && !strings.Contains(plan, "3 new, 2 unreadable") {
		t.Errorf("the plan is\n%s", plan) // the views have no table in their files
	}
	s.moved(t, 0, "import", "files", "file://"+folder+"/warehouse", "--exclude", "*.arrivals", "--exclude", "*.busiest")
	if now := s.moved(t, 0, "export", "list").stdout; now != list {
		t.Errorf("the list is\n%s, want\n%s", now, list)
	}
	s.moved(t, 1, "import", "files", "file:///elsewhere")
}

// TestTransferDir writes equal catalogs as equal files, and leaves other folders alone.
func TestTransferDir(t *testing.T) {
	t.Parallel()
	demo, _ := startSample(t)
	dir := filepath.Join(t.TempDir(), "out")
	demo.moved(t, 0, "export", "dir", dir)
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, dir)
	if len(before) != 7 || before["harbour/ships.table.json"] == "" || before["harbour/namespace.json"] == "" {
		t.Errorf("the files are %v", before)
	}
	demo.moved(t, 0, "rm", "harbour.ports", "--yes")
	demo.moved(t, 0, "export", "dir", dir)
	after := filesIn(t, dir)
	delete(before, "harbour/ports.table.json")
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the files became %v", after)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	demo.moved(t, 4, "export", "dir", other)
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTransferSQL brings tables from a database in the forms of JdbcCatalog, and cuts over by
// taking each row out of it.
func TestTransferSQL(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	lines := demo.moved(t, 0, "export", "list", "-o", "jsonl").stdout
	demo.stop()
	for form, column := range map[string]string{"the first form": "", "the form with views": ", iceberg_type VARCHAR(5)"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "catalog.db")
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			do := func(query string, values ...any) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), query, values...); err != nil {
					t.Fatal(err)
				}
			}
			do("CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, " +
				"table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000)" + column +
				", PRIMARY KEY (catalog_name, table_namespace, table_name))")
			do("CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, " +
				"property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))")
			do("INSERT INTO iceberg_namespace_properties VALUES ('mine', 'harbour', 'exists', 'true'), ('mine', 'harbour', 'team', 'blue')")
			tables := 0
			for line := range strings.Lines(lines) {
				var o listedObject
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				switch {
				case column != "":
					do("INSERT INTO iceberg_tables VALUES ('mine', 'harbour', ?, ?, NULL, ?)", o.Name, o.MetadataLocation, strings.ToUpper(o.Kind))
				case o.Kind == "table":
					do("INSERT INTO iceberg_tables VALUES ('mine', 'harbour', ?, ?, NULL)", o.Name, o.MetadataLocation)
				default:
					continue
				}
				tables++
			}
			s := startOver(t, folder)
			said := s.moved(t, 0, "import", "sql", "sqlite:"+file).stdout
			if want := fmt.Sprintf("%d objects: %d new; %d compared, %d alike.", tables, tables, tables, tables); !strings.Contains(said, want) {
				t.Errorf("it printed %s, want %s", said, want)
			}
			if said := s.moved(t, 0, "show", "harbour.").stdout; !strings.Contains(said, "blue") {
				t.Errorf("the namespace is %s", said)
			}
			s.moved(t, 0, "import", "cutover", "sql", "sqlite:"+file, "--detach", "--yes")
			left := -1
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM iceberg_tables").Scan(&left); err != nil || left != 0 {
				t.Errorf("%d rows are left, %v", left, err)
			}
			s.moved(t, 0, "set", "harbour.ships", "a=b")
		})
	}
}

// TestTransferDetachLosesNothing cuts tables over while a writer commits to each of them at the
// source. Each commit that the source acknowledged is at the target.
func TestTransferDetachLosesNothing(t *testing.T) {
	t.Parallel()
	demo, folder := startSample(t)
	s := startOver(t, folder)
	only := []string{"--include", "harbour.ships", "--include", "harbour.ports"}
	s.moved(t, 0, append([]string{"import", "rest", demo.uri}, only...)...)
	var last [2]atomic.Int64
	ended := make(chan struct{})
	for i, name := range []string{"ships", "ports"} {
		go func() {
			defer func() { ended <- struct{}{} }()
			for n := int64(1); ; n++ {
				code := run(context.Background(), []string{"set", "harbour." + name, fmt.Sprint("n=", n), "--uri", demo.uri, "-q"}, cli.Environment{Stdout: io.Discard, Stderr: io.Discard})
				if code != 0 {
					return // the source has the table no more
				}
				last[i].Store(n)
			}
		}()
	}
	for done := false; !done; {
		r := runToEnd(t, append([]string{"import", "cutover", "rest", demo.uri, "--detach", "--yes", "--uri", s.uri}, only...)...)
		done = r.code == 0 // else a table moved on between two looks
		if r.code != 0 && r.code != 3 {
			t.Fatalf("the cut-over ended with %d: %s", r.code, r.stderr)
		}
	}
	<-ended
	<-ended
	for i, name := range []string{"ships", "ports"} {
		want := fmt.Sprint(last[i].Load())
		if props := s.moved(t, 0, "show", "harbour."+name, "props").stdout; want != "0" && !containsPair(props, "n", want) {
			t.Errorf("%s: the last acknowledged commit was %s, and it has\n%s", name, want, props)
		}
	}
}

// containsPair reports whether a line of text has the words name and value.
func containsPair(text, name, value string) bool {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == name && words[1] == value {
			return true
		}
	}
	return false
}
