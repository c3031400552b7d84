package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// leftover is a transaction that a coordinator left in the store of a stopped server.
type leftover struct {
	id      string
	written string // the path of its only existing file
}

// mustOpenStore opens the store of a stopped server. The caller must close the store before the
// next server starts.
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

// leave makes three transactions that were given up, and one whose coordinator has another hour.
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

// TestDoctor lists, retries and aborts transactions in the store of a stopped server, and then
// through a running server.
func TestDoctor(t *testing.T) {
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
		got := runToEnd(t, append([]string{"doctor"}, args...)...)
		if got.code != code || !strings.Contains(got.stderr, stderr) {
			t.Errorf("doctor %q: exit %d, stderr %q; want %d and %q", args, got.code, got.stderr, code, stderr)
		}
		for _, want := range stdout {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("doctor %q: no %q in\n%s", args, want, got.stdout)
			}
		}
	}
	stopped := []string{"--data", data}
	wantSaid(stopped, cli.ExitNo, []string{
		"bad   " + mended.id + " transaction in warehouse default: aborted, began ", "bad   " + broken.id, "bad   " + again.id,
		"ok    " + pending.id + " transaction in warehouse default: pending, began ", " by ann", "its coordinator has until ",
		"; 2 tables: harbour.ships, harbour.crews; up to 2 files written, 0 published; given up after 50 attempts, last: no such bucket\n",
		"      Repair the cause, then: moorage doctor retry " + mended.id + ", or end the transaction: moorage doctor abort " + mended.id + "\n",
	}, "3 bad findings")
	if got := runToEnd(t, append([]string{"doctor", "--deep"}, stopped...)...); got.code != cli.ExitNo || strings.Count(got.stdout, "is blocked after 50 attempts: no such bucket") != 3 {
		t.Errorf("a deep examination: %+v", got)
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
	wantSaid(running, cli.ExitNo, []string{broken.id, again.id}, "2 bad findings")
	if code, body := server.request(t, "GET", "/management/v1/doctor?pageToken=&pageSize=1", ""); code != http.StatusOK || strings.Count(body, `"level"`) > 2 || strings.Contains(body, `"next-page-token":null`) {
		t.Errorf("a page of findings: %d %s", code, body)
	}
	if _, body := server.request(t, "GET", "/metrics", ""); !strings.Contains(body, "\nmoorage_transactions_recovered_total 1\n") {
		t.Error("the metrics do not count what was recovered")
	}
	wantSaid(stopped, cli.ExitFailed, nil, "or ask it with --uri")
	wantSaid(append([]string{"abort", broken.id}, running...), cli.ExitDone, []string{"which was aborted, is forgotten; 2 files", "\nfile://" + broken.written + "\n"}, "")
	if !there(broken) {
		t.Error("the file of a forgotten transaction is gone")
	}
	wantSaid(append([]string{"retry", "all"}, running...), cli.ExitDone, []string{again.id + "  the transaction is ended"}, "")
	if there(again) {
		t.Error("the file of a transaction that was tried again is there")
	}
	wantSaid(append([]string{"retry", "all"}, running...), cli.ExitDone, []string{"nothing was given up"}, "")
	wantSaid(append([]string{"retry", broken.id}, running...), cli.ExitNo, nil, "Nothing unfinished has the id "+broken.id)
	wantSaid(running, cli.ExitDone, []string{"nothing is bad\n"}, "")
	wantSaid([]string{"abort"}, cli.ExitUsage, nil, "ID")
}

