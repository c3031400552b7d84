package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/internal/cli"
)

// Sizes of the load during which backups are taken.
const (
	backupWriters = 4
	backupsTaken  = 4
)

// backupLoad counts the changes that clients of a server have made. It is safe for concurrent use.
type backupLoad struct {
	commits [backupWriters]atomic.Int64 // acknowledged commits of each writer, to a table of its own
	creates [backupWriters]atomic.Int64 // acknowledged creates of each writer
}

func loadTable(writer int) string {
	return fmt.Sprintf("/v1/namespaces/harbour/tables/writer%d", writer)
}

// run commits and creates tables, alternating, until done is closed.
func (l *backupLoad) run(t *testing.T, server *served, writer int, done <-chan struct{}) {
	for n := int64(1); ; n++ {
		select {
		case <-done:
			return
		default:
		}
		commit := fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"count":"%d"}}]}`, n)
		if code, body := server.request(t, "POST", loadTable(writer), commit); code != http.StatusOK {
			t.Errorf("commit: %d %s", code, body)
			return
		}
		l.commits[writer].Store(n)
		create := strings.Replace(createTable, "ships", fmt.Sprintf("made%d-%d", writer, n), 1)
		if code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", create); code != http.StatusOK {
			t.Errorf("create: %d %s", code, body)
			return
		}
		l.creates[writer].Store(n)
	}
}

// acknowledged has the counts of a backupLoad at some moment.
type acknowledged struct{ commits, creates [backupWriters]int64 }

func (l *backupLoad) acknowledged() (a acknowledged) {
	for writer := range backupWriters {
		a.commits[writer], a.creates[writer] = l.commits[writer].Load(), l.creates[writer].Load()
	}
	return a
}

// TestBackupAndRestore takes backups while clients commit and create tables, and serves each
// backup. The backup must contain everything that was acknowledged before it began, and no change
// in part.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	if code, body := server.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	var load backupLoad
	var writers sync.WaitGroup
	done := make(chan struct{})
	for writer := range backupWriters {
		create := strings.Replace(createTable, "ships", fmt.Sprintf("writer%d", writer), 1)
		if code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", create); code != http.StatusOK {
			t.Fatalf("create table: %d %s", code, body)
		}
		writers.Go(func() { load.run(t, server, writer, done) })
	}
	stop := sync.OnceFunc(func() {
		close(done)
		writers.Wait()
	})
	defer stop()
	var wanted [backupsTaken]acknowledged
	for n := range backupsTaken {
		for before := load.commits[0].Load(); load.commits[0].Load() < before+3 && !t.Failed(); {
			server.request(t, "GET", "/healthz", "")
		}
		wanted[n] = load.acknowledged()
		got := runToEnd(t, "backup", fmt.Sprint("monday-", n), "--uri", server.uri)
		if folder := filepath.Join(data, "backups", fmt.Sprint("monday-", n)); got.code != cli.ExitDone || !strings.Contains(got.stdout, " records in "+folder+"\n") {
			t.Fatalf("backup: %+v", got)
		}
	}
	stop()
	server.stop()
	for n, want := range wanted {
		want.check(t, filepath.Join(data, "backups", fmt.Sprint("monday-", n)))
	}
}

// check serves a backup, and checks that it contains everything it must contain.
func (a acknowledged) check(t *testing.T, backup string) {
	t.Helper()
	server := startServe(t, "--data", backup)
	defer server.stop()
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.uri); got.code != cli.ExitDone {
		t.Errorf("%s: check: %+v", backup, got)
	}
	for writer := range backupWriters {
		_, body := server.request(t, "GET", loadTable(writer), "")
		var count int64
		if _, after, ok := strings.Cut(body, `"count":"`); ok {
			fmt.Sscanf(after, "%d", &count)
		}
		if count < a.commits[writer] {
			t.Errorf("%s: writer %d is at commit %d, %d was acknowledged", backup, writer, count, a.commits[writer])
		}
		for n := int64(1); n <= a.creates[writer]; n++ {
			path := fmt.Sprintf("/v1/namespaces/harbour/tables/made%d-%d", writer, n)
			if code, body := server.request(t, "GET", path, ""); code != http.StatusOK {
				t.Errorf("%s: %s: %d %s", backup, path, code, body)
			}
		}
	}
	if code, body := server.request(t, "POST", loadTable(0), `{"requirements":[],"updates":[{"action":"set-properties","updates":{"restored":"yes"}}]}`); code != http.StatusOK {
		t.Errorf("%s: commit to a restored table: %d %s", backup, code, body)
	}
}

