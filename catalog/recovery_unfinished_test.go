package catalog_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/purge"
	"moorage/recovery"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
	"moorage/txlog"
)

// newUndeletable returns a fixture whose storage deletes nothing until it is mended.
func newUndeletable(t *testing.T) (f *fixture, mend func()) {
	broken := true
	f = newFixture(t, func(c *catalog.Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := open(place)
			if err != nil {
				return nil, err
			}
			return storagetest.Faulty(inner, func(_ int, method string) storagetest.Action {
				if broken && method == storagetest.MethodDelete {
					return storagetest.Fail
				}
				return storagetest.Pass
			}), nil
		}
	})
	f.create("t")
	return f, func() { broken = false }
}

// giveUp gives a transaction the blocker that the recovery would.
func (f *fixture) giveUp(entry txlog.Entry) {
	f.t.Helper()
	tampering{f}.put(registry.TaskKey(entry.ID), registry.StateBlocked, registry.Task{
		ID: entry.ID, Kind: registry.TaskRecovery, Created: f.clock.Now(), Attempts: 50, LastError: "no such bucket",
	})
}

func TestUnfinishedTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	f.create("u")
	if found, next, err := f.recovery().Unfinished(f.ctx, "", 0); err != nil || len(found) != 0 || next != "" {
		t.Errorf("of none: %+v, then %q (%v)", found, next, err)
	}
	pending, committed, blocked := f.abandon("t"), f.abandonCommitted("u"), f.abandon("t")
	f.giveUp(blocked)
	want := map[registry.ID]txlog.Entry{}
	for _, entry := range []txlog.Entry{pending, committed, blocked} {
		want[entry.ID] = entry
	}
	for _, limit := range []int{0, 1, 2, 3, 4} {
		var all []recovery.Unfinished
		for after := ""; ; {
			found, next, err := f.recovery().Unfinished(f.ctx, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
			if next == "" {
				break
			}
			if len(found) != limit {
				t.Errorf("a page of %d, and there is another; want %d", len(found), limit)
			}
			after = next
		}
		if len(all) != len(want) || !slices.IsSortedFunc(all, func(a, b recovery.Unfinished) int { return slices.Compare(a.ID[:], b.ID[:]) }) {
			t.Errorf("pages of %d: %+v", limit, all)
		}
		for _, got := range all {
			if entry := want[got.ID]; !reflect.DeepEqual(got.Entry, entry) || got.Warehouse != testWarehouse {
				t.Errorf("got %+v, want %+v", got, entry)
			}
			if (got.Blocker != nil) != (got.ID == blocked.ID) {
				t.Errorf("the blocker of %s is %+v", got.ID, got.Blocker)
			}
			if got.Blocker != nil && *got.Blocker != (recovery.Blocker{Since: f.clock.Now(), Attempts: 50, LastError: "no such bucket"}) {
				t.Errorf("the blocker is %+v", got.Blocker)
			}
		}
	}
	_, _, err := f.recovery().Unfinished(f.ctx, "t", 0)
	wantKind(t, err, moorage.KindBadRequest)
}

// TestRetryTransaction tries again what was given up: in vain, and then with success.
func TestRetryTransaction(t *testing.T) {
	t.Parallel()
	f, mend := newUndeletable(t)
	entry := f.abandon("t")
	f.giveUp(entry)
	got, err := f.recovery().Retry(f.ctx, entry.ID.String())
	if err != nil || got.Kind != recovery.KindTransaction || got.Ended || got.Reason == nil {
		t.Errorf("in vain: got %+v (%v)", got, err)
	}
	if records, err := f.ledger.Get(f.ctx, registry.TaskKey(entry.ID)); err != nil || records[0].Exists() {
		t.Errorf("the blocker stays (%v), so that no worker tries", err)
	}
	mend()
	if got, err = f.recovery().Retry(f.ctx, entry.ID.String()); err != nil || got != (recovery.Retried{Kind: recovery.KindTransaction, Ended: true}) {
		t.Errorf("got %+v (%v), want it ended", got, err)
	}
	f.wantFiles(entry)
	f.wantEnded()
	_, err = f.recovery().Retry(f.ctx, entry.ID.String())
	wantKind(t, err, moorage.KindNotFound)
	_, err = f.recovery().Retry(f.ctx, "t")
	wantKind(t, err, moorage.KindBadRequest)
}

