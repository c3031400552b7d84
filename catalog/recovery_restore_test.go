package catalog_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// copied is a store as it was copied, with everything in it that would have files deleted. It has
// transactions in all states over the tables under, done and over, and the last of them is given
// up. It has three transactions whose records cannot be read, and purges of the tables dropped and
// purging.
type copied struct {
	*fixture
	files []string          // which were there when the copy was made
	last  map[string]string // the current metadata file of each table, by its name
}

func newCopied(t *testing.T) *copied {
	t.Helper()
	f := &copied{fixture: newFixture(t), last: make(map[string]string)}
	for _, name := range []string{"under", "done", "over", "dropped", "purging"} {
		f.last[name] = f.create(name).MetadataLocation
		f.files = append(f.files, f.last[name])
	}
	under, done, over := f.abandon("under"), f.abandonCommitted("done"), f.abandon("over")
	f.files = append(f.files, under.Files[0], done.Files[0], done.Files[1], over.Files[0])
	if _, err := f.transactions.Abort(f.ctx, over); err != nil {
		t.Fatal(err)
	}
	tamper := tampering{f.fixture}
	tamper.put(registry.TaskKey(over.ID), registry.StateBlocked, registry.Task{ID: over.ID, Kind: registry.TaskRecovery})
	for i, state := range []registry.State{registry.StatePending, registry.StateAborted} {
		tamper.write(registry.Put(registry.TransactionKey(registry.ID{byte(i + 1)}), state, []byte("{")))
	}
	tamper.write(registry.Put(registry.Key{Table: registry.TableTransaction, ID: "no id"}, registry.StatePending, []byte("{}")))
	f.dropPurged("dropped", registry.StateDropped)
	f.dropPurged("purging", registry.StatePurging)
	return f
}

// wantInert has the workers of a catalog do all that they would do now. It fails the test if a file
// is gone then.
func (f *copied) wantInert() {
	f.t.Helper()
	for name, run := range map[string]func() error{
		"recovery": func() error { return f.recovery().RunOnce(f.ctx) },
		"purge":    func() error { return f.purgeAll(f.ctx) },
		"sweep":    func() error { return f.sweepAll(f.ctx) },
	} {
		if err := run(); err != nil {
			f.t.Errorf("%s: %v", name, err)
		}
	}
	for _, file := range f.files {
		if _, err := f.fixture.files.Stat(f.ctx, file); err != nil {
			f.t.Errorf("%s: %v, want it untouched", file, err)
		}
	}
}

// register registers the file that a dropped table had last.
func (f *copied) register(name string) error {
	f.t.Helper()
	_, err := f.RegisterTable(f.ctx, ident(name), catalog.RegisterRequest{MetadataLocation: f.last[name]})
	return err
}

// TestCancelDeletions lets the workers loose on a copy that says of files that they are to be
// deleted. They delete none, neither at once nor when all windows are over. A table whose purge had
// not begun comes back. A table whose purge had begun does not.
func TestCancelDeletions(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	off, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now())
	if want := (recovery.Cancelled{Transactions: 6, Purges: 2}); err != nil || off != want {
		t.Fatalf("cancelled %+v (%v), want %+v", off, err, want)
	}
	f.wantEnded()
	f.clock.Advance(time.Hour)
	f.wantInert()
	f.wantClean()
	wantKind(t, f.register("purging"), moorage.KindAlreadyExists)
	if err := f.register("dropped"); err != nil {
		t.Errorf("register the table that was dropped: %v", err)
	}
	f.clock.Advance(30 * 24 * time.Hour)
	f.wantInert()
	f.wantClean()
	if off, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil || off != (recovery.Cancelled{}) {
		t.Errorf("cancelled once more: %+v (%v), want nothing", off, err)
	}
}

// TestCancelDeletionsWindow calls off a purge that had begun long ago. Its table has all of the
// undrop window from then on.
func TestCancelDeletionsWindow(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	f.clock.Advance(30 * 24 * time.Hour)
	if _, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	f.wantInert()
	wantKind(t, f.register("purging"), moorage.KindAlreadyExists)
}

// TestCancelDeletionsFails does each action to the k-th call to the store, for k = 0, 1, 2 ….
// CancelDeletions returns an error, and the next attempt succeeds.
func TestCancelDeletionsFails(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]registrytest.Action{"fail": registrytest.Fail, "lose": registrytest.Lose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				f := newCopied(t)
				store := registrytest.Faulty(f.store, registrytest.Nth(k, action))
				_, err := recovery.CancelDeletions(f.ctx, registrytest.Ledger(store), f.clock.Now())
				if store.Calls() <= k {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					break
				}
				if err == nil {
					t.Errorf("call %d: no error", k)
				}
				if _, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil {
					t.Errorf("call %d: the next attempt: %v", k, err)
				}
				f.wantEnded()
				f.wantInert()
				f.wantClean()
			}
		})
	}
}

// TestCancelDeletionsInUse has somebody else write to the store meanwhile.
func TestCancelDeletionsInUse(t *testing.T) {
	t.Parallel()
	f := newCopied(t)
	key := registry.TransactionKey(registry.ID{1})
	store := registrytest.Faulty(f.store, func(_ int, method string) registrytest.Action {
		if method == registrytest.MethodApply {
			tampering{f.fixture}.write(registry.Put(key, registry.StatePending, []byte("{")))
		}
		return registrytest.Pass
	})
	_, err := recovery.CancelDeletions(f.ctx, registrytest.Ledger(store), f.clock.Now())
	wantKind(t, err, moorage.KindUnavailable)
}