// A word that is not an id is refused before a store is opened or a server is called. The message
// reports which words are valid.
func TestDoctorWithoutAnID(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1" // no server listens there
	zero := registry.ID{}.String()
	for _, row := range []struct{ command, id, want string }{
		{"retry", "foo", `"foo" is neither an id, 32 hexadecimal digits that doctor shows, nor all`},
		{"retry", "ALL", `"ALL" is neither an id`},
		{"retry", "", `"" is neither an id`},
		{"retry", zero, `"` + zero + `" is neither an id`},
		{"retry", "a/../b", `"a/../b" is neither an id`},
		{"abort", "foo", `"foo" is not an id, 32 hexadecimal digits that doctor shows; the command aborts one at a time`},
		{"abort", "all", `"all" is not an id`},
		{"abort", "a/../b", `"a/../b" is not an id`},
	} {
		for _, where := range [][]string{{"--uri", address}, {"--data", t.TempDir()}} {
			got := runToEnd(t, append([]string{"doctor", row.command, row.id}, where...)...)
			if got.code != cli.ExitUsage || !strings.HasPrefix(got.stderr, "moorage: "+row.want) || strings.Count(got.stderr, "\n") != 2 {
				t.Errorf("doctor %s %q %s: %+v, want one fault, %s", row.command, row.id, where[0], got, row.want)
			}
		}
	}
	if got := runToEnd(t, "doctor", "retry"); got.code != cli.ExitUsage || !strings.HasPrefix(got.stderr, "moorage: doctor retry takes exactly one ID|all, not 0\nSee ") {
		t.Errorf("doctor retry of nothing: %+v", got)
	}
}

// TestDoctorOfAnUnreadableTransaction shows a transaction whose record cannot be read, and forgets
// it.
func TestDoctorOfAnUnreadableTransaction(t *testing.T) {
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
	wantSaid(cli.ExitNo, "bad   "+id.String()+" transaction: committed, and its record cannot be read: decode ", "doctor")
	wantSaid(cli.ExitNo, "Stop them and run moorage doctor forget, which removes the record", "doctor")
	wantSaid(cli.ExitNo, "1 bad finding\n", "doctor")
	wantSaid(cli.ExitNo, "which is committed, cannot be read", "doctor", "--deep")
	wantSaid(cli.ExitFailed, id.String()+": ", "doctor", "retry", "all")
	wantSaid(cli.ExitFailed, "moorage doctor forget, which removes it", "doctor", "retry", id.String())
	wantSaid(cli.ExitFailed, "moorage doctor forget, which removes it", "doctor", "abort", id.String())
	server.stop()
	if got := runToEnd(t, "doctor", "forget", "--data", data); got.code != cli.ExitDone || !strings.HasPrefix(got.stdout, "1 transaction forgotten, 0 purges called off; ") {
		t.Errorf("doctor forget: %+v", got)
	}
	server = startServe(t, "--data", data)
	wantSaid(cli.ExitDone, "nothing is bad", "doctor")
	wantSaid(cli.ExitDone, "no problems", "doctor", "--deep")
}

// TestDoctorOfUnreadableTasks shows tasks of dropped tables that cannot be read. Neither retry nor
// abort accepts them; doctor forget removes them.
func TestDoctorOfUnreadableTasks(t *testing.T) {
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
		"bad   " + damaged[0] + " task, probably a purge: its record cannot be read: decode task/" + damaged[0], "bad   " + damaged[1] + " task, probably",
		"moorage doctor --deep names its table", "2 bad findings",
	}
	wantSaid(cli.ExitNo, list, "doctor", "--uri", server.uri)
	wantSaid(cli.ExitNo, []string{"problem: task/" + damaged[0] + " cannot be read: ", "the purge of table default.harbour.ships", "0 views: 2 problems"}, "doctor", "--deep", "--uri", server.uri)
	wantSaid(cli.ExitFailed, []string{damaged[0] + ": ", damaged[1] + ": "}, "doctor", "retry", "all", "--uri", server.uri)
	wantSaid(cli.ExitFailed, []string{"moorage doctor forget, which removes it"}, "doctor", "abort", damaged[0], "--uri", server.uri)
	if _, body := server.request(t, "GET", "/metrics", ""); !strings.Contains(body, "\nmoorage_purges_blocked 2\n") {
		t.Error("the metrics do not count what the server could not read when it looked")
	}
	server.stop()
	wantSaid(cli.ExitFailed, []string{"moorage doctor forget, which removes it"}, "doctor", "abort", damaged[1], "--data", data)
	wantSaid(cli.ExitDone, []string{"0 transactions forgotten, 2 purges called off"}, "doctor", "forget", "--data", data)
	wantSaid(cli.ExitDone, []string{"nothing is bad"}, "doctor", "--data", data)
	wantSaid(cli.ExitDone, []string{"no problems"}, "doctor", "--deep", "--data", data)
}

