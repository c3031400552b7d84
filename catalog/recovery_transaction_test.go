package catalog_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/locks"
	"moorage/recovery"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/locktest"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
	"moorage/txlog"
)

// TestRecoverDeletesTheSurplus ends an aborted transaction and a committed one. Nothing is left of
// the first. The published files of the second stay.
func TestRecoverDeletesTheSurplus(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	f.Create("u")
	undone, done := abandon(f, "t"), abandonCommitted(f, "u")
	f.Clock.Advance(time.Hour)
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, undone)
	wantFiles(f, done, done.Published...)
	wantEnded(f)
	f.WantClean()
}

// Recovery decides by the transaction's record, never by a pointer: a published file stays, even if
// no pointer names it any more.
func TestRecoverNeverAsksPointers(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	done := abandonCommitted(f, "t")
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := finishTransaction(f.Instance, f.Ctx, done); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, done, done.Published...)
	wantEnded(f)
}

// Recovery takes the locks of all tables in one call, without waiting, and no other locks.
func TestRecoverTakesLocks(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	entry := abandon(f, "t")
	f.Locks.Reset()
	must(t, finishTransaction(f.Instance, f.Ctx, entry))
	calls := f.Locks.Calls()
	if len(calls) != 1 || calls[0].Nested || !calls[0].Options.NonBlocking || calls[0].Options.InProcess {
		t.Fatalf("took %+v, want one call that does not wait", calls)
	}
	if want := "W /w/@" + entry.Participants[0].Pointer.String(); !slices.Equal(calls[0].Named(), []string{want}) {
		t.Errorf("took %q, want %q", calls[0].Named(), want)
	}
}

// Recovery leaves a transaction to its coordinator until the deadline. After that, the coordinator
// cannot continue.
func TestRecoverFencesTheCoordinator(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	transaction := transactionOver(f, "t")
	transaction.Began, transaction.Deadline = f.Clock.Now(), f.Clock.Now().Add(time.Minute)
	entry, err := f.Transactions.Begin(f.Ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(entry.Files[0])
	if err := finishTransaction(f.Instance, f.Ctx, entry); !errors.Is(err, recovery.ErrBusy) {
		t.Errorf("within its deadline: %v, want ErrBusy", err)
	}
	wantFiles(f, entry, entry.Files[0])
	f.Clock.Advance(time.Minute + 1)
	if err := finishTransaction(f.Instance, f.Ctx, entry); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entry)
	wantEnded(f)
	condition, write, err := entry.Commit(entry.Files[:1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Store.Apply(f.Ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}})
	if failed, ok := registry.FailedCondition(err); !ok || failed != condition {
		t.Errorf("the coordinator woke up and was answered %v", err)
	}
}

// An embedded store has only one process. Recovery aborts the transactions of earlier processes at
// once, and leaves the present process's transactions alone.
func TestRecoverAtStart(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(c *catalog.Config) { c.AbortPending = true })
	f.Create("t")
	f.Create("u")
	earlier, mine := transactionOver(f, "t"), transactionOver(f, "u")
	for _, transaction := range []*txlog.Transaction{&earlier, &mine} {
		transaction.Deadline = f.Clock.Now().Add(time.Minute)
	}
	mine.Began = f.Clock.Now()
	var entries []txlog.Entry
	for _, transaction := range []txlog.Transaction{earlier, mine} {
		entry, err := f.Transactions.Begin(f.Ctx, transaction)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(entry.Files...)
		entries = append(entries, entry)
	}
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entries[0])
	wantFiles(f, entries[1], entries[1].Files...)
	hold, err := f.Config.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(entries[1].Participants[0].Pointer), locks.Options{})
	must(t, err)
	defer hold.Release()
	both := []catalog.TableChange{catalogkit.On("t", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("u", catalogkit.SetProperty(t, "n", "1"))}
	catalogkit.WantKind(t, f.Other(f.Store).CommitTransaction(f.Ctx, catalogkit.Warehouse, both), moorage.KindCommitFailed)
	if state := entryOf(f, entries[1].ID).State; state != registry.StatePending {
		t.Errorf("a transaction that began in the moment in which a catalog was made is %s there", state)
	}
}

// When the files of a transaction are deleted, the warehouse may be gone, or may have been
// recreated in another place.
func TestRecoverWithoutItsWarehouse(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	entry := abandon(f, "t")
	if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: catalogkit.Warehouse, Location: "file:///elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entry)
	wantEnded(f)
}

