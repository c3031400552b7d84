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
	"moorage/txlog"
)

// isAbort reports whether batch aborts a transaction.
func isAbort(batch registry.Batch) bool {
	return len(batch.Writes) == 1 && batch.Writes[0].Key.Table == registry.TableTransaction && batch.Writes[0].State == registry.StateAborted
}

// changeBoth is an attempt of a transaction with a key, over the tables t and u.
func changeBoth(t *testing.T, ctx context.Context, c *instance) error {
	_, err := c.once(ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
		return reply{}, c.CommitTransaction(ctx, testWarehouse, []catalog.TableChange{on("t", setProperty(t, "mine", "yes")), on("u", setProperty(t, "mine", "yes"))})
	})
	return err
}

// A transaction died with its server. Its retry meets the recovery of it, which has the locks of
// its tables. The retry must not be refused for that.
func TestTwinOfTransactionMeetsItsRecovery(t *testing.T) {
	t.Parallel()
	for _, aborted := range []bool{false, true} { // whether another node's recovery was first
		t.Run(fmt.Sprintf("aborted %t", aborted), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store, _, _ := newHeldFixture(t, isAbort)
				f.create("u")
				retrying := f.other(store.Store)
				left := f.abandon("t")
				recovered := make(chan error, 1)
				go func() { recovered <- f.finishTransaction(f.ctx, left) }()
				<-store.held
				if aborted {
					_, err := retrying.transactions.Abort(f.ctx, left)
					must(t, err)
				}
				retried := make(chan error, 1)
				go func() { retried <- changeBoth(t, f.ctx, retrying) }()
				time.Sleep(commit.DuplicateWaitMax - time.Second)
				if len(retried) > 0 {
					t.Error("the retry did not wait")
				}
				close(store.release)
				must(t, <-recovered)
				must(t, <-retried)
				f.wantProperty("t", "mine", "yes")
				f.wantProperty("u", "mine", "yes")
				f.wantNoTransactions()
				f.wantClean()
			})
		})
	}
}

// attemptPath returns what attempts with a key lock. It is the same in all stores.
func attemptPath(t *testing.T, key catalog.Key) locks.Path {
	t.Helper()
	f := newFixture(t)
	_, err := f.once(f.ctx, key, nothing)
	must(t, err)
	stored := tampering{f}.record(registry.TableIdempotency, "", registry.StateNone)
	return locks.Warehouse(testWarehouse).Attempt(stored.Key.ID)
}

// A retry waits until its own dead attempt is passed over. Recovery of an earlier transaction over
// the same tables, which waited for the same, is faster.
func TestTwinOfTransactionMeetsRecoveryLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, _, _ := newHeldFixture(t, isAbort)
		f.create("u")
		retrying := f.other(store.Store)
		meeting := attemptPath(t, keyOf("a"))
		own, err := f.locks.Acquire(f.ctx, locks.Request{Writes: []locks.Path{meeting}}, locks.Options{})
		must(t, err)
		retried := make(chan error, 1)
		go func() { retried <- changeBoth(t, f.ctx, retrying) }()
		synctest.Wait()
		left := f.abandon("t")
		recovered := make(chan error, 1)
		go func() { recovered <- f.finishTransaction(f.ctx, left) }()
		<-store.held
		own.Release()
		time.Sleep(time.Second)
		close(store.release)
		must(t, <-recovered)
		must(t, <-retried)
		f.wantProperty("t", "mine", "yes")
		f.wantProperty("u", "mine", "yes")
	})
}

// Long after a dead transaction was aborted only files of it are left, and files hold no locks.
// Another operation has the table that is held then.
func TestTransactionBesideLeftFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		u := f.create("u")
		f.create("t")
		_, err := f.transactions.Abort(f.ctx, f.abandon("t"))
		must(t, err)
		f.clock.Advance(txlog.LockPatience)
		hold, err := f.locks.Acquire(f.ctx, pointerLocks(u.PointerID()), locks.Options{})
		must(t, err)
		defer hold.Release()
		began := time.Now()
		wantKind(t, changeBoth(t, f.ctx, f.instance), moorage.KindCommitFailed)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it waited %s", waited)
		}
	})
}

// A client goes while its transaction waits for a table that another operation holds. The wait
// stores no refusal: what the client sends again happens.
func TestGoneClientOfWaitingTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *catalog.Config) { c.Now, c.TransactionWait = time.Now, catalog.TransactionWaitMax })
		f.create("t")
		u := f.create("u")
		hold, err := f.locks.Acquire(f.ctx, pointerLocks(u.PointerID()), locks.Options{})
		must(t, err)
		defer hold.Release()
		gone, cancel := context.WithTimeout(f.ctx, catalog.TransactionWaitMax/2)
		defer cancel()
		wantKind(t, changeBoth(t, gone, f.instance), moorage.KindUnavailable)
		hold.Release()
		must(t, changeBoth(t, f.ctx, f.instance))
		f.wantProperty("t", "mine", "yes")
		f.wantProperty("u", "mine", "yes")
	})
}
