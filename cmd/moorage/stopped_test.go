package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	engine "github.com/cockroachdb/pebble/v2"

	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
)

// If there is no store, the message reports where the command looked for it, and how to create one.
func TestNoStore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	want := "moorage: there is no store in " + filepath.Join(data, "registry") + ": moorage serve makes it; --data or --store says where it is\n"
	if got := runToEnd(t, "warehouse", "list", "--data", data); got.code != cli.ExitFailed || got.stderr != want {
		t.Errorf("%+v, want %q", got, want)
	}
	if err := os.Mkdir(filepath.Join(data, "registry"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != cli.ExitFailed || got.stderr != want { // as with a disk that is not mounted
		t.Errorf("in an empty folder: %+v, want %q", got, want)
	}
	if got := runToEnd(t, "doctor", "--deep", "--data", writeFile(t, "file", "")); got.code != cli.ExitFailed || !isSentence(got.stderr, "look for the store: ") {
		t.Errorf("in a file: %+v", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"version", "--version"} {
		if got := runToEnd(t, word); got.code != cli.ExitDone || !strings.HasPrefix(got.stdout, "moorage "+release+" (") || !strings.Contains(got.stdout, " go1.") {
			t.Errorf("got %+v", got)
		}
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, newest, _ := strings.Cut(string(changes), "\n## ")
	newest, _, _ = strings.Cut(newest, "\n")
	want := strings.TrimSuffix(release, "-dev")
	if isUnreleased := want != release; isUnreleased && newest != "Unreleased" || !isUnreleased && !strings.HasPrefix(newest, want+" (") {
		t.Errorf("the binary is %s, and the topmost section of CHANGELOG.md is %q", release, newest)
	}
}

func TestWarehouses(t *testing.T) {
	t.Parallel()
	data, lake := t.TempDir(), t.TempDir()
	if got := runToEnd(t, "warehouse", "list", "--data", data); got.code != cli.ExitFailed || !isSentence(got.stderr, "there is no store") {
		t.Errorf("list without a store: %+v", got)
	}
	startServe(t, "--data", data).stop()

	for _, step := range []struct {
		args []string
		code int
		want string // text on stdout, or on stderr if code is not 0
	}{
		{[]string{"create", "lake", "--location", "file://" + lake, "--property", "owner=port"}, cli.ExitDone, "created warehouse lake at file://" + lake},
		{[]string{"create", "lake", "--location", "file://" + lake}, cli.ExitConflict, "Warehouse already exists: lake"},
		{[]string{"list"}, cli.ExitDone, "lake     file://" + lake},
		{[]string{"drop", "lake"}, cli.ExitDone, "dropped warehouse lake"},
		{[]string{"drop", "lake"}, cli.ExitNo, "Warehouse does not exist: lake"},
		{[]string{"list"}, cli.ExitDone, "default  file://" + data + "/warehouse"},
	} {
		got := runToEnd(t, append([]string{"warehouse"}, append(step.args, "--data", data)...)...)
		said := got.stdout
		if step.code != cli.ExitDone {
			said = got.stderr
		}
		if got.code != step.code || !strings.Contains(said, step.want) {
			t.Errorf("warehouse %q: %+v, want exit %d and %q", step.args, got, step.code, step.want)
		}
	}

	runToEnd(t, "warehouse", "create", "lake", "--location", "file://"+lake, "--data", data)
	server := startServe(t, "--data", data)
	if code, body := server.request(t, "POST", "/v1/lake/namespaces", createNamespace); code != http.StatusOK {
		t.Errorf("create a namespace in the new warehouse: %d %s", code, body)
	}
	server.stop()
	if got := runToEnd(t, "warehouse", "drop", "lake", "--data", data); got.code != cli.ExitConflict || !isSentence(got.stderr, "not empty") {
		t.Errorf("drop a warehouse that is not empty: %+v", got)
	}
}

// TestCheck removes a table's metadata file, and checks the store of a stopped server and of a
// running one.
func TestCheck(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.makeTable(t)
	const clean = "ok    store: 1 warehouse, 1 namespace, 1 table, 0 views: no problems\nnothing is bad\n"
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.uri+"/"); got.code != cli.ExitDone || !strings.HasSuffix(got.stdout, clean) {
		t.Errorf("check --uri: %+v", got)
	}
	server.stop()
	if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != cli.ExitDone || !strings.HasSuffix(got.stdout, clean) {
		t.Errorf("check --data: %+v", got)
	}

	files, err := filepath.Glob(filepath.Join(data, "warehouse", "harbour", "ships", "metadata", "*.metadata.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("metadata files: %q, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != cli.ExitNo || !strings.Contains(got.stdout, "problem: table default.harbour.ships") {
		t.Errorf("check --data without the file: %+v", got)
	}
	server = startServe(t, "--data", data)
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.uri); got.code != cli.ExitNo || !strings.Contains(got.stdout, "problem: table default.harbour.ships") {
		t.Errorf("check --uri without the file: %+v", got)
	}
}

// TestCheckMakesNothing removes a warehouse's folder, and with it a table's files. The check
// reports that, and does not create the folder again.
func TestCheckMakesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.makeTable(t)
	server.stop()
	folder := filepath.Join(data, "warehouse")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != cli.ExitNo || !strings.Contains(got.stdout, "problem: table default.harbour.ships") {
		t.Errorf("check: %+v", got)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("check made %s (%v)", folder, err)
	}
}

func TestCheckOfAServerThatIsNone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.URL); got.code != cli.ExitFailed || !isSentence(got.stderr, "404") {
		t.Errorf("404: %+v", got)
	}
	server.Close()
	if got := runToEnd(t, "doctor", "--deep", "--uri", server.URL); got.code != cli.ExitFailed || !isSentence(got.stderr, "refused") {
		t.Errorf("nobody there: %+v", got)
	}
	chatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }))
	defer chatter.Close()
	if got := runToEnd(t, "doctor", "--deep", "--uri", chatter.URL); got.code != cli.ExitFailed || !isSentence(got.stderr, "read the answer") {
		t.Errorf("not JSON: %+v", got)
	}
}

