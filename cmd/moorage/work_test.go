package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/maintenance/due"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
)

// worksSettings checks the variables that the program for a piece of work gets in addition to the
// lease.
const worksSettings = `#!/bin/sh
case "$MOORAGE_SETTINGS" in *'"targetFileSizeMB":268435456'*) ;; *) echo "settings $MOORAGE_SETTINGS"; exit 4;; esac
[ "$MOORAGE_KIND" = compaction ] || exit 5
exec "$(dirname "$0")/compact"
`

// TestMaintainWork runs a program for a table that is due, and lets another program fail. The
// table's name would do harm in the text of a script.
func TestMaintainWork(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	if code, body := server.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	name := strings.NewReplacer(`"`, `\"`).Replace(hostile)
	code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", strings.Replace(createTable, "ships", name, 1))
	if code != http.StatusOK {
		t.Fatalf("create table: %d %s", code, body)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) string { return writeProgram(t, filepath.Join(dir, name), text) }
	work := func(program string) result {
		return runToEnd(t, "maintain", "work", "--uri", server.uri, "--kind", "compaction", "--once", "--exec", program)
	}
	write("compact", compaction)
	works, fails := write("works", worksSettings), write("fails", "#!/bin/sh\nexit 3\n")
	if got := work(works); got.code != 0 || got.stdout != "nothing is due\n" {
		t.Errorf("before anything is due: %+v", got)
	}
	server.stop()
	makeDue(t, data)
	server = startServe(t, "--data", data)
	if got := work(works); got.code != 0 || got.stdout != "nothing is due\n" {
		t.Errorf("while no policy asks for it: %+v", got)
	}
	enabled := runToEnd(t, "maintain", "set", "warehouse", "default", "compaction", "on", "--uri", server.uri,
		"--set", "targetFileSizeMB=256")
	if enabled.code != 0 {
		t.Fatalf("enable: %+v", enabled)
	}
	for _, tt := range []struct {
		program, outcome string
		code             int
		printed          string
	}{
		{works, "done", 0, "compacted\ncompaction of table default.harbour."},
		{fails, "failed", 1, "exit status 3"},
	} {
		server.stop()
		makeDue(t, data)
		server = startServe(t, "--data", data)
		if got := work(tt.program); got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.printed) {
			t.Errorf("the program: %+v", got)
		}
		if code, body := server.request(t, "GET", "/management/v1/leases", ""); code != http.StatusOK || !strings.Contains(body, `"leases":[]`) {
			t.Errorf("leases are left: %d %s", code, body)
		}
		server.stop()
		if got := runToEnd(t, "doctor", "--deep", "--data", data); got.code != 0 {
			t.Errorf("check: %+v", got)
		}
		if outcome := makeDue(t, data); outcome != tt.outcome {
			t.Errorf("the outcome is %q, want %q", outcome, tt.outcome)
		}
		server = startServe(t, "--data", data)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("the name of the table was run")
	}
}