// TestRecoverHeldLocks: recovery leaves a transaction alone while the lock of one of its tables is
// held, but not for ever.
func TestRecoverHeldLocks(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	hold := func(entry txlog.Entry) locks.Hold {
		held, err := f.Config.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(entry.Participants[0].Pointer), locks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	entry := abandon(f, "t")
	held := hold(entry)
	if err := finishTransaction(f.Instance, f.Ctx, entry); !errors.Is(err, recovery.ErrBusy) || !errors.Is(err, locks.ErrConflict) {
		t.Errorf("while the lock is held: %v, want ErrBusy", err)
	}
	wantFiles(f, entry, entry.Files[0])
	held.Release()
	if err := finishTransaction(f.Instance, f.Ctx, entry); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entry)

	entry = abandon(f, "t")
	defer hold(entry).Release()
	f.Clock.Advance(txlog.LockPatience)
	if err := finishTransaction(f.Instance, f.Ctx, entry); err != nil {
		t.Errorf("after %s of waiting for a lock: %v", txlog.LockPatience, err)
	}
	wantFiles(f, entry)
	wantEnded(f)
}

// TestRecoverPastADeadNode ends a transaction whose coordinator died while it held locks. After its
// node has been silent for a while, the locks block no one.
func TestRecoverPastADeadNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := locktest.NewMemoryLeases(time.Now)
		node := func(n uint64, leases locks.Leases) locks.Manager {
			manager := locks.NewDistributed(locks.DistributedConfig{Leases: leases, Jitter: mathrand.New(mathrand.NewPCG(1, n))})
			t.Cleanup(manager.Close)
			return manager
		}
		dying := locktest.NewLeasesAround(leases)
		f := catalogkit.New(t, func(c *catalog.Config) { c.Locks = node(1, leases) })
		f.Create("t")
		entry := abandon(f, "t")
		request := catalogkit.PointerLocks(entry.Participants[0].Pointer)
		if _, err := node(2, dying).Acquire(f.Ctx, request, locks.Options{}); err != nil {
			t.Fatal(err)
		}
		dying.SetHook(func(context.Context, string, func()) error { return errors.New("dead") })
		if err := finishTransaction(f.Instance, f.Ctx, entry); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("at once: %v, want ErrConflict", err)
		}
		began := time.Now()
		if err := f.Recovery().RunOnce(f.Ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("ended after %s", took)
		}
		wantFiles(f, entry)
		wantEnded(f)
	})
}

// TestRecoverBlocked: recovery gives up on a transaction if the storage is broken, and reports
// that. It ends the transaction after the storage was repaired and an operator has retried it.
func TestRecoverBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken storagetest.Plan = func(_ int, method string) storagetest.Action {
			if method == storagetest.MethodDelete {
				return storagetest.Fail
			}
			return storagetest.Pass
		}
		f := catalogkit.New(t, func(c *catalog.Config) {
			open := c.OpenStorage
			c.OpenStorage = func(place storage.Place) (storage.Store, error) {
				inner, err := open(place)
				if err != nil {
					return nil, err
				}
				return storagetest.Faulty(inner, func(k int, method string) storagetest.Action { return broken(k, method) }), nil
			}
		})
		f.Create("t")
		entry := abandon(f, "t")
		if err := f.Recovery().RunOnce(f.Ctx); err != nil {
			t.Fatal(err)
		}
		records, err := f.Ledger.Get(f.Ctx, registry.TransactionKey(entry.ID), registry.TaskKey(entry.ID))
		if err != nil {
			t.Fatal(err)
		}
		if records[0].State != registry.StateAborted || records[1].State != registry.StateBlocked {
			t.Fatalf("the transaction is %s and its blocker %s", records[0].State, records[1].State)
		}
		wantFiles(f, entry, entry.Files[0])
		broken = func(int, string) storagetest.Action { return storagetest.Pass }
		if err := f.Recovery().RunOnce(f.Ctx); err != nil {
			t.Fatal(err)
		}
		wantFiles(f, entry, entry.Files[0])
		if err := finishTransaction(f.Instance, f.Ctx, entry); err != nil {
			t.Fatal(err)
		}
		wantFiles(f, entry)
		wantEnded(f)
	})
}

