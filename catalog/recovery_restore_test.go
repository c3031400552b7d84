package catalog_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// copied is a restored copy of a store, with all kinds of records that cause the deletion of files.
// It has transactions in all states over the tables under, done and over; the last of them is
// blocked. It has three transactions with unreadable records, and purges of the tables dropped and
// purging.
type copied struct {
	*catalogkit.Fixture
	files []string          // the files that existed when the copy was made
	last  map[string]string // the current metadata file of each table, by its name
}

func newCopied(t *testing.T) *copied {
	t.Helper()
	f := &copied{Fixture: catalogkit.New(t), last: make(map[string]string)}
	for _, name := range []string{"under", "done", "over", "dropped", "purging"} {
		f.last[name] = f.Create(name).MetadataLocation
		f.files = append(f.files, f.last[name])
	}
	under, done, over := abandon(f.Fixture, "under"), abandonCommitted(f.Fixture, "done"), abandon(f.Fixture, "over")
	f.files = append(f.files, under.Files[0], done.Files[0], done.Files[1], over.Files[0])
	if _, err := f.Transactions.Abort(f.Ctx, over); err != nil {
		t.Fatal(err)
	}
	tamper := catalogkit.Tamper(f.Fixture)
	tamper.Put(registry.TaskKey(over.ID), registry.StateBlocked, registry.Task{ID: over.ID, Kind: registry.TaskRecovery})
	for i, state := range []registry.State{registry.StatePending, registry.StateAborted} {
		tamper.Write(registry.Put(registry.TransactionKey(registry.ID{byte(i + 1)}), state, []byte("{")))
	}
	tamper.Write(registry.Put(registry.Key{Table: registry.TableTransaction, ID: "no id"}, registry.StatePending, []byte("{}")))
	dropPurged(f.Fixture, "dropped", registry.StateDropped)
	dropPurged(f.Fixture, "purging", registry.StatePurging)
	return f
}

// wantInert runs all workers of a catalog. It fails the test if a file is gone afterwards.
func (f *copied) wantInert() {
	f.T.Helper()
	for name, run := range map[string]func() error{
		"recovery": func() error { return f.Recovery().RunOnce(f.Ctx) },
		"purge":    func() error { return f.PurgeAll(f.Ctx) },
		"sweep":    func() error { return f.SweepAll(f.Ctx) },
	} {
		if err := run(); err != nil {
			f.T.Errorf("%s: %v", name, err)
		}
	}
	for _, file := range f.files {
		if _, err := f.Fixture.Files.Stat(f.Ctx, file); err != nil {
			f.T.Errorf("%s: %v, want it untouched", file, err)
		}
	}
}

// register registers the last file of a dropped table.
func (f *copied) register(name string) error {
	f.T.Helper()
	_, err := f.RegisterTable(f.Ctx, ident(name), catalog.RegisterRequest{MetadataLocation: f.last[name]})
	return err
}

// TestCancelDeletions runs the workers on a copy with records that cause the deletion of files.
// They delete no file, neither at once nor after all windows. A table whose purge had not begun can
// be restored. A table whose purge had begun cannot.
func TestCancelDeletions(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	off, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now())
	if want := (recovery.Cancelled{Transactions: 6, Purges: 2}); err != nil || off != want {
		t.Fatalf("cancelled %+v (%v), want %+v", off, err, want)
	}
	wantEnded(f.Fixture)
	f.Clock.Advance(time.Hour)
	f.wantInert()
	f.WantClean()
	catalogkit.WantKind(t, f.register("purging"), moorage.KindAlreadyExists)
	if err := f.register("dropped"); err != nil {
		t.Errorf("register the table that was dropped: %v", err)
	}
	f.Clock.Advance(30 * 24 * time.Hour)
	f.wantInert()
	f.WantClean()
	if off, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil || off != (recovery.Cancelled{}) {
		t.Errorf("cancelled once more: %+v (%v), want nothing", off, err)
	}
}

// TestCancelDeletionsWindow cancels a purge that began long ago. From then on, its table has the
// full undrop window.
func TestCancelDeletionsWindow(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	f.Clock.Advance(30 * 24 * time.Hour)
	if _, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	f.wantInert()
	catalogkit.WantKind(t, f.register("purging"), moorage.KindAlreadyExists)
}

// TestCancelDeletionsFails applies each action to the k-th call of the store, for k = 0, 1, 2 ….
// CancelDeletions returns an error, and the next attempt succeeds.
func TestCancelDeletionsFails(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]registrytest.Action{"fail": registrytest.Fail, "lose": registrytest.Lose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				f := newCopied(t)
				store := registrytest.Faulty(f.Store, registrytest.Nth(k, action))
				_, err := recovery.CancelDeletions(f.Ctx, registrytest.Ledger(store), f.Clock.Now())
				if store.Calls() <= k {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					break
				}
				if err == nil {
					t.Errorf("call %d: no error", k)
				}
				if _, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil {
					t.Errorf("call %d: the next attempt: %v", k, err)
				}
				wantEnded(f.Fixture)
				f.wantInert()
				f.WantClean()
			}
		})
	}
}

// TestCancelDeletionsInUse: another process writes to the store in the meantime.
func TestCancelDeletionsInUse(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	key := registry.TransactionKey(registry.ID{1})
	store := registrytest.Faulty(f.Store, func(_ int, method string) registrytest.Action {
		if method == registrytest.MethodApply {
			catalogkit.Tamper(f.Fixture).Write(registry.Put(key, registry.StatePending, []byte("{")))
		}
		return registrytest.Pass
	})
	_, err := recovery.CancelDeletions(f.Ctx, registrytest.Ledger(store), f.Clock.Now())
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
}
