package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// leftover is a transaction that a coordinator left in the store of a server that is stopped.
type leftover struct {
	id      string
	written string // the path of the only file of it that is there
}

// mustOpenStore opens the store of a server that is stopped. The caller closes it before the next
// one starts.
func mustOpenStore(t *testing.T, data string) (store *pebble.Store, closeStore func()) {
	t.Helper()
	store, err := pebble.Open(filepath.Join(data, cli.StoreFolder), pebble.Options{Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	return store, func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// leave makes some that were given up, and one whose coordinator had another hour.
func leave(t *testing.T, data string) (mended, broken, pending, again leftover) {
	t.Helper()
	store, closeStore := mustOpenStore(t, data)
	defer closeStore()
	log := txlog.New(registrytest.Ledger(store))
	warehouse := filepath.Join(data, "warehouse")
	begin := func(givenUp bool) leftover {
		id, err := registry.NewID(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		left := leftover{id.String(), filepath.Join(warehouse, id.String()+".metadata.json")}
		now := time.Now()
		entry, err := log.Begin(t.Context(), txlog.Transaction{
			ID: id, Warehouse: "default", Place: txlog.Place{Roots: []string{"file://" + warehouse}}, Principal: "ann",
			Participants: []txlog.Participant{
				{Ident: moorage.Identifier{Warehouse: "default", Namespace: moorage.Namespace{"harbour"}, Name: "ships"}, Pointer: registry.ID{1}, Writes: true},
				{Ident: moorage.Identifier{Warehouse: "default", Namespace: moorage.Namespace{"harbour"}, Name: "crews"}, Pointer: registry.ID{2}},
			},
			Files: []string{"file://" + left.written, "file://" + left.written + ".unwritten"}, Began: now, Deadline: now.Add(time.Hour),
		})
		if err == nil {
			err = os.WriteFile(left.written, []byte("{}"), 0o600)
		}
		if err == nil && givenUp {
			_, err = log.Abort(t.Context(), entry)
		}
		if err == nil && givenUp {
			var task []byte
			task, err = registry.Encode(registry.Task{ID: id, Kind: registry.TaskRecovery, Created: now, Attempts: 50, LastError: "no such bucket"})
			if err == nil {
				_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.TaskKey(id), registry.StateBlocked, task)}})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	return begin(true), begin(true), begin(false), begin(true)
}

// TestRecover lists, retries and aborts what is left in the store of a stopped server, and then
// through one that runs.
func TestRecover(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop()
	mended, broken, pending, again := leave(t, data)
	there := func(left leftover) bool {
		_, err := os.Stat(left.written)
		return err == nil
	}
	wantSaid := func(args []string, code int, stdout []string, stderr string) {
		t.Helper()
		got := runToEnd(t, append([]string{"recover"}, args...)...)
		if got.code != code || !strings.Contains(got.stderr, stderr) {
			t.Errorf("recover %q: exit %d, stderr %q; want %d and %q", args, got.code, got.stderr, code, stderr)
		}
		for _, want := range stdout {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("recover %q: no %q in\n%s", args, want, got.stdout)
			}
		}
	}
	stopped := []string{"--data", data}
	wantSaid(append([]string{"list"}, stopped...), cli.ExitFailed, []string{
		mended.id + "  transaction in warehouse default, aborted, began ", broken.id, pending.id + "  transaction in warehouse default, pending, began ", " by ann\n",
		"its coordinator has until ", "2 tables: harbour.ships, harbour.crews\n", "up to 2 files written, 0 published\n",
		"given up after 50 attempts, last: no such bucket\n", "4 transactions unfinished, 3 given up; 0 purges given up, 0 waiting\n",
	}, "something was given up")
	if got := runToEnd(t, append([]string{"check"}, stopped...)...); got.code != cli.ExitFailed || strings.Count(got.stdout, "is blocked after 50 attempts: no such bucket") != 3 {
		t.Errorf("check: %+v", got)
	}
	wantSaid(append([]string{"retry", mended.id}, stopped...), cli.ExitDone, []string{"the transaction is ended"}, "")
	if there(mended) || !there(again) || !there(broken) || !there(pending) {
		t.Error("after the retry another file is there than should be")
	}

	server := startServe(t, "--data", data)
	for timeout := time.After(patience); !strings.Contains(server.stderr.String(), "transaction recovered"); {
		select {
		case <-server.stderr.written:
		case <-timeout:
			t.Fatalf("the server did not end what an earlier one left; stderr:\n%s", server.stderr)
		}
	}
	if there(pending) || !there(broken) {
		t.Error("after the start another file is there than should be")
	}
	running := []string{"--uri", server.uri}
	wantSaid(append([]string{"list"}, running...), cli.ExitFailed, []string{broken.id, again.id, "2 transactions unfinished, 2 given up"}, "something was given up")
	if code, body := server.request(t, "GET", "/management/v1/transactions?pageToken=&pageSize=1", ""); code != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`{"id":%q,"state":"aborted"`, min(broken.id, again.id))) {
		t.Errorf("the list of transactions: %d %s", code, body)
	}
	if _, body := server.request(t, "GET", "/metrics", ""); !strings.Contains(body, "\nmoorage_transactions_recovered_total 1\n") {
		t.Error("the metrics do not count what was recovered")
	}
	wantSaid(append([]string{"list"}, stopped...), cli.ExitFailed, nil, "or ask it with --uri")
	wantSaid(append([]string{"abort", broken.id}, running...), cli.ExitDone, []string{"which was aborted, is forgotten; 2 files", "\nfile://" + broken.written + "\n"}, "")
	if !there(broken) {
		t.Error("the file of a forgotten transaction is gone")
	}
	wantSaid(append([]string{"retry", "all"}, running...), cli.ExitDone, []string{again.id + "  the transaction is ended"}, "")
	if there(again) {
		t.Error("the file of a transaction that was tried again is there")
	}
	wantSaid(append([]string{"retry", "all"}, running...), cli.ExitDone, []string{"nothing was given up"}, "")
	wantSaid(append([]string{"retry", broken.id}, running...), cli.ExitFailed, nil, "Nothing unfinished has the id "+broken.id)
	wantSaid(append([]string{"list"}, running...), cli.ExitDone, []string{"0 transactions unfinished, 0 given up; 0 purges given up, 0 waiting\n"}, "")
	wantSaid([]string{"abort"}, cli.ExitUsage, nil, "ID")
}