// dropWithoutReading drops tables of the namespace harbour with a purge, in the store of a stopped
// server. It damages the records of the purges and returns their ids.
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

// findings answers like a server with seven findings, one on each page. The second transaction
// cannot be retried, and an operator has quarantined the job.
type findings struct{ retried []string }

func (f *findings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := []client.Finding{
		{ID: "t1", Level: client.LevelBad, What: "transaction", Fact: "given up", Remedy: "Repair the cause"},
		{ID: "t2", Level: client.LevelBad, What: "transaction", Fact: "given up"},
		{ID: "t3", Level: client.LevelBad, What: "transaction", Fact: "given up"},
		{ID: "p1", Level: client.LevelBad, What: "purge of a.t\nin warehouse w", Fact: "given up"},
		{ID: "p2", Level: client.LevelOK, What: "purge of a.u", Fact: "waits"},
		{Level: client.LevelBad, What: "orphans of table w.a.t", Fact: "blocked"},
		{ID: "j1", Level: client.LevelWarn, What: "orphans of table w.a.u", Fact: "quarantined"},
	}
	id, isRetry := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/management/v1/doctor/"), "/retry")
	answer := any(client.Retried{Kind: client.KindPurge})
	switch {
	case !isRetry:
		at, _ := strconv.Atoi(r.URL.Query().Get("pageToken"))
		page := client.FindingsPage{Findings: all[at : at+1]}
		if at++; at < len(all) {
			next := strconv.Itoa(at)
			page.NextPageToken = &next
		}
		answer = page
	case id == "t1":
		answer = client.Retried{Kind: client.KindTransaction, Reason: "no disk"}
	case id == "t2":
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = map[string]client.Error{"error": {Type: "ServiceUnavailableException", Message: "gone"}}
	case id == "t3":
		answer = client.Retried{Kind: client.KindTransaction, Ended: true}
	}
	if isRetry {
		f.retried = append(f.retried, id)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// The commands read all pages of findings. A failed retry does not prevent the others.
func TestPagesOfFindings(t *testing.T) {
	t.Parallel()
	f := &findings{}
	server := httptest.NewServer(f)
	defer server.Close()
	began := time.Now()
	got := runToEnd(t, "doctor", "--uri", server.URL)
	got.stdout = withClockHere(t, got.stdout, time.Since(began))
	want := "ok    clock here: within 1s of the server's\nbad   t1 transaction: given up\n      Repair the cause\nbad   t2 transaction: given up\nbad   t3 transaction: given up\n" +
		"bad   p1 purge of a.t; in warehouse w: given up\nok    p2 purge of a.u: waits\nbad   orphans of table w.a.t: blocked\nwarn  j1 orphans of table w.a.u: quarantined\n"
	if got.code != cli.ExitNo || got.stdout != want || got.stderr != "moorage: 5 bad findings\n" {
		t.Errorf("%+v, want %q", got, want)
	}
	got = runToEnd(t, "doctor", "retry", "all", "--uri", server.URL)
	if got.code != cli.ExitFailed || !strings.HasPrefix(got.stderr, "moorage: t2: ") || !strings.HasSuffix(got.stderr, ": gone\n") || strings.Join(f.retried, " ") != "t1 t2 t3 p1" {
		t.Errorf("retried %q, with %+v", f.retried, got)
	}
	want = "t1  the servers try the transaction again; the first attempt: no disk\nt3  the transaction is ended; nothing is left of it\np1  the servers try the purge again\n"
	if got.stdout != want {
		t.Errorf("printed\n%s\nwant\n%s", got.stdout, want)
	}
}
