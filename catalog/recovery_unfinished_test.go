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
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
	"moorage/txlog"
)

// newUndeletable returns a fixture whose storage deletes nothing until mend is called.
func newUndeletable(t *testing.T) (f *catalogkit.Fixture, mend func()) {
	broken := true
	f = catalogkit.New(t, func(c *catalog.Config) {
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
	f.Create("t")
	return f, func() { broken = false }
}

// giveUp gives a transaction a blocker, as recovery does when it gives up.
func giveUp(f *catalogkit.Fixture, entry txlog.Entry) {
	f.T.Helper()
	catalogkit.Tamper(f).Put(registry.TaskKey(entry.ID), registry.StateBlocked, registry.Task{
		ID: entry.ID, Kind: registry.TaskRecovery, Created: f.Clock.Now(), Attempts: 50, LastError: "no such bucket",
	})
}

func TestUnfinishedTransactions(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	f.Create("u")
	if found, next, err := f.Recovery().Unfinished(f.Ctx, "", 0); err != nil || len(found) != 0 || next != "" {
		t.Errorf("of none: %+v, then %q (%v)", found, next, err)
	}
	pending, committed, blocked := abandon(f, "t"), abandonCommitted(f, "u"), abandon(f, "t")
	giveUp(f, blocked)
	want := map[registry.ID]txlog.Entry{}
	for _, entry := range []txlog.Entry{pending, committed, blocked} {
		want[entry.ID] = entry
	}
	for _, limit := range []int{0, 1, 2, 3, 4} {
		var all []recovery.Unfinished
		for after := ""; ; {
			found, next, err := f.Recovery().Unfinished(f.Ctx, after, limit)
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
			if entry := want[got.ID]; !reflect.DeepEqual(got.Entry, entry) || got.Warehouse != catalogkit.Warehouse {
				t.Errorf("got %+v, want %+v", got, entry)
			}
			if (got.Blocker != nil) != (got.ID == blocked.ID) {
				t.Errorf("the blocker of %s is %+v", got.ID, got.Blocker)
			}
			if got.Blocker != nil && *got.Blocker != (recovery.Blocker{Since: f.Clock.Now(), Attempts: 50, LastError: "no such bucket"}) {
				t.Errorf("the blocker is %+v", got.Blocker)
			}
		}
	}
	_, _, err := f.Recovery().Unfinished(f.Ctx, "t", 0)
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
}

// TestRetryTransaction retries a blocked transaction: first in vain, and then with success.
func TestRetryTransaction(t *testing.T) {
	t.Parallel()
	f, mend := newUndeletable(t)
	entry := abandon(f, "t")
	giveUp(f, entry)
	got, err := f.Recovery().Retry(f.Ctx, entry.ID.String())
	if err != nil || got.Kind != recovery.KindTransaction || got.Ended || got.Reason == nil {
		t.Errorf("in vain: got %+v (%v)", got, err)
	}
	if records, err := f.Ledger.Get(f.Ctx, registry.TaskKey(entry.ID)); err != nil || records[0].Exists() {
		t.Errorf("the blocker stays (%v), so that no worker tries", err)
	}
	mend()
	if got, err = f.Recovery().Retry(f.Ctx, entry.ID.String()); err != nil || got != (recovery.Retried{Kind: recovery.KindTransaction, Ended: true}) {
		t.Errorf("got %+v (%v), want it ended", got, err)
	}
	wantFiles(f, entry)
	wantEnded(f)
	_, err = f.Recovery().Retry(f.Ctx, entry.ID.String())
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	_, err = f.Recovery().Retry(f.Ctx, "t")
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
}

// An operator gets every error of the store, whichever call fails. In that case, no answer claims
// that there is nothing to list, or that a change was made.
func TestUnfinishedTellsOfTheStore(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, c *catalogkit.Instance, id string) error{
		"list": func(ctx context.Context, c *catalogkit.Instance, _ string) error {
			_, _, err := c.Recovery().Unfinished(ctx, "", 0)
			return err
		},
		"retry": func(ctx context.Context, c *catalogkit.Instance, id string) error {
			got, err := c.Recovery().Retry(ctx, id)
			if err == nil && !got.Ended {
				return moorage.E("retry", id, moorage.KindUnavailable, got.Reason)
			}
			return err
		},
		"abort": func(ctx context.Context, c *catalogkit.Instance, id string) error {
			_, err := c.Recovery().Abort(ctx, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				f := catalogkit.New(t)
				f.Create("t")
				entry := abandon(f, "t")
				giveUp(f, entry)
				f.Clock.Advance(time.Hour)
				faulty := registrytest.Faulty(f.Store, registrytest.Nth(k, registrytest.Fail))
				err := do(f.Ctx, f.Other(faulty), entry.ID.String())
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

// TestRetryPurge lists a blocked purge, and lets the worker start it again.
func TestRetryPurge(t *testing.T) {
	t.Parallel()
	f, mend := newUndeletable(t)
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	for range purge.AttemptsMax {
		if err := f.PurgeAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	purges, next, err := catalogkit.NewPurger(t, f.Instance).Blocked(f.Ctx, "", 1)
	if err != nil || len(purges) != 1 || next != "" {
		t.Fatalf("given up: %+v, then %q (%v)", purges, next, err)
	}
	if !purges[0].Table.Equal(ident("t")) || purges[0].Attempts != purge.AttemptsMax || purges[0].LastError == "" {
		t.Errorf("given up: %+v", purges[0])
	}
	_, err = f.Recovery().Abort(f.Ctx, purges[0].ID)
	catalogkit.WantKind(t, err, moorage.KindUnprocessable)
	mend()
	if got, err := f.Recovery().Retry(f.Ctx, purges[0].ID); err != nil || got != (recovery.Retried{Kind: recovery.KindPurge}) {
		t.Errorf("got %+v (%v)", got, err)
	}
	if purges, _, err := catalogkit.NewPurger(f.T, f.Instance).Blocked(f.Ctx, "", 0); err != nil || len(purges) != 0 {
		t.Errorf("still given up: %+v (%v)", purges, err)
	}
	if err := f.PurgeAll(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantEnded(f)
	f.WantClean()
}

// A purge that is blocked because the table's record cannot be read is listed with the other
// blocked purges.
func TestBlockedPurgeOfUnreadable(t *testing.T) {
	t.Parallel()
	f, _ := newUndeletable(t)
	for _, name := range []string{"a", "b"} {
		f.Create(name)
		if err := f.DropTable(f.Ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
	}
	record, pointer := recordOf(catalogkit.Tamper(f), "a")
	catalogkit.Tamper(f).Write(registry.Put(record.Key, record.State, []byte("{")))
	for range purge.AttemptsMax {
		if err := f.PurgeAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	purges, next, err := catalogkit.NewPurger(f.T, f.Instance).Blocked(f.Ctx, "", 0)
	if err != nil || len(purges) != 2 || next != "" {
		t.Fatalf("given up: %+v, then %q (%v)", purges, next, err)
	}
	for _, purge := range purges {
		if unread := purge.ID == pointer.Task.String(); unread != (purge.Table.Name == "") || unread != strings.Contains(purge.LastError, record.Key.String()) {
			t.Errorf("given up: %+v", purge)
		}
	}
}

// TestBlockedPurgesPages pages through the blocked purges among other tasks.
func TestBlockedPurgesPages(t *testing.T) {
	t.Parallel()
	f, _ := newUndeletable(t)
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		f.Create(name)
		if err := f.DropTable(f.Ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range purge.AttemptsMax {
		if err := f.PurgeAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	giveUp(f, abandon(f, "t"))
	f.Create("d")
	if err := f.DropTable(f.Ctx, ident("d"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	for after := ""; ; {
		purges, next, err := catalogkit.NewPurger(t, f.Instance).Blocked(f.Ctx, after, 2)
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

// TestAbortPending aborts a transaction in progress. Its coordinator can no longer commit, and
// recovery cleans up.
func TestAbortPending(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	transaction := transactionOver(f, "t")
	transaction.Deadline = f.Clock.Now().Add(time.Minute)
	entry, err := f.Transactions.Begin(f.Ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(entry.Files[0])
	got, err := f.Recovery().Abort(f.Ctx, entry.ID.String())
	if err != nil || got.Was != registry.StatePending || got.Forgotten || len(got.Left) != 0 {
		t.Errorf("got %+v (%v)", got, err)
	}
	condition, write, err := entry.Commit(entry.Files[:1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Store.Apply(f.Ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}})
	if failed, ok := registry.FailedCondition(err); !ok || failed != condition {
		t.Errorf("its coordinator was answered %v", err)
	}
	_, err = f.Recovery().Abort(f.Ctx, entry.ID.String())
	catalogkit.WantKind(t, err, moorage.KindUnprocessable) // recovery is already cleaning up
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entry)
	wantEnded(f)
	_, err = f.Recovery().Abort(f.Ctx, entry.ID.String())
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	_, err = f.Recovery().Abort(f.Ctx, "")
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
}

// TestAbortGivenUp aborts a blocked transaction. The answer names the files that are left.
func TestAbortGivenUp(t *testing.T) {
	t.Parallel()
	for name, abandon := range map[string]func(*catalogkit.Fixture) txlog.Entry{
		"pending":   func(f *catalogkit.Fixture) txlog.Entry { return abandon(f, "t") },
		"committed": func(f *catalogkit.Fixture) txlog.Entry { return abandonCommitted(f, "t") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := newUndeletable(t)
			entry := abandon(f)
			there := slices.DeleteFunc(slices.Clone(entry.Files), func(file string) bool {
				_, err := f.Files.Stat(f.Ctx, file)
				return errors.Is(err, storage.ErrNotFound)
			})
			if name == "committed" {
				_, err := f.Recovery().Abort(f.Ctx, entry.ID.String())
				catalogkit.WantKind(t, err, moorage.KindUnprocessable)
			}
			giveUp(f, entry)
			got, err := f.Recovery().Abort(f.Ctx, entry.ID.String())
			if err != nil || got.Was.String() != name || !got.Forgotten || !slices.Equal(got.Left, entry.Surplus()) {
				t.Errorf("got %+v (%v)", got, err)
			}
			wantFiles(f, entry, there...)
			wantEnded(f)
			f.WantClean()
		})
	}
}

// A blocker whose transaction has ended is ignored. Retry and Abort remove it.
func TestBlockerWithoutTransaction(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(f *catalogkit.Fixture, id string) error{
		"retry": func(f *catalogkit.Fixture, id string) error { _, err := f.Recovery().Retry(f.Ctx, id); return err },
		"abort": func(f *catalogkit.Fixture, id string) error { _, err := f.Recovery().Abort(f.Ctx, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			id, err := f.Ledger.NewID()
			if err != nil {
				t.Fatal(err)
			}
			writes, err := ledger.Encode(ledger.Put(registry.TaskKey(id), registry.StateBlocked, registry.Task{ID: id, Kind: registry.TaskRecovery}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: writes}); err != nil {
				t.Fatal(err)
			}
			catalogkit.WantKind(t, ask(f, id.String()), moorage.KindNotFound)
			f.WantClean()
		})
	}
}

// The coordinator of a blocked transaction ends it after all. The first list that finds its blocker
// removes the blocker.
func TestBlockerOfATransactionThatEnded(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(f *catalogkit.Fixture) error{
		"a node": func(f *catalogkit.Fixture) error { return f.PurgeAll(f.Ctx) },
		"an operator": func(f *catalogkit.Fixture) error {
			purges, _, err := catalogkit.NewPurger(f.T, f.Instance).Blocked(f.Ctx, "", 0)
			if len(purges) > 0 {
				err = errors.New("it is taken for a purge")
			}
			return err
		},
		"a check": func(f *catalogkit.Fixture) error {
			report, err := f.Check(f.Ctx)
			if slices.ContainsFunc(report.Problems, func(problem string) bool { return strings.Contains(problem, "no transaction") }) {
				err = errors.New("it is a problem")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("t")
			entry, stays := abandon(f, "t"), abandon(f, "t")
			giveUp(f, entry)
			giveUp(f, stays)
			catalogkit.Tamper(f).Write(registry.Delete(registry.TransactionKey(entry.ID))) // like its coordinator
			must(t, look(f))
			records, err := f.Ledger.Get(f.Ctx, registry.TaskKey(entry.ID), registry.TaskKey(stays.ID))
			must(t, err)
			if records[0].Exists() || !records[1].Exists() {
				t.Errorf("the blocker is there: %t, that of another transaction: %t", records[0].Exists(), records[1].Exists())
			}
		})
	}
}