// What is no id is refused before anything is opened or asked, with what may stand there.
func TestRecoverWithoutAnID(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1" // nobody listens there
	zero := registry.ID{}.String()
	for _, row := range []struct{ command, id, want string }{
		{"retry", "foo", `"foo" is neither an id, 32 hexadecimal digits that recover list shows, nor all`},
		{"retry", "ALL", `"ALL" is neither an id`},
		{"retry", "", `"" is neither an id`},
		{"retry", zero, `"` + zero + `" is neither an id`},
		{"retry", "a/../b", `"a/../b" is neither an id`},
		{"abort", "foo", `"foo" is no id, 32 hexadecimal digits that recover list shows; one is aborted at a time`},
		{"abort", "all", `"all" is no id`},
		{"abort", "a/../b", `"a/../b" is no id`},
	} {
		for _, where := range [][]string{{"--uri", address}, {"--data", t.TempDir()}} {
			got := runToEnd(t, append([]string{"recover", row.command, row.id}, where...)...)
			if got.code != cli.ExitUsage || !strings.HasPrefix(got.stderr, "moorage: "+row.want) || strings.Count(got.stderr, "\n") != 2 {
				t.Errorf("recover %s %q %s: %+v, want one fault, %s", row.command, row.id, where[0], got, row.want)
			}
		}
	}
	if got := runToEnd(t, "recover", "retry"); got.code != cli.ExitUsage || !strings.HasPrefix(got.stderr, "moorage: recover retry takes exactly one ID|all, not 0\nSee ") {
		t.Errorf("recover retry of nothing: %+v", got)
	}
}

