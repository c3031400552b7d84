package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage/catalog/gate"
	"moorage/internal/cli"
	"moorage/registry"
	"moorage/registry/postgres"
)

// heldStore is a store that delays the Apply in which a transaction takes effect.
type heldStore struct {
	registry.Store
	arrived chan struct{} // closed when the only transaction is about to take effect
	release chan struct{} // when this is closed, the transaction takes effect
}

// Apply calls Apply of the store. For a transaction, it first waits for release.
func (s *heldStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change != nil && batch.Change.Operation == string(gate.Transaction) {
		close(s.arrived)
		<-s.release
	}
	return s.Store.Apply(ctx, batch)
}

// heldEmbedded is a heldStore that can be copied.
type heldEmbedded struct {
	*heldStore
	backuper
}

// fleet has the names of the tables in these tests. The transaction changes the first four; the
// last one is dropped with a purge and brought back.
var fleet = []string{"brig", "sloop", "ketch", "yawl", "hulk"}

func fleetTable(name string) string { return "/v1/namespaces/harbour/tables/" + name }

// makeFleet makes the tables and returns the metadata location of the last.
func makeFleet(t *testing.T, server *served) string {
	t.Helper()
	if code, body := server.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	code, body := server.request(t, "PATCH", "/management/v1/warehouses/default", `{"properties":{"moorage.purge-delay":"0"}}`)
	if code != http.StatusOK { // purgeAnother waits for the purge
		t.Fatalf("have the warehouse purge at once: %d %s", code, body)
	}
	var last string
	for _, name := range fleet {
		code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", strings.Replace(createTable, "ships", name, 1))
		if code != http.StatusOK {
			t.Fatalf("create %s: %d %s", name, code, body)
		}
		_, after, _ := strings.Cut(body, `"metadata-location":"`)
		last, _, _ = strings.Cut(after, `"`)
	}
	return last
}

// dropHulk drops the table hulk with a purge.
func dropHulk(t *testing.T, server *served) {
	t.Helper()
	if code, body := server.request(t, "DELETE", fleetTable("hulk")+"?purgeRequested=true", ""); code != http.StatusNoContent {
		t.Fatalf("drop: %d %s", code, body)
	}
}

// raiseHulk brings the table hulk back.
func raiseHulk(t *testing.T, server *served, location string) {
	t.Helper()
	code, body := server.request(t, "POST", "/v1/namespaces/harbour/register", fmt.Sprintf(`{"name":"hulk","metadata-location":%q}`, location))
	if code != http.StatusOK {
		t.Fatalf("register: %d %s", code, body)
	}
}

// commitFleet changes four tables in one transaction, and returns the status.
func commitFleet(t *testing.T, server *served) int {
	t.Helper()
	var changes []string
	for _, name := range fleet[:4] {
		changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["harbour"],"name":%q},"requirements":[],"updates":[{"action":"set-properties","updates":{"sailed":"yes"}}]}`, name))
	}
	code, _ := server.request(t, "POST", "/v1/default/transactions/commit", `{"table-changes":[`+strings.Join(changes, ",")+`]}`)
	return code
}

// purgeAnother creates a table, drops it with a purge, and waits until the table's file is gone.
// After two such purges, the server has examined every earlier task, because it finds the second in
// a later round than the first.
func purgeAnother(t *testing.T, server *served, name string) {
	t.Helper()
	code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", strings.Replace(createTable, "ships", name, 1))
	if code != http.StatusOK {
		t.Fatalf("create %s: %d %s", name, code, body)
	}
	_, after, _ := strings.Cut(body, `"metadata-location":"file://`)
	file, _, _ := strings.Cut(after, `"`)
	if code, body := server.request(t, "DELETE", fleetTable(name)+"?purgeRequested=true", ""); code != http.StatusNoContent {
		t.Fatalf("drop %s: %d %s", name, code, body)
	}
	for end := time.Now().Add(patience); ; {
		if _, err := os.Stat(file); err != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not purged", name)
		}
		server.request(t, "GET", "/healthz", "")
	}
}

