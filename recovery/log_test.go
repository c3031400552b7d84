package recovery_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/txlog"
)

// transaction returns a transaction on two tables, with a file for each.
func transaction(t testing.TB) txlog.Transaction {
	t.Helper()
	id, err := registry.NewID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	participant := func(name string, n byte) txlog.Participant {
		ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
		return txlog.Participant{Ident: ident, Pointer: registry.ID{n}, ETag: registry.ETag{n}, Writes: true}
	}
	return txlog.Transaction{
		ID: id, Warehouse: "w", Place: txlog.Place{Roots: []string{"file:///w"}},
		Participants: []txlog.Participant{participant("a", 1), participant("b", 2)},
		Files:        []string{"a1", "b1"}, Began: time.Now(), Deadline: time.Now().Add(time.Minute), Principal: "ann",
	}
}

// commit makes a transaction take effect, as the catalog does.
func commit(ctx context.Context, store registry.Store, e txlog.Entry, published ...string) error {
	condition, write, err := e.Commit(published)
	if err != nil {
		return err
	}
	_, err = store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}, Change: &registry.Change{ID: e.ID, Operation: "commit-transaction"},
	})
	return err
}

// now returns the present state of a transaction in the log.
func now(t testing.TB, log *txlog.Log, e txlog.Entry) txlog.Entry {
	t.Helper()
	found, ok, err := log.Get(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ok != found.Exists() {
		t.Fatalf("found: %t, and it is %s", ok, found.State)
	}
	return found
}