// TestBackupOfAStoppedStore copies the store itself, and restores the copy in place. It also tries
// invalid commands.
func TestBackupOfAStoppedStore(t *testing.T) {
	t.Parallel()
	data, elsewhere := t.TempDir(), t.TempDir()
	copied := filepath.Join(elsewhere, "copy")
	server := startServe(t, "--data", data)
	server.makeTable(t)
	if got := runToEnd(t, "backup", copied, "--data", data); got.code != cli.ExitFailed || !isSentence(got.stderr, "or ask it with --uri") {
		t.Errorf("while it runs: %+v", got)
	}
	server.stop()
	if got := runToEnd(t, "backup", copied, "--data", data); got.code != cli.ExitDone || !strings.Contains(got.stdout, "records in "+copied) {
		t.Errorf("backup: %+v", got)
	}
	if got := runToEnd(t, "backup", copied, "--data", data); got.code != cli.ExitConflict || !isSentence(got.stderr, "There is a backup already") {
		t.Errorf("again: %+v", got)
	}
	if got := runToEnd(t, "backup", filepath.Join(elsewhere, "no", "such", "folder"), "--data", data); got.code != cli.ExitFailed || !isSentence(got.stderr, "no such file or directory") {
		t.Errorf("nowhere: %+v", got)
	}
	if got := runToEnd(t, "backup", filepath.Join(elsewhere, "other"), "--data", t.TempDir()); got.code != cli.ExitFailed || !isSentence(got.stderr, "there is no store") {
		t.Errorf("of nothing: %+v", got)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("%s holds %v, %v; want only the one backup", elsewhere, left, err)
	}

	server = startServe(t, "--data", data)
	if code, body := server.request(t, "DELETE", tablePath, ""); code != http.StatusNoContent {
		t.Fatalf("drop: %d %s", code, body)
	}
	server.stop()
	if err := os.RemoveAll(filepath.Join(data, cli.StoreFolder)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(data, cli.StoreFolder), os.DirFS(filepath.Join(copied, cli.StoreFolder))); err != nil {
		t.Fatal(err)
	}
	server = startServe(t, "--data", data)
	if code, body := server.request(t, "GET", tablePath, ""); code != http.StatusOK {
		t.Errorf("the table after the restore: %d %s", code, body)
	}
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.uri); got.code != cli.ExitDone {
		t.Errorf("check: %+v", got)
	}
}

// TestBackupNames requests backups with names that lead to another folder or are taken.
func TestBackupNames(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), filepath.Join(t.TempDir(), "copies")
	server := startServe(t, "--data", data, "--backups", folder)
	for _, name := range []string{"..", ".", ".hidden", "", "a/b", "../a", "/etc/a", `a\b`, "a\n", "ä", "-a", strings.Repeat("a", 101)} {
		code, body := server.request(t, "POST", "/management/v1/backup", fmt.Sprintf(`{"name":%q}`, name))
		if code != http.StatusBadRequest {
			t.Errorf("%q: %d %s, want 400", name, code, body)
		}
		if got := runToEnd(t, "backup", name, "--uri", server.uri); got.code != cli.ExitUsage {
			t.Errorf("backup %q --uri: %+v, want 2", name, got)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("%s was made for nothing", folder)
	}
	for _, name := range []string{"a", strings.Repeat("b", 100), "c..d"} {
		if code, body := server.request(t, "POST", "/management/v1/backup", fmt.Sprintf(`{"name":%q}`, name)); code != http.StatusOK {
			t.Errorf("%q: %d %s", name, code, body)
		}
	}
	if got := runToEnd(t, "backup", "a", "--uri", server.uri); got.code != cli.ExitConflict || !isSentence(got.stderr, "There is a backup already: a") {
		t.Errorf("a name that is taken: %+v", got)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 3 {
		t.Errorf("%s holds %v, %v; want three backups", folder, left, err)
	}
}

// TestNoBackup requests backups of stores that do not support them.
func TestNoBackup(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data, "--store", "memory")
	if got := runToEnd(t, "backup", "a", "--uri", server.uri); got.code != cli.ExitFailed || !isSentence(got.stderr, "nothing to restore a backup to") {
		t.Errorf("memory: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(data, "backups")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("memory: a folder for backups was made (%v)", err)
	}
	dir := filepath.Join(t.TempDir(), "a")
	if got := runToEnd(t, "backup", dir, "--store", "memory"); got.code != cli.ExitUsage {
		t.Errorf("memory, stopped: %+v", got)
	}
	if got := runToEnd(t, "backup", dir, "--store", "postgres://localhost/moorage"); got.code != cli.ExitFailed || !isSentence(got.stderr, "pg_dump or pg_basebackup") {
		t.Errorf("PostgreSQL: %+v", got)
	}
}