// wantFleet starts a server with flags. It fails the test unless all tables can be loaded, and the
// store is sound.
func wantFleet(t *testing.T, flags ...string) {
	t.Helper()
	if got := runToEnd(t, append([]string{"doctor", "--deep"}, flags...)...); got.code != cli.ExitDone || !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
	server := startServe(t, flags...)
	defer server.stop()
	for i, name := range fleet {
		code, body := server.request(t, "GET", fleetTable(name), "")
		if code != http.StatusOK || i < 4 && !strings.Contains(body, `"sailed":"yes"`) {
			t.Errorf("load %s: %d %s", name, code, body)
		}
	}
}

// TestRestoreAndGoBack takes a backup while a transaction is in progress and a purge is waiting.
// After the backup, the transaction takes effect, and the table of the purge comes back. Then the
// test restores and serves the backup. After that it serves the original store again: all files
// that the store needs must still exist.
func TestRestoreAndGoBack(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	location := makeFleet(t, server)
	server.stop()
	backUpAmid(t, data, location)

	used, aside := filepath.Join(data, cli.StoreFolder), filepath.Join(data, "registry-before")
	move(t, used, aside)
	move(t, filepath.Join(data, "backups", "monday", cli.StoreFolder), used)
	server = startServe(t, "--data", data)
	if got := runToEnd(t, "doctor", "--uri", server.uri); !strings.Contains(got.stdout, "nothing is bad") || strings.Contains(got.stdout, "transaction in") {
		t.Errorf("the backup, restored: %+v", got)
	}
	purgeAnother(t, server, "raft")
	purgeAnother(t, server, "buoy")
	if code := commitFleet(t, server); code != http.StatusNoContent {
		t.Errorf("a transaction in the restored backup: %d", code)
	}
	raiseHulk(t, server, location)
	server.stop()
	if log := server.stderr.String(); strings.Contains(log, "transaction recovered") {
		t.Errorf("the restored backup ended a transaction of the store that it is a copy of; stderr:\n%s", log)
	}
	wantFleet(t, "--data", data)

	move(t, used, filepath.Join(data, "registry-restored"))
	move(t, aside, used)
	wantFleet(t, "--data", data)
}

// TestUnfinishedBackup serves the folder that a killed backup has left. The folder may still
// contain transactions and purges.
func TestUnfinishedBackup(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	startServe(t, "--data", data).stop()
	unfinished := filepath.Join(t.TempDir(), "monday.0123456789abcdef.unfinished")
	move(t, data, unfinished)
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"doctor", "--deep"}, {"doctor", "retry", "all"}} {
		if got := runToEnd(t, append(args, "--data", unfinished)...); got.code != cli.ExitFailed || !isSentence(got.stderr, "a backup that did not end") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	early := filepath.Join(t.TempDir(), "monday.0123456789abcdef.unfinished") // killed before it contained a store
	if got := runToEnd(t, "doctor", "--deep", "--data", early); got.code != cli.ExitFailed || !isSentence(got.stderr, "a backup that did not end") {
		t.Errorf("check of an early one: %+v", got)
	}
}

// backUpAmid makes the backup monday of the store in data, while a server is at work.
func backUpAmid(t *testing.T, data, location string) {
	t.Helper()
	opened, _ := mustOpenStore(t, data)
	held := &heldStore{opened, make(chan struct{}), make(chan struct{})}
	workAround(t, cli.Config{Data: data}, heldEmbedded{held, opened}, held, location, func(server *served) {
		if code, body := server.request(t, "POST", "/management/v1/backup", `{"name":"monday"}`); code != http.StatusOK {
			t.Errorf("backup: %d %s", code, body)
		}
	})
}