// TestRecoverUnreadable shows a transaction whose record cannot be read, and has it forgotten.
func TestRecoverUnreadable(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop()
	store, closeStore := mustOpenStore(t, data)
	id := registry.ID{1}
	_, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.TransactionKey(id), registry.StateCommitted, []byte("{"))}})
	if err != nil {
		t.Fatal(err)
	}
	closeStore()
	server := startServe(t, "--data", data)
	for timeout := time.After(patience); !strings.Contains(server.stderr.String(), "the record of a transaction cannot be read"); {
		select {
		case <-server.stderr.written:
		case <-timeout:
			t.Fatalf("the server says nothing of it; stderr:\n%s", server.stderr)
		}
	}
	wantSaid := func(code int, said string, args ...string) {
		t.Helper()
		got := runToEnd(t, append(args, "--uri", server.uri)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, said) {
			t.Errorf("%q: %+v, want %d and %q", args, got, code, said)
		}
	}
	wantSaid(cli.ExitFailed, id.String()+"  transaction, committed, whose record cannot be read: decode ", "recover", "list")
	wantSaid(cli.ExitFailed, "1 transaction unfinished, 1 given up", "recover", "list")
	wantSaid(cli.ExitFailed, "which is committed, cannot be read", "check")
	wantSaid(cli.ExitFailed, id.String()+": ", "recover", "retry", "all")
	wantSaid(cli.ExitFailed, "moorage recover forget, which removes it", "recover", "retry", id.String())
	wantSaid(cli.ExitFailed, "moorage recover forget, which removes it", "recover", "abort", id.String())
	server.stop()
	if got := runToEnd(t, "recover", "forget", "--data", data); got.code != cli.ExitDone || !strings.HasPrefix(got.stdout, "1 transaction forgotten, 0 purges called off; ") {
		t.Errorf("recover forget: %+v", got)
	}
	server = startServe(t, "--data", data)
	wantSaid(cli.ExitDone, "0 transactions unfinished, 0 given up", "recover", "list")
	wantSaid(cli.ExitDone, "no problems", "check")
}

// TestRecoverUnreadableTask shows the tasks of dropped tables that cannot be read. No verb takes
// one of them; recover forget removes both.
func TestRecoverUnreadableTask(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.request(t, "POST", "/v1/namespaces", `{"namespace":["harbour"]}`)
	for _, name := range []string{"ships", "crews"} {
		server.request(t, "POST", "/v1/namespaces/harbour/tables", fmt.Sprintf(`{"name":%q,"schema":{"type":"struct","fields":[]}}`, name))
	}
	server.stop()
	damaged := dropWithoutReading(t, data, "ships", "crews")

	server = startServe(t, "--data", data)
	for timeout := time.After(patience); strings.Count(server.stderr.String(), "the record of a task cannot be read") < 2; {
		select {
		case <-server.stderr.written:
		case <-timeout:
			t.Fatalf("the server says nothing of it; stderr:\n%s", server.stderr)
		}
	}
	wantSaid := func(code int, said []string, args ...string) {
		t.Helper()
		got := runToEnd(t, args...)
		for _, want := range said {
			if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%q: %+v, want %d and %q", args, got, code, want)
			}
		}
	}
	list := []string{
		damaged[0] + "  task, probably a purge, whose record cannot be read: decode task/" + damaged[0], damaged[1] + "  task, probably",
		"0 transactions unfinished, 0 given up; 2 purges given up",
	}
	wantSaid(cli.ExitFailed, list, "recover", "list", "--uri", server.uri)
	wantSaid(cli.ExitFailed, []string{"task/" + damaged[0] + " cannot be read: ", "the purge of table default.harbour.ships", "2 problems"}, "check", "--uri", server.uri)
	wantSaid(cli.ExitFailed, []string{damaged[0] + ": ", damaged[1] + ": "}, "recover", "retry", "all", "--uri", server.uri)
	wantSaid(cli.ExitFailed, []string{"moorage recover forget, which removes it"}, "recover", "abort", damaged[0], "--uri", server.uri)
	if _, body := server.request(t, "GET", "/metrics", ""); !strings.Contains(body, "\nmoorage_purges_blocked 2\n") {
		t.Error("the metrics do not count what the server could not read when it looked")
	}
	server.stop()
	wantSaid(cli.ExitFailed, []string{"moorage recover forget, which removes it"}, "recover", "abort", damaged[1], "--data", data)
	wantSaid(cli.ExitDone, []string{"0 transactions forgotten, 2 purges called off"}, "recover", "forget", "--data", data)
	wantSaid(cli.ExitDone, []string{"0 transactions unfinished, 0 given up; 0 purges given up"}, "recover", "list", "--data", data)
	wantSaid(cli.ExitDone, []string{"no problems"}, "check", "--data", data)
}