// TestNewerFormat writes the layout version of a later server into a store. It writes it directly,
// because the store itself would refuse that.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	database, err := engine.Open(dir, &engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	format := registry.FormatKey()
	key := append([]byte{'r', byte(format.Table)}, format.ID...)
	value, closer, err := database.Get(key)
	if err != nil {
		t.Fatalf("the format record is not where the test looks: %v", err)
	}
	newer := bytes.Replace(value, []byte(fmt.Sprintf(`"version":%d`, registry.FormatFirst)), []byte(`"version":999`), 1)
	if err := errors.Join(closer.Close(), database.Set(key, newer, engine.Sync), database.Close()); err != nil {
		t.Fatal(err)
	}

	got := runToEnd(t, "serve", "--store", dir, "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	if got.code != cli.ExitFailed || !isSentence(got.stderr, "newer version") {
		t.Errorf("exit %d, stderr %q; want 1 and one sentence", got.code, got.stderr)
	}
}

// slowBackup is a store whose backup ends only with its context.
type slowBackup struct {
	*pebble.Store
	begun chan struct{}
}

// Backup implements backuper.
func (s slowBackup) Backup(ctx context.Context, _, _ string, _ func(context.Context, registry.Store) error) (int, error) {
	close(s.begun)
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestSignalEndsBackup checks that a signal to a command on a stopped store ends a long backup.
func TestSignalEndsBackup(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop()
	opened, _ := mustOpenStore(t, data)
	slow := slowBackup{opened, make(chan struct{})}
	ctx, signal := context.WithCancel(t.Context())
	open := func(ctx context.Context, c cli.Config, logger *slog.Logger) (*node, error) {
		return newNode(ctx, c, slow, logger)
	}
	go func() {
		<-slow.begun
		signal()
	}()
	c := cli.Config{Data: data, IdempotencyLifetime: time.Minute}
	env := cli.Environment{Stdout: io.Discard, Stderr: io.Discard}
	err := withStore(ctx, c, env, open, func(server *client.Client) error {
		return server.Do(t.Context(), client.Request{
			Method: http.MethodPost, Path: client.Path("backup"), Body: client.BackupSpec{Name: "monday"},
		}, new(client.Backup))
	})
	if err == nil || !strings.Contains(err.Error(), "There is no new backup") {
		t.Errorf("the backup ended with %v", err)
	}
}
