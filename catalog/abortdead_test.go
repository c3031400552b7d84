package catalog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/registrytest"
	"moorage/txlog"
)

// A call that needs a table which a dead transaction has locked aborts that transaction at once.
func TestTransactionAbortsDead(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		t.Run(fmt.Sprintf("dead %t", dead), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("a")
			b := f.create("b")
			id, err := f.ledger.NewID()
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.transactions.Begin(f.ctx, txlog.Transaction{
				ID: id, Warehouse: testWarehouse, Participants: []txlog.Participant{{Ident: ident("b"), Pointer: b.pointer, Writes: true}},
				Began: f.clock.Now(), Deadline: f.clock.Now().Add(transactionDeadline),
			})
			if err != nil {
				t.Fatal(err)
			}
			hold, err := f.locks.Acquire(f.ctx, lockRequest(OpTransaction, lockScope{warehouse: testWarehouse, pointers: []registry.ID{b.pointer}}), locks.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer hold.Release()
			want := registry.StatePending
			if dead {
				f.clock.Advance(transactionDeadline + time.Second)
				want = registry.StateAborted
			}
			wantKind(t, f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))), moorage.KindCommitFailed)
			entry, found, err := f.transactions.Get(f.ctx, id)
			if err != nil || !found || entry.State != want {
				t.Errorf("the transaction is %s (%t, %v), want %s", entry.State, found, err, want)
			}
		})
	}
}

// The catalog logs that it could not abort a dead transaction. The line has the commit id, under
// the name that such ids have in the log.
func TestTransactionCannotAbortDead(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	plan := &faults{}
	f := newFixture(t, func(c *Config) {
		c.Store = registrytest.Faulty(c.Store, plan.plan)
		c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	})
	f.create("t")
	dead := f.abandon("t")
	plan.arm(1, registrytest.Fail) // the look at the log goes well
	if f.abortDead(f.ctx, []registry.ID{dead.Participants[0].Pointer}) {
		t.Error("it was aborted")
	}
	plan.disarm()
	if !strings.Contains(logs.String(), "could not abort") || !strings.Contains(logs.String(), "commit="+dead.ID.String()) {
		t.Errorf("the log says %q of %s", logs.String(), dead.ID)
	}
}

// A call that needs a table finds the table's dead transaction behind one whose record cannot be
// read.
func TestAbortDeadBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	f.damage("t")
	dead := f.abandon("t")
	f.damage("t")
	if !f.abortDead(f.ctx, []registry.ID{dead.Participants[0].Pointer}) {
		t.Error("no dead transaction was found")
	}
	entry, found, err := f.transactions.Get(f.ctx, dead.ID)
	if err != nil || !found || entry.State != registry.StateAborted {
		t.Errorf("it is %s (%t, %v)", entry.State, found, err)
	}
}
