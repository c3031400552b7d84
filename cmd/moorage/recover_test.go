package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/txlog"
)

// leftover is a transaction that a coordinator left in the store of a server that is stopped.
type leftover struct {
	id      string
	written string // the path of the only file of it that is there
}

// leave makes three: one that was given up twice over, and one whose coordinator had another minute.
func leave(t *testing.T, data string) (mended, broken, pending leftover) {
	t.Helper()
	store, err := pebble.Open(filepath.Join(data, storeFolder), pebble.Options{Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	log := txlog.New(store)
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
			Files: []string{"file://" + left.written, "file://" + left.written + ".unwritten"}, Began: now, Deadline: now.Add(time.Minute),
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
	return begin(true), begin(true), begin(false)
}

// TestRecover lists, retries and aborts what is left in the store of a stopped server, and then through one that runs.
func TestRecover(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop()
	mended, broken, pending := leave(t, data)
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
	wantSaid(append([]string{"list"}, stopped...), exitFailed, []string{
		mended.id + "  transaction in warehouse default, aborted, began ", broken.id, pending.id + "  transaction in warehouse default, pending, began ", " by ann\n",
		"its coordinator has until ", "2 tables: harbour.ships, harbour.crews\n", "2 files written, 0 published\n",
		"given up after 50 attempts, last: no such bucket\n", "3 transactions unfinished, 2 given up; 0 purges given up\n",
	}, "something was given up")
	if got := runToEnd(t, append([]string{"check"}, stopped...)...); got.code != exitFailed || strings.Count(got.stdout, "is blocked after 50 attempts: no such bucket") != 2 {
		t.Errorf("check: %+v", got)
	}
	wantSaid(append([]string{"retry", mended.id}, stopped...), exitDone, []string{"the transaction is ended"}, "")
	if there(mended) || !there(broken) || !there(pending) {
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
	wantSaid(append([]string{"list"}, running...), exitFailed, []string{broken.id, "1 transaction unfinished, 1 given up"}, "something was given up")
	if code, body := server.request(t, "GET", "/management/v1/transactions?pageToken=", ""); code != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`{"id":%q,"state":"aborted"`, broken.id)) {
		t.Errorf("the list of transactions: %d %s", code, body)
	}
	if _, body := server.request(t, "GET", "/metrics", ""); !strings.Contains(body, "\nmoorage_transactions_recovered_total 1\n") {
		t.Error("the metrics do not count what was recovered")
	}
	wantSaid(append([]string{"list"}, stopped...), exitFailed, nil, "or ask it with --uri")
	wantSaid(append([]string{"abort", broken.id}, running...), exitDone, []string{"which was aborted, is forgotten; 2 files", "\nfile://" + broken.written + "\n"}, "")
	if !there(broken) {
		t.Error("the file of a forgotten transaction is gone")
	}
	wantSaid(append([]string{"retry", broken.id}, running...), exitFailed, nil, "Nothing unfinished has the id "+broken.id)
	wantSaid(append([]string{"abort", "a/../b"}, running...), exitFailed, nil, "is no id")
	wantSaid(append([]string{"list"}, running...), exitDone, []string{"0 transactions unfinished, 0 given up; 0 purges given up\n"}, "")
	wantSaid([]string{"abort"}, exitUsage, nil, "ID")
}
