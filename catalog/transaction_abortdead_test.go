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
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// If a dead transaction has locked a table, a call that needs the table aborts that transaction at
// once.
func TestTransactionAbortsDead(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		t.Run(fmt.Sprintf("dead %t", dead), func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("a")
			b := f.Create("b")
			id, err := f.Ledger.NewID()
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Transactions.Begin(f.Ctx, txlog.Transaction{
				ID: id, Warehouse: catalogkit.Warehouse, Participants: []txlog.Participant{{Ident: ident("b"), Pointer: b.PointerID(), Writes: true}},
				Began: f.Clock.Now(), Deadline: f.Clock.Now().Add(commit.TransactionDeadline),
			})
			if err != nil {
				t.Fatal(err)
			}
			hold, err := f.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(b.PointerID()), locks.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer hold.Release()
			want := registry.StatePending
			if dead {
				f.Clock.Advance(commit.TransactionDeadline + time.Second)
				want = registry.StateAborted
			}
			catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))), moorage.KindCommitFailed)
			entry, found, err := f.Transactions.Get(f.Ctx, id)
			if err != nil || !found || entry.State != want {
				t.Errorf("the transaction is %s (%t, %v), want %s", entry.State, found, err, want)
			}
		})
	}
}

// transactWhileHeld requests a transaction over the tables "t" and "u" while the lock of the first
// table of dead is held. The transaction must be refused.
func transactWhileHeld(f *catalogkit.Fixture, dead txlog.Entry) {
	f.T.Helper()
	hold, err := f.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(dead.Participants[0].Pointer), locks.Options{})
	must(f.T, err)
	defer hold.Release()
	catalogkit.WantKind(f.T, f.Transact(catalogkit.On("t", catalogkit.SetProperty(f.T, "n", "1")), catalogkit.On("u", catalogkit.SetProperty(f.T, "n", "1"))), moorage.KindCommitFailed)
}

// The catalog logs that it could not abort a dead transaction. The line has the commit ID, under
// the usual name of such IDs in the log.
func TestTransactionCannotAbortDead(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	var armed atomic.Bool
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.Store = registrytest.Faulty(c.Store, func(_ int, method string) registrytest.Action {
			if armed.Load() && method == registrytest.MethodApply {
				return registrytest.Fail
			}
			return registrytest.Pass
		})
		c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	})
	f.Create("t")
	f.Create("u")
	dead := abandon(f, "t")
	armed.Store(true)
	transactWhileHeld(f, dead)
	armed.Store(false)
	if entry := entryOf(f, dead.ID); entry.State != registry.StatePending {
		t.Errorf("the transaction is %s", entry.State)
	}
	if !strings.Contains(logs.String(), "could not abort") || !strings.Contains(logs.String(), "commit="+dead.ID.String()) {
		t.Errorf("the log says %q of %s", logs.String(), dead.ID)
	}
}

// A call that needs a table finds the table's dead transaction even if an unreadable record sorts
// before it.
func TestAbortDeadBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	damage(f, "t")
	dead := abandon(f, "t")
	damage(f, "t")
	f.Create("u")
	transactWhileHeld(f, dead)
	entry, found, err := f.Transactions.Get(f.Ctx, dead.ID)
	if err != nil || !found || entry.State != registry.StateAborted {
		t.Errorf("it is %s (%t, %v)", entry.State, found, err)
	}
}