// dropWithoutReading drops tables of the namespace harbour with a purge, in the store of a stopped
// server. It damages the tasks and returns their ids.
func dropWithoutReading(t *testing.T, data string, names ...string) (ids []string) {
	t.Helper()
	store, closeStore := mustOpenStore(t, data)
	defer closeStore()
	pointers, err := store.List(t.Context(), registry.TablePointer, "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		for _, record := range pointers {
			pointer, err := registry.Decode[registry.Pointer](record)
			if err != nil {
				t.Fatal(err)
			}
			if pointer.Name != name {
				continue
			}
			pointer.Task = registry.ID{byte(i + 1)}
			ids = append(ids, pointer.Task.String())
			value, err := registry.Encode(pointer)
			if err == nil {
				_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{
					registry.Put(record.Key, registry.StateDropped, value), registry.Delete(registry.EntryKey(pointer.NamespaceID, name)),
					registry.Put(registry.TaskKey(pointer.Task), registry.StateNone, []byte("{")),
				}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(ids) != len(names) {
		t.Fatalf("dropped %q, want all of %q", ids, names)
	}
	return ids
}

// fakeOperators has three transactions and three purges, one to a page. The second transaction
// cannot be tried again.
type fakeOperators struct{ retried []string }

func (f *fakeOperators) UnfinishedTransactions(_ context.Context, page client.Page) ([]client.Transaction, string, error) {
	id, next := nextOf(page, "t")
	return []client.Transaction{{ID: id, State: "committed", Blocker: &client.Blocker{Attempts: 1, LastError: "no disk"}}}, next, nil
}

func (f *fakeOperators) BlockedPurges(_ context.Context, page client.Page) ([]client.Task, string, error) {
	id, next := nextOf(page, "p")
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	if id == "p2" {
		table = moorage.Identifier{}
	}
	return []client.Task{{ID: id, Table: table, Blocker: client.Blocker{Attempts: 50, LastError: "no bucket\nno key\nno disk\nno net\nno luck"}}}, next, nil
}

func (f *fakeOperators) WaitingPurges(_ context.Context, page client.Page) ([]client.WaitingPurge, string, error) {
	id, next := nextOf(page, "w")
	return []client.WaitingPurge{{
		ID: id, Table: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
		Begins: time.Date(2026, 12, 4, 9, 12, 44, 0, time.UTC), Bytes: 48211,
	}}, next, nil
}

func nextOf(page client.Page, prefix string) (id, next string) {
	id = fmt.Sprint(prefix, len(page.After)+1) // the names of pages are "", "." and ".."
	if len(page.After) < 2 {
		next = page.After + "."
	}
	return id, next
}

func (f *fakeOperators) Retry(_ context.Context, id string) (client.Retried, error) {
	f.retried = append(f.retried, id)
	switch id {
	case "t1":
		return client.Retried{Kind: string(recovery.KindTransaction), Reason: "no disk"}, nil
	case "t2":
		return client.Retried{}, errors.New("gone")
	case "t3":
		return client.Retried{Kind: string(recovery.KindTransaction), Ended: true}, nil
	}
	return client.Retried{Kind: string(recovery.KindPurge)}, nil
}

func (f *fakeOperators) Abort(context.Context, string) (client.Aborted, error) {
	return client.Aborted{}, errors.New("not asked for")
}

// Lists are followed to their end, and one thing that cannot be tried again keeps no other from it.
func TestRecoverPages(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &fakeOperators{}
	if err := recoverList(t.Context(), f, &out); err == nil {
		t.Error("recover list has nothing to say of what was given up")
	}
	for _, want := range []string{"t1  transaction", "t3  transaction", "p1  purge of a.t in warehouse w\n    given up after 50 attempts, last: no bucket; no key; no disk; and 2 more\n", "p2  purge of a table whose record cannot be read\n", "p3  purge", "w2  purge of a.t in warehouse w, waits\n    48.2 kB, begins 2026-12-04T09:12:44Z; moorage recover retry begins it now\n",
		"3 transactions unfinished, 3 given up; 3 purges given up, 3 waiting\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	err := retryAll(t.Context(), f, &out)
	if err == nil || err.Error() != "t2: gone" || strings.Join(f.retried, " ") != "t1 t2 t3 p1 p2 p3" {
		t.Errorf("retried %q, with %v", f.retried, err)
	}
	if want := "t1  the servers try the transaction again; the first attempt: no disk\nt3  the transaction is ended; nothing is left of it\np1  the servers try the purge again\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("said\n%s\nwant\n%s…", out.String(), want)
	}
}
