package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/locks"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// isAbort reports whether batch aborts a transaction.
func isAbort(batch registry.Batch) bool {
	return len(batch.Writes) == 1 && batch.Writes[0].Key.Table == registry.TableTransaction && batch.Writes[0].State == registry.StateAborted
}

// changeBoth is an attempt of a transaction with a key, over the tables t and u.
func changeBoth(t *testing.T, ctx context.Context, c *catalogkit.Instance) error {
	_, err := c.Once(ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("t", catalogkit.SetProperty(t, "mine", "yes")), catalogkit.On("u", catalogkit.SetProperty(t, "mine", "yes"))})
	})
	return err
}

// A transaction died with its server. Its retry runs while recovery of the transaction holds the
// locks of its tables. The retry must not be refused because of that.
func TestTwinOfTransactionMeetsItsRecovery(t *testing.T) {
	t.Parallel()
	for _, aborted := range []bool{false, true} { // whether the recovery of another node was faster
		t.Run(fmt.Sprintf("aborted %t", aborted), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store, _, _ := newHeldFixture(t, isAbort)
				f.Create("u")
				retrying := f.Other(store.Store)
				left := abandon(f, "t")
				recovered := make(chan error, 1)
				go func() { recovered <- finishTransaction(f.Instance, f.Ctx, left) }()
				<-store.held
				if aborted {
					_, err := retrying.Transactions.Abort(f.Ctx, left)
					must(t, err)
				}
				retried := make(chan error, 1)
				go func() { retried <- changeBoth(t, f.Ctx, retrying) }()
				time.Sleep(commit.DuplicateWaitMax - time.Second)
				if len(retried) > 0 {
					t.Error("the retry did not wait")
				}
				close(store.release)
				must(t, <-recovered)
				must(t, <-retried)
				f.WantProperty("t", "mine", "yes")
				f.WantProperty("u", "mine", "yes")
				f.WantNoTransactions()
				f.WantClean()
			})
		})
	}
}

// attemptPath returns the path that attempts with a key lock. It is the same in all stores.
func attemptPath(t *testing.T, key catalog.Key) locks.Path {
	t.Helper()
	f := catalogkit.New(t)
	_, err := f.Once(f.Ctx, key, nothing)
	must(t, err)
	stored := catalogkit.Tamper(f).Record(registry.TableIdempotency, "", registry.StateNone)
	return locks.Warehouse(catalogkit.Warehouse).Attempt(stored.Key.ID)
}

// A retry waits until its own dead attempt loses its locks. Recovery of an earlier transaction over
// the same tables has been waiting for the same locks, and gets them first.
func TestTwinOfTransactionMeetsRecoveryLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, _, _ := newHeldFixture(t, isAbort)
		f.Create("u")
		retrying := f.Other(store.Store)
		meeting := attemptPath(t, catalogkit.KeyOf("a"))
		own, err := f.Locks.Acquire(f.Ctx, locks.Request{Writes: []locks.Path{meeting}}, locks.Options{})
		must(t, err)
		retried := make(chan error, 1)
		go func() { retried <- changeBoth(t, f.Ctx, retrying) }()
		synctest.Wait()
		left := abandon(f, "t")
		recovered := make(chan error, 1)
		go func() { recovered <- finishTransaction(f.Instance, f.Ctx, left) }()
		<-store.held
		own.Release()
		time.Sleep(time.Second)
		close(store.release)
		must(t, <-recovered)
		must(t, <-retried)
		f.WantProperty("t", "mine", "yes")
		f.WantProperty("u", "mine", "yes")
	})
}

// Long after a dead transaction was aborted, only its files are left, and files hold no locks. So
// if a table is locked, another operation holds the lock.
func TestTransactionBesideLeftFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		u := f.Create("u")
		f.Create("t")
		_, err := f.Transactions.Abort(f.Ctx, abandon(f, "t"))
		must(t, err)
		f.Clock.Advance(txlog.LockPatience)
		hold, err := f.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(u.PointerID()), locks.Options{})
		must(t, err)
		defer hold.Release()
		began := time.Now()
		catalogkit.WantKind(t, changeBoth(t, f.Ctx, f.Instance), moorage.KindCommitFailed)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it waited %s", waited)
		}
	})
}

// A client disconnects while its transaction waits for a locked table. No refusal is stored, so the
// repeated request succeeds.
func TestGoneClientOfWaitingTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t, func(c *catalog.Config) { c.Now, c.TransactionWait = time.Now, catalog.TransactionWaitMax })
		f.Create("t")
		u := f.Create("u")
		hold, err := f.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(u.PointerID()), locks.Options{})
		must(t, err)
		defer hold.Release()
		gone, cancel := context.WithTimeout(f.Ctx, catalog.TransactionWaitMax/2)
		defer cancel()
		catalogkit.WantKind(t, changeBoth(t, gone, f.Instance), moorage.KindUnavailable)
		hold.Release()
		must(t, changeBoth(t, f.Ctx, f.Instance))
		f.WantProperty("t", "mine", "yes")
		f.WantProperty("u", "mine", "yes")
	})
}