// An operator gets every error of the store, whichever call meets it. No answer then says that
// there is nothing, or that something was done.
func TestUnfinishedTellsOfTheStore(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, c *instance, id string) error{
		"list": func(ctx context.Context, c *instance, _ string) error {
			_, _, err := c.recovery().Unfinished(ctx, "", 0)
			return err
		},
		"retry": func(ctx context.Context, c *instance, id string) error {
			got, err := c.recovery().Retry(ctx, id)
			if err == nil && !got.Ended {
				return moorage.E("retry", id, moorage.KindUnavailable, got.Reason)
			}
			return err
		},
		"abort": func(ctx context.Context, c *instance, id string) error {
			_, err := c.recovery().Abort(ctx, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				f := newFixture(t)
				f.create("t")
				entry := f.abandon("t")
				f.giveUp(entry)
				f.clock.Advance(time.Hour)
				faulty := registrytest.Faulty(f.store, registrytest.Nth(k, registrytest.Fail))
				err := do(f.ctx, f.other(faulty), entry.ID.String())
				if faulty.Calls() <= k {
					if err != nil {
						t.Errorf("after %d calls: %v", k, err)
					}
					return
				}
				if moorage.KindOf(err) != moorage.KindUnavailable {
					t.Errorf("k = %d: answered %v, want %s", k, err, moorage.KindUnavailable)
				}
			}
		})
	}
}