// TestRecoverTwice: two nodes recover the same transactions concurrently, over every store.
func TestRecoverTwice(t *testing.T) {
	t.Parallel()
	for name, open := range stores.Kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, func(c *catalog.Config) {
				c.Store = catalogkit.ClockedStore{Store: open(t, newLockedRandom(7)), Now: c.Now}
			})
			f.Create("t")
			var undone, done []txlog.Entry
			for range 10 {
				undone, done = append(undone, abandon(f, "t")), append(done, abandonCommitted(f, "t"))
			}
			f.Config.Locks = locks.GrantAll{} // the second node does not see the first one's locks
			nodes := []*catalogkit.Instance{f.Instance, f.Other(f.Store)}
			var wg sync.WaitGroup
			for _, node := range nodes {
				wg.Go(func() {
					if err := node.Recovery().RunOnce(f.Ctx); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for i := range undone {
				wantFiles(f, undone[i])
				wantFiles(f, done[i], done[i].Published...)
			}
			for _, node := range nodes {
				if stats := node.Recovery().Stats(); stats.Failures > 0 {
					t.Errorf("a node failed: %+v", stats)
				}
			}
			wantEnded(f)
			f.WantClean()
		})
	}
}

// TestRecoverCrash applies each action to the k-th port call of a recovery, for k = 0, 1, 2 …. It
// recovers an aborted and a committed transaction. After a second recovery, only published files
// are left, whatever happened to the first.
func TestRecoverCrash(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{false, true} {
		for name, action := range map[string]registrytest.Action{
			"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay, "die": registrytest.Die, "die after": registrytest.DieAfter,
		} {
			t.Run(fmt.Sprintf("committed %t/%s", committed, name), func(t *testing.T) {
				t.Parallel()
				for k := 0; recoverCrashOnce(t, committed, k, action); k++ {
				}
			})
		}
	}
}

// recoverCrashOnce applies action to call k, and reports whether there was such a call.
func recoverCrashOnce(t *testing.T, committed bool, k int, action registrytest.Action) bool {
	t.Helper()
	plan := &faults{}
	var raw registry.Store
	var store *registrytest.FaultyStore
	var rawStorage func(storage.Place) (storage.Store, error)
	f := catalogkit.New(t, func(c *catalog.Config) {
		raw, rawStorage = c.Store, c.OpenStorage
		store = registrytest.Faulty(raw, plan.plan)
		c.Store = store
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := rawStorage(place)
			if err != nil {
				return nil, err
			}
			return storagetest.Faulty(inner, plan.storagePlan), nil
		}
	})
	f.Create("t")
	var entry txlog.Entry
	if committed {
		entry = abandonCommitted(f, "t")
	} else {
		entry = abandon(f, "t")
	}
	plan.arm(k, action)
	err := finishTransaction(f.Instance, f.Ctx, entry)
	plan.disarm()
	if (err != nil) != (plan.hit != "" && action != registrytest.Pass) {
		t.Errorf("call %d (%s): answered %v", k, plan.hit, err)
	}
	store.Release(f.Ctx)
	f.Config.Store, f.Config.OpenStorage, f.Config.Locks = raw, rawStorage, locks.NewLocal(locks.LocalConfig{})
	node := *f
	node.Instance, node.Store = f.Other(raw), raw
	if err := node.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(&node, entry, entry.Published...)
	wantEnded(&node)
	node.WantClean()
	if t.Failed() {
		t.Fatalf("call %d (%s): see above", k, plan.hit)
	}
	return plan.hit != ""
}

// A published file of a transaction may be registered again while the transaction's surplus files
// still exist. A surplus file may not.
func TestPublishedIsNotSurplus(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	written := f.Create("gone").Document.Raw()
	_, err := f.UnregisterTable(f.Ctx, ident("gone"))
	must(t, err)
	f.Create("t")
	done := abandonCommitted(f, "t")
	register := func(location string) error {
		f.Rewrite(location, written)
		_, err := f.RegisterTable(f.Ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: location})
		return err
	}
	err = register(done.Surplus()[0])
	if catalogkit.WantKind(t, err, moorage.KindBadRequest); !strings.Contains(moorage.MessageOf(err), "a transaction under way") {
		t.Errorf("a file of the surplus: %v", err)
	}
	if err := register(done.Published[0]); err != nil {
		t.Errorf("a published file: %v", err)
	}
}