// The command waits while the server is down, and gets work that becomes due later. If nothing is
// due, it sends only one request.
func TestMaintainWorkWhileTheServerIsAway(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var server *served
	var away atomic.Bool
	var asked atomic.Int64
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		target, err := url.Parse(server.uri)
		if err != nil {
			panic(err)
		}
		proxy := httputil.ReverseProxy{
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorLog: log.New(io.Discard, "", 0), // errors of the request that waits when the command ends
		}
		proxy.ServeHTTP(w, r)
	}))
	defer between.Close()
	server = startServe(t, "--data", data)
	if code, body := server.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	if code, body := server.request(t, "POST", "/v1/namespaces/harbour/tables", createTable); code != http.StatusOK {
		t.Fatalf("create table: %d %s", code, body)
	}
	enabled := runToEnd(t, "maintain", "set", "warehouse", "default", "compaction", "on", "--uri", server.uri)
	if enabled.code != 0 {
		t.Fatalf("enable: %+v", enabled)
	}
	program := writeProgram(t, filepath.Join(t.TempDir(), "compact"), compaction)
	work := []string{"maintain", "work", "--uri", between.URL, "--exec", program}
	if got := runToEnd(t, append(work, "--once")...); got.code != 0 || got.stdout != "nothing is due\n" || asked.Load() != 1 {
		t.Errorf("nothing is due: %+v, %d requests, want one", got, asked.Load())
	}
	server.stop()
	away.Store(true)
	makeDue(t, data)
	ctx, end := context.WithCancel(t.Context())
	stdout, stderr, ended := newLockedBuffer(), newLockedBuffer(), make(chan int, 1)
	go func() { ended <- run(ctx, work, cli.Environment{Stdout: stdout, Stderr: stderr}) }()
	wait := func(b *lockedBuffer, want string) {
		t.Helper()
		for !strings.Contains(b.String(), want) {
			await(t, b.written, fmt.Sprintf("%q; it printed %q and %q", want, stdout.String(), stderr.String()))
		}
	}
	wait(stderr, between.URL)
	server = startServe(t, "--data", data)
	away.Store(false)
	wait(stdout, "compacted\n")
	// The command reports the end only after the program has ended.
	for {
		code, body := server.request(t, "GET", "/management/v1/leases", "")
		if code != http.StatusOK {
			t.Fatalf("leases: %d %s", code, body)
		}
		if strings.Contains(body, `"leases":[]`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	end()
	if code := <-ended; code != 0 {
		t.Errorf("the command ended with %d: %s", code, stderr.String())
	}
	server.stop()
	if outcome := makeDue(t, data); outcome != "done" {
		t.Errorf("the outcome is %q, want done", outcome)
	}
}

// makeDue makes compaction of the only table due, in the store of a stopped server. It returns the
// outcome of the last job.
func makeDue(t *testing.T, data string) (outcome string) {
	t.Helper()
	store, err := pebble.Open(cli.Config{Data: data}.StoreDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, ctx := registrytest.Ledger(store), context.Background()
	do := func() error {
		pointers, err := store.List(ctx, registry.TablePointer, "", "", 2)
		if err != nil {
			return err
		}
		pointer, err := registry.Decode[registry.Pointer](pointers[0])
		if err != nil {
			return err
		}
		schedules, err := due.ReadSchedules(ctx, l, pointer.ID)
		if err != nil {
			return err
		}
		outcome = schedules[0].Value.Job("compaction").Outcome
		change, err := schedules[0].Move(schedules[0].Value.With(registry.KindSchedule{Kind: "compaction", Due: time.Unix(1_700_000_000, 0)}))
		if err != nil {
			return err
		}
		_, err = store.Apply(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return outcome
}

// TestMaintainWorkIsStopped stops a command in the middle of a piece of work. The command must say
// so and return the work, and the next command gets it at once. The work does not count as failed.
func TestMaintainWorkIsStopped(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := startServe(t, "--data", data)
	for _, request := range [][2]string{{"/v1/namespaces", createNamespace}, {"/v1/namespaces/harbour/tables", createTable}} {
		if code, body := server.request(t, "POST", request[0], request[1]); code != http.StatusOK {
			t.Fatalf("POST %s: %d %s", request[0], code, body)
		}
	}
	enabled := runToEnd(t, "maintain", "set", "warehouse", "default", "compaction", "on", "--uri", server.uri)
	if enabled.code != 0 {
		t.Fatalf("enable: %+v", enabled)
	}
	server.stop()
	makeDue(t, data)
	server = startServe(t, "--data", data)
	program := func(text string) string {
		return writeProgram(t, filepath.Join(t.TempDir(), "program"), "#!/bin/sh\n"+text+"\n")
	}
	work := []string{"maintain", "work", "--uri", server.uri, "--kind", "compaction", "--exec"}
	ctx, end := context.WithCancel(t.Context())
	stdout, stderr, ended := newLockedBuffer(), newLockedBuffer(), make(chan int, 1)
	go func() {
		ended <- run(ctx, append(work, program("trap 'exit 7' TERM; echo begun; while :; do sleep 0.1; done")),
			cli.Environment{Stdout: stdout, Stderr: stderr})
	}()
	for !strings.Contains(stdout.String(), "begun") {
		await(t, stdout.written, "the program; the command printed "+stderr.String())
	}
	end()
	if code := <-ended; code != 0 {
		t.Errorf("the command ended with %d: %s", code, stderr.String())
	}
	for _, want := range []string{"waiting until work is due: compaction at " + server.uri, "given back"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the command printed %q, which lacks %q", stderr.String(), want)
		}
	}
	if got := runToEnd(t, append(work, program("exit 0"), "--once")...); got.code != 0 || !strings.Contains(got.stdout, ": done") {
		t.Errorf("the next command: %+v", got)
	}
	code, status := server.request(t, "GET", "/management/v1/maintenance/status?warehouse=default&namespace=harbour&table=ships", "")
	if code != http.StatusOK || strings.Contains(status, `"lost"`) || !strings.Contains(status, `"released"`) {
		t.Errorf("the status: %d %s", code, status)
	}
}