// TestRetryPurge lists a purge that was given up, and lets the worker begin it again.
func TestRetryPurge(t *testing.T) {
	t.Parallel()
	f, mend := newUndeletable(t)
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	for range purge.AttemptsMax {
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	purges, next, err := newPurger(t, f.instance).Blocked(f.ctx, "", 1)
	if err != nil || len(purges) != 1 || next != "" {
		t.Fatalf("given up: %+v, then %q (%v)", purges, next, err)
	}
	if !purges[0].Table.Equal(ident("t")) || purges[0].Attempts != purge.AttemptsMax || purges[0].LastError == "" {
		t.Errorf("given up: %+v", purges[0])
	}
	_, err = f.recovery().Abort(f.ctx, purges[0].ID)
	wantKind(t, err, moorage.KindUnprocessable)
	mend()
	if got, err := f.recovery().Retry(f.ctx, purges[0].ID); err != nil || got != (recovery.Retried{Kind: recovery.KindPurge}) {
		t.Errorf("got %+v (%v)", got, err)
	}
	if purges, _, err := newPurger(f.t, f.instance).Blocked(f.ctx, "", 0); err != nil || len(purges) != 0 {
		t.Errorf("still given up: %+v (%v)", purges, err)
	}
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantEnded()
	f.wantClean()
}

// A purge that was given up because the table's record cannot be read is listed, beside those of
// other tables.
func TestBlockedPurgeOfUnreadable(t *testing.T) {
	t.Parallel()
	f, _ := newUndeletable(t)
	for _, name := range []string{"a", "b"} {
		f.create(name)
		if err := f.DropTable(f.ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
	}
	record, pointer := tampering{f}.recordOf("a")
	tampering{f}.write(registry.Put(record.Key, record.State, []byte("{")))
	for range purge.AttemptsMax {
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	purges, next, err := newPurger(f.t, f.instance).Blocked(f.ctx, "", 0)
	if err != nil || len(purges) != 2 || next != "" {
		t.Fatalf("given up: %+v, then %q (%v)", purges, next, err)
	}
	for _, purge := range purges {
		if unread := purge.ID == pointer.Task.String(); unread != (purge.Table.Name == "") || unread != strings.Contains(purge.LastError, record.Key.String()) {
			t.Errorf("given up: %+v", purge)
		}
	}
}

// TestBlockedPurgesPages walks through purges that were given up, among other tasks.
func TestBlockedPurgesPages(t *testing.T) {
	t.Parallel()
	f, _ := newUndeletable(t)
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		f.create(name)
		if err := f.DropTable(f.ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range purge.AttemptsMax {
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	f.giveUp(f.abandon("t"))
	f.create("d")
	if err := f.DropTable(f.ctx, ident("d"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	for after := ""; ; {
		purges, next, err := newPurger(t, f.instance).Blocked(f.ctx, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, purge := range purges {
			want = append(want, purge.Table.Name)
		}
		if after = next; next == "" {
			break
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, []string{"a", "b", "c"}) {
		t.Errorf("listed %q, want a, b and c", want)
	}
}

// TestAbortPending ends a transaction under way. Its coordinator can no longer commit, and the
// recovery cleans up.
func TestAbortPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	transaction := f.transactionOver("t")
	transaction.Deadline = f.clock.Now().Add(time.Minute)
	entry, err := f.transactions.Begin(f.ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	f.write(entry.Files[0])
	got, err := f.recovery().Abort(f.ctx, entry.ID.String())
	if err != nil || got.Was != registry.StatePending || got.Forgotten || len(got.Left) != 0 {
		t.Errorf("got %+v (%v)", got, err)
	}
	condition, write, err := entry.Commit(entry.Files[:1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.store.Apply(f.ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}})
	if failed, ok := registry.FailedCondition(err); !ok || failed != condition {
		t.Errorf("its coordinator was answered %v", err)
	}
	_, err = f.recovery().Abort(f.ctx, entry.ID.String())
	wantKind(t, err, moorage.KindUnprocessable) // the recovery is at it
	if err := f.recovery().RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entry)
	f.wantEnded()
	_, err = f.recovery().Abort(f.ctx, entry.ID.String())
	wantKind(t, err, moorage.KindNotFound)
	_, err = f.recovery().Abort(f.ctx, "")
	wantKind(t, err, moorage.KindBadRequest)
}

// TestAbortGivenUp forgets a transaction and names the files that it leaves.
func TestAbortGivenUp(t *testing.T) {
	t.Parallel()
	for name, abandon := range map[string]func(*fixture) txlog.Entry{
		"pending":   func(f *fixture) txlog.Entry { return f.abandon("t") },
		"committed": func(f *fixture) txlog.Entry { return f.abandonCommitted("t") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := newUndeletable(t)
			entry := abandon(f)
			there := slices.DeleteFunc(slices.Clone(entry.Files), func(file string) bool {
				_, err := f.files.Stat(f.ctx, file)
				return errors.Is(err, storage.ErrNotFound)
			})
			if name == "committed" {
				_, err := f.recovery().Abort(f.ctx, entry.ID.String())
				wantKind(t, err, moorage.KindUnprocessable)
			}
			f.giveUp(entry)
			got, err := f.recovery().Abort(f.ctx, entry.ID.String())
			if err != nil || got.Was.String() != name || !got.Forgotten || !slices.Equal(got.Left, entry.Surplus()) {
				t.Errorf("got %+v (%v)", got, err)
			}
			f.wantFiles(entry, there...)
			f.wantEnded()
			f.wantClean()
		})
	}
}

// A blocker whose transaction has ended does not count as one. Retry and Abort take it away.
func TestBlockerWithoutTransaction(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(f *fixture, id string) error{
		"retry": func(f *fixture, id string) error { _, err := f.recovery().Retry(f.ctx, id); return err },
		"abort": func(f *fixture, id string) error { _, err := f.recovery().Abort(f.ctx, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			id, err := f.ledger.NewID()
			if err != nil {
				t.Fatal(err)
			}
			writes, err := ledger.Encode(ledger.Put(registry.TaskKey(id), registry.StateBlocked, registry.Task{ID: id, Kind: registry.TaskRecovery}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes}); err != nil {
				t.Fatal(err)
			}
			wantKind(t, ask(f, id.String()), moorage.KindNotFound)
			f.wantClean()
		})
	}
}

// The coordinator of a transaction that was given up ends it after all. The first look that sees
// its blocker takes it away.
func TestBlockerOfATransactionThatEnded(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(f *fixture) error{
		"a node": func(f *fixture) error { return f.purgeAll(f.ctx) },
		"an operator": func(f *fixture) error {
			purges, _, err := newPurger(f.t, f.instance).Blocked(f.ctx, "", 0)
			if len(purges) > 0 {
				err = errors.New("it is taken for a purge")
			}
			return err
		},
		"a check": func(f *fixture) error {
			report, err := f.Check(f.ctx)
			if slices.ContainsFunc(report.Problems, func(problem string) bool { return strings.Contains(problem, "no transaction") }) {
				err = errors.New("it is a problem")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			entry, stays := f.abandon("t"), f.abandon("t")
			f.giveUp(entry)
			f.giveUp(stays)
			tampering{f}.write(registry.Delete(registry.TransactionKey(entry.ID))) // as its coordinator does
			must(t, look(f))
			records, err := f.ledger.Get(f.ctx, registry.TaskKey(entry.ID), registry.TaskKey(stays.ID))
			must(t, err)
			if records[0].Exists() || !records[1].Exists() {
				t.Errorf("the blocker is there: %t, that of another transaction: %t", records[0].Exists(), records[1].Exists())
			}
		})
	}
}
