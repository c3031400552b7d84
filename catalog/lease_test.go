package catalog_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/leases"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// sleepy is a store that calls sleep before the Apply of a change, as if the client paused there.
type sleepy struct {
	registry.Store
	sleep atomic.Pointer[func()] // called once; may be nil
}

func (s *sleepy) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change != nil {
		if sleep := s.sleep.Swap(nil); sleep != nil {
			(*sleep)()
		}
	}
	return s.Store.Apply(ctx, batch)
}

// leased is a fixture with the tables t and u, and a lease on t.
type leased struct {
	*catalogkit.Fixture
	store  *sleepy
	leases *leases.Leases
	id     registry.ID
	lease  leases.Granted
}

func newLeased(t *testing.T) *leased {
	store := &sleepy{}
	f := catalogkit.New(t, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	l := &leased{Fixture: f, store: store, leases: leases.New(f.Ledger)}
	f.Create("t")
	f.Create("u")
	_, err := f.LoadTable(f.Ctx, ident("t"))
	found, known := f.Catalog.Pointers().Named(ident("t"))
	if err != nil || !known {
		t.Fatalf("no pointer of t is known: %v", err)
	}
	l.id = found
	l.lease = l.take(moorage.Anonymous())
	return l
}

func (l *leased) take(caller moorage.Caller) leases.Granted {
	l.T.Helper()
	granted, err := l.leases.Take(l.Ctx, caller, leases.Request{Pointer: l.id, Scope: leases.ScopeAll, Holder: "spark"})
	if err != nil {
		l.T.Fatal(err)
	}
	return granted
}

// under returns the catalog for a change under a lease.
func (l *leased) under(lease catalog.Lease) catalog.Verbs {
	return l.For(moorage.Anonymous(), nil, &lease)
}

// changes returns the verbs that check a lease. Each of them changes t.
func (l *leased) changes() map[string]func(catalog.Verbs) error {
	return map[string]func(catalog.Verbs) error{
		"commit": func(c catalog.Verbs) error {
			_, err := c.Commit(l.Ctx, ident("t"), catalogkit.SetProperty(l.T, "a", "b"))
			return err
		},
		"transaction": func(c catalog.Verbs) error {
			return c.CommitTransaction(l.Ctx, catalogkit.Warehouse, []catalog.TableChange{
				catalogkit.On("u", catalogkit.SetProperty(l.T, "a", "b")), catalogkit.On("t", catalogkit.SetProperty(l.T, "a", "b")),
			})
		},
		"drop":   func(c catalog.Verbs) error { return c.DropTable(l.Ctx, ident("t"), catalog.DropOptions{}) },
		"rename": func(c catalog.Verbs) error { return c.RenameTable(l.Ctx, ident("t"), ident("v")) },
	}
}

// count returns the number of change records.
func (l *leased) count() int {
	l.T.Helper()
	changes, err := l.store.Changes(l.Ctx, 0, registry.ListLimitMax)
	if err != nil {
		l.T.Fatal(err)
	}
	return len(changes)
}

// If a holder pauses just before its change until its lease has ended, it changes nothing.
func TestPausedHolderCannotChange(t *testing.T) {
	t.Parallel()
	for name := range (&leased{}).changes() {
		for taken, sleep := range map[string]func(*leased){
			"taken over": func(l *leased) { l.Clock.Advance(leases.TTLDefault); l.take(moorage.Anonymous()) },
			"taken over in another scope": func(l *leased) {
				l.Clock.Advance(leases.TTLDefault)
				if _, err := l.leases.Take(l.Ctx, moorage.Anonymous(), leases.Request{Pointer: l.id, Scope: "part:0a", Holder: "x"}); err != nil {
					l.T.Error(err)
				}
			},
			"released": func(l *leased) {
				if err := l.leases.Release(l.Ctx, moorage.Anonymous(), l.lease.ID, leases.OwnLeases); err != nil {
					l.T.Error(err)
				}
			},
		} {
			t.Run(name+"/"+taken, func(t *testing.T) {
				t.Parallel()
				l := newLeased(t)
				before := l.count()
				asleep := func() { sleep(l) }
				l.store.sleep.Store(&asleep)
				catalogkit.WantKind(t, l.changes()[name](l.under(l.lease.ID)), moorage.KindCommitFailed)
				if l.store.sleep.Load() != nil {
					t.Error("nothing was about to be applied")
				}
				if now := l.count(); now != before {
					t.Errorf("%d changes more", now-before)
				}
				l.WantNoTransactions()
				l.WantClean()
			})
		}
	}
}

// A former holder is refused before anything is written. The present holder changes the table, even
// while it renews its lease.
func TestLeaseIsHeeded(t *testing.T) {
	t.Parallel()
	for name := range (&leased{}).changes() {
		for state, tt := range map[string]struct {
			prepare func(*leased) catalog.Verbs
			fails   bool
		}{
			"held": {func(l *leased) catalog.Verbs { return l.under(l.lease.ID) }, false},
			"renewed meanwhile": {func(l *leased) catalog.Verbs {
				renew := func() {
					l.Clock.Advance(time.Minute)
					if _, lost, err := l.leases.Renew(l.Ctx, moorage.Anonymous(), []registry.LeaseID{l.lease.ID}); err != nil || len(lost) > 0 {
						l.T.Errorf("lost %v, %v", lost, err)
					}
				}
				l.store.sleep.Store(&renew)
				return l.under(l.lease.ID)
			}, false},
			"ended": {func(l *leased) catalog.Verbs { l.Clock.Advance(leases.TTLDefault); return l.under(l.lease.ID) }, true},
			"superseded": {func(l *leased) catalog.Verbs {
				l.Clock.Advance(leases.TTLDefault)
				l.take(moorage.Anonymous())
				return l.under(l.lease.ID)
			}, true},
			"no token":  {func(l *leased) catalog.Verbs { return l.under(registry.LeaseID{Pointer: l.id, Token: 99}) }, true},
			"no lease":  {func(l *leased) catalog.Verbs { return l.under(registry.LeaseID{Pointer: registry.ID{9}, Token: 1}) }, true},
			"another's": {func(l *leased) catalog.Verbs { return l.For(moorage.Caller{Name: "ben"}, nil, &l.lease.ID) }, true},
		} {
			t.Run(name+"/"+state, func(t *testing.T) {
				t.Parallel()
				l := newLeased(t)
				verbs, before := tt.prepare(l), l.count()
				err := l.changes()[name](verbs)
				if tt.fails {
					catalogkit.WantKind(t, err, moorage.KindCommitFailed)
				} else if err != nil {
					t.Fatal(err)
				}
				if changed := l.count() > before; changed == tt.fails {
					t.Errorf("changed: %t, %v", changed, err)
				}
				l.WantNoTransactions()
				l.WantClean()
			})
		}
	}
}

// A lease on one table does not allow its holder to change another table.
func TestLeaseOfAnotherTable(t *testing.T) {
	t.Parallel()
	l := newLeased(t)
	_, err := l.under(l.lease.ID).Commit(l.Ctx, ident("u"), catalogkit.SetProperty(t, "a", "b"))
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	l.WantClean()
}

// A commit under a lease does not share a version, so that no other commit fails with it. Requests
// without a lease are not affected by a lease.
func TestLeaseIsAdvice(t *testing.T) {
	t.Parallel()
	l := newLeased(t)
	for name, change := range l.changes() {
		if slices.Contains([]string{"commit", "transaction"}, name) {
			if err := change(l.Catalog); err != nil {
				t.Errorf("%s without the lease: %v", name, err)
			}
		}
	}
	if _, lost, err := l.leases.Renew(l.Ctx, moorage.Anonymous(), []registry.LeaseID{l.lease.ID}); err != nil || len(lost) > 0 {
		t.Errorf("the lease is lost: %v", err)
	}
}

// The answer of a commit is lost, and the commit is repeated after its lease has ended. The answer
// is the original success. If it were a failure, the client would delete its files.
func TestLeaseEndedAfterTheCommit(t *testing.T) {
	t.Parallel()
	l := newLeased(t)
	table, err := l.LoadTable(l.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.under(l.lease.ID).Commit(l.Ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 7, 0, 1)); err != nil {
			t.Fatal(err)
		}
		l.Clock.Advance(leases.TTLDefault)
	}
	l.WantClean()
}

// The record of a table's leases stays as long as the table can be restored, so that no token is
// issued twice. It is deleted with the pointer, because the pointer's ID is never reused.
func TestLeasesGoWithThePointer(t *testing.T) {
	t.Parallel()
	has := func(l *leased) bool {
		records, err := l.store.Get(l.Ctx, registry.LeaseKey(l.id))
		must(l.T, err)
		return records[0].Exists()
	}
	l := newLeased(t)
	must(t, l.DropTable(l.Ctx, ident("t"), catalog.DropOptions{}))
	must(t, l.SweepAll(l.Ctx))
	if !has(l) {
		t.Error("the leases of a dropped table are gone")
	}
	l.Clock.Advance(30 * 24 * time.Hour)
	must(t, l.SweepAll(l.Ctx))
	if has(l) {
		t.Error("the leases are there behind the undrop window")
	}
	l = newLeased(t)
	if _, err := l.UnregisterTable(l.Ctx, ident("t")); err != nil || has(l) {
		t.Errorf("after unregister: %v", err)
	}
	l.WantClean()
}