// workAround calls do while a server on store is at work, with its workers stopped. At that time,
// hulk has been dropped with a purge. A transaction, which held delays, has written its files but
// not taken effect. After do, the transaction takes effect, hulk comes back, and the server ends.
func workAround(t *testing.T, c cli.Config, store registry.Store, held *heldStore, location string, do func(*served)) {
	t.Helper()
	c.IdempotencyLifetime = time.Minute
	node, err := newNode(t.Context(), c, store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(node.handler)
	defer func() {
		listener.Close()
		if err := node.close(); err != nil {
			t.Error(err)
		}
	}()
	server := &served{uri: listener.URL}
	dropHulk(t, server)
	answer := make(chan int, 1)
	go func() { answer <- commitFleet(t, server) }()
	select {
	case <-held.arrived:
	case code := <-answer:
		t.Fatalf("transaction: %d before it was let go", code)
	}
	do(server)
	close(held.release)
	if code := <-answer; code != http.StatusNoContent {
		t.Errorf("transaction: %d, want 204", code)
	}
	raiseHulk(t, server, location)
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreDatabaseAndGoBack dumps a database at such a moment. It restores the dump as another
// database, and forgets the deletions there. It serves first the restored database and then the
// original one.
func TestRestoreDatabaseAndGoBack(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	store, data := database.DSN(), t.TempDir()
	restored := strings.Replace(store, "/postgres?", "/restored?", 1)
	server := startServe(t, "--store", store, "--data", data, "--migrate")
	location := makeFleet(t, server)
	server.stop()

	opened, err := postgres.Open(t.Context(), store, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held := &heldStore{opened, make(chan struct{}), make(chan struct{})}
	dump := filepath.Join(t.TempDir(), "dump.sql")
	client := func(program string, args ...string) {
		t.Helper()
		if output, err := exec.CommandContext(t.Context(), filepath.Join(database.Programs(), program), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, output)
		}
	}
	workAround(t, cli.Config{Data: data, Store: store}, held, held, location, func(*served) { client("pg_dump", "-f", dump, store) })

	client("psql", "-q", "-c", "CREATE DATABASE restored", store)
	client("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, restored)
	for _, want := range []string{"1 transaction forgotten, 1 purge called off; ", "0 transactions forgotten, 0 purges called off; "} {
		if got := runToEnd(t, "doctor", "forget", "--store", restored); got.code != cli.ExitDone || !strings.HasPrefix(got.stdout, want) {
			t.Errorf("doctor forget: %+v, want %q", got, want)
		}
	}
	server = startServe(t, "--store", restored, "--data", data)
	if got := runToEnd(t, "doctor", "--uri", server.uri); !strings.Contains(got.stdout, "nothing is bad") || strings.Contains(got.stdout, "transaction in") {
		t.Errorf("the dump, restored: %+v", got)
	}
	purgeAnother(t, server, "raft")
	purgeAnother(t, server, "buoy")
	// The dump contains the locks of the server that was at work. They become free some seconds
	// later.
	code := http.StatusConflict
	for end := time.Now().Add(patience); code == http.StatusConflict && time.Now().Before(end); {
		code = commitFleet(t, server)
	}
	if code != http.StatusNoContent {
		t.Errorf("a transaction in the restored dump: %d", code)
	}
	raiseHulk(t, server, location)
	server.stop()
	wantFleet(t, "--store", restored, "--data", data)
	wantFleet(t, "--store", store, "--data", data)
}

// TestRecoverForget runs doctor forget where it is refused.
func TestRecoverForget(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if got := runToEnd(t, "doctor", "forget", "--data", data); got.code != cli.ExitFailed || !isSentence(got.stderr, "there is no store") {
		t.Errorf("without a store: %+v", got)
	}
	server := startServe(t, "--data", data)
	if got := runToEnd(t, "doctor", "forget", "--data", data); got.code != cli.ExitFailed || !isSentence(got.stderr, "stop the server first") {
		t.Errorf("of a server that runs: %+v", got)
	}
	server.stop()
	leave(t, data)
	if got := runToEnd(t, "doctor", "forget", "--data", data); got.code != cli.ExitDone || !strings.HasPrefix(got.stdout, "4 transactions forgotten, 0 purges called off; ") {
		t.Errorf("of a server that is stopped: %+v", got)
	}
	if got := runToEnd(t, "doctor", "--data", data); got.code != cli.ExitDone || !strings.Contains(got.stdout, "nothing is bad") {
		t.Errorf("doctor: %+v", got)
	}
}
