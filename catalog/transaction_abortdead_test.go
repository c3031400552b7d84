package catalog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/locks"
	"moorage/registry"
	"moorage/testkit/registrytest"
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
				ID: id, Warehouse: testWarehouse, Participants: []txlog.Participant{{Ident: ident("b"), Pointer: b.PointerID(), Writes: true}},
				Began: f.clock.Now(), Deadline: f.clock.Now().Add(commit.TransactionDeadline),
			})
			if err != nil {
				t.Fatal(err)
			}
			hold, err := f.locks.Acquire(f.ctx, pointerLocks(b.PointerID()), locks.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer hold.Release()
			want := registry.StatePending
			if dead {
				f.clock.Advance(commit.TransactionDeadline + time.Second)
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

// transactWhileHeld asks for a transaction over the tables "t" and "u" while somebody holds the
// lock of the first table of dead. It is refused.
func (f *fixture) transactWhileHeld(dead txlog.Entry) {
	f.t.Helper()
	hold, err := f.locks.Acquire(f.ctx, pointerLocks(dead.Participants[0].Pointer), locks.Options{})
	must(f.t, err)
	defer hold.Release()
	wantKind(f.t, f.transact(on("t", setProperty(f.t, "n", "1")), on("u", setProperty(f.t, "n", "1"))), moorage.KindCommitFailed)
}

// The catalog logs that it could not abort a dead transaction. The line has the commit id, under
// the name that such ids have in the log.
func TestTransactionCannotAbortDead(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	var armed atomic.Bool
	f := newFixture(t, func(c *catalog.Config) {
		c.Store = registrytest.Faulty(c.Store, func(_ int, method string) registrytest.Action {
			if armed.Load() && method == registrytest.MethodApply {
				return registrytest.Fail
			}
			return registrytest.Pass
		})
		c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	})
	f.create("t")
	f.create("u")
	dead := f.abandon("t")
	armed.Store(true)
	f.transactWhileHeld(dead)
	armed.Store(false)
	if entry := f.entryOf(dead.ID); entry.State != registry.StatePending {
		t.Errorf("the transaction is %s", entry.State)
	}
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
	f.create("u")
	f.transactWhileHeld(dead)
	entry, found, err := f.transactions.Get(f.ctx, dead.ID)
	if err != nil || !found || entry.State != registry.StateAborted {
		t.Errorf("it is %s (%t, %v)", entry.State, found, err)
	}
}
