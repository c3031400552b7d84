package catalog_test

import (
	"bytes"
	"log/slog"
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
	"moorage/testkit/catalogkit"
)

// dropPurged drops a table with a purge. It returns the purge's task and the pointer. It gives the
// pointer the given state, which can be that of a purge in progress.
func dropPurged(f *catalogkit.Fixture, name string, state registry.State) (task registry.Record, pointer registry.Pointer) {
	f.T.Helper()
	if err := f.DropTable(f.Ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
		f.T.Fatal(err)
	}
	records, err := f.Store.List(f.Ctx, registry.TablePointer, "", "", registry.ListLimitMax)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, record := range records {
		value, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			f.T.Fatal(err)
		}
		if value.Name == name && !value.Task.IsZero() {
			pointer = value
			catalogkit.Tamper(f).Put(record.Key, state, value)
		}
	}
	tasks, err := f.Ledger.Get(f.Ctx, registry.TaskKey(pointer.Task))
	if err != nil || !tasks[0].Exists() {
		f.T.Fatalf("no task for %s (%v)", name, err)
	}
	return tasks[0], pointer
}

// taskDamages returns writes that make the record of a task unreadable.
func taskDamages(t *testing.T, id registry.ID) map[string]registry.Write {
	t.Helper()
	key := registry.TaskKey(id)
	writes, err := ledger.Encode(
		ledger.Put(key, registry.StateNone, registry.Task{ID: registry.ID{7}, Kind: registry.TaskPurge}),
		ledger.Put(key, registry.StateNone, registry.Task{ID: id, Kind: "compaction"}),
		ledger.Put(key, registry.StateLive, registry.Task{ID: id, Kind: registry.TaskPurge}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]registry.Write{
		"of another type": registry.Put(key, registry.StateBlocked, []byte(`{"id":7}`)),
		"empty":           registry.Put(key, registry.StateNone, []byte(`{}`)),
		"another's":       writes[0],
		"of a later kind": writes[1],
		"of no state":     writes[2],
	}
}

// wantOnlyBlocked fails the test unless want has the IDs of all blocked purges. It reads pages of
// one.
func wantOnlyBlocked(f *catalogkit.Fixture, want ...string) []purge.Blocked {
	f.T.Helper()
	var all []purge.Blocked
	for after := ""; ; {
		purges, next, err := catalogkit.NewPurger(f.T, f.Instance).Blocked(f.Ctx, after, 1)
		if err != nil || len(purges) > 1 {
			f.T.Fatalf("a page of one: %+v (%v)", purges, err)
		}
		all = append(all, purges...)
		if after = next; next == "" {
			break
		}
	}
	var ids []string
	for _, purge := range all {
		ids = append(ids, purge.ID)
	}
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(ids, want) {
		f.T.Errorf("listed %q, want %q", ids, want)
	}
	return all
}

// Operators see an unreadable task, and the tasks after it. It can be neither retried nor aborted.
// As a last resort, an operator can make the catalog forget it. Then the files of its table stay.
// If the purge had not begun, the dropped table can be restored until the end of its window.
func TestUnreadableTask(t *testing.T) {
	t.Parallel()
	for storeName, open := range stores.Kinds() {
		for damageName := range taskDamages(t, registry.ID{1}) {
			if storeName != "memory" && damageName != "of another type" {
				continue // a store does not check values
			}
			t.Run(storeName+"/"+damageName, func(t *testing.T) {
				t.Parallel()
				f := catalogkit.New(t, func(c *catalog.Config) {
					c.Store = catalogkit.ClockedStore{Store: open(t, newLockedRandom(3)), Now: c.Now}
				})
				dropped, purging := f.Create("dropped"), f.Create("purging")
				droppedTask, droppedPointer := dropPurged(f, "dropped", registry.StateDropped)
				purgingTask, purgingPointer := dropPurged(f, "purging", registry.StatePurging)
				orphan := registry.ID{9}
				ids := []string{droppedTask.Key.ID, purgingTask.Key.ID, orphan.String()}
				for _, id := range []registry.ID{droppedPointer.Task, purgingPointer.Task, orphan} {
					catalogkit.Tamper(f).Write(taskDamages(t, id)[damageName])
				}

				for _, purge := range wantOnlyBlocked(f, ids...) {
					if purge.Unreadable == nil || !strings.Contains(purge.Unreadable.Error(), "task/"+purge.ID) || purge.Attempts != 0 || purge.LastError != "" {
						t.Errorf("listed as %+v", purge)
					}
					_, err := f.Recovery().Retry(f.Ctx, purge.ID)
					catalogkit.WantKind(t, err, moorage.KindUnprocessable)
					_, err = f.Recovery().Abort(f.Ctx, purge.ID)
					catalogkit.WantKind(t, err, moorage.KindUnprocessable)
				}
				report, err := f.Check(f.Ctx)
				problems := strings.Join(report.Problems, "\n")
				if err != nil || len(report.Problems) != 3 || strings.Count(problems, "cannot be read") != 3 {
					t.Errorf("check: %q (%v)", report.Problems, err)
				}
				for _, owner := range []string{"the purge of table w.ns.dropped", "the purge of table w.ns.purging", "no dropped table awaits it"} {
					if !strings.Contains(problems, owner) {
						t.Errorf("check does not say %q:\n%s", owner, problems)
					}
				}
				if err := f.PurgeAll(f.Ctx); err != nil {
					t.Error(err)
				}

				if off, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil || off.Purges != 2 {
					t.Errorf("cancelled %+v (%v)", off, err)
				}
				wantOnlyBlocked(f)
				wantEnded(f)
				f.WantClean()
				if files := []string{dropped.MetadataLocation, purging.MetadataLocation}; len(f.Present(files)) != len(files) {
					t.Error("files are gone of a purge that was called off")
				}
				wantCalledOff(f, dropped, purging)
			})
		}
	}
}

// wantCalledOff fails the test unless the dropped table can be restored as the same table. The
// table whose purge had begun cannot be. Its remaining files can be registered as a new table after
// its window.
func wantCalledOff(f *catalogkit.Fixture, dropped, purging *catalog.Table) {
	f.T.Helper()
	back, err := f.RegisterTable(f.Ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
	if err != nil || back.PointerID() != dropped.PointerID() {
		f.T.Errorf("the table does not come back: %v", err)
	}
	_, err = f.RegisterTable(f.Ctx, ident("anew"), catalog.RegisterRequest{MetadataLocation: purging.MetadataLocation})
	catalogkit.WantKind(f.T, err, moorage.KindAlreadyExists)
	f.WantClean()
	f.Clock.Advance(catalogkit.UndropWindow + time.Second)
	if err := f.EndWindows(f.Ctx); err != nil {
		f.T.Fatal(err)
	}
	anew, err := f.RegisterTable(f.Ctx, ident("anew"), catalog.RegisterRequest{MetadataLocation: purging.MetadataLocation})
	if err != nil || anew.PointerID() == purging.PointerID() {
		f.T.Errorf("what is left of the other cannot be registered as a new table: %v", err)
	}
	f.WantClean()
}

// A table with a cancelled purge ends with its window, like a table that was dropped without a
// purge. Its files stay.
func TestCalledOffPurgeEnds(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	task, pointer := dropPurged(f, "t", registry.StateDropped)
	catalogkit.Tamper(f).Write(registry.Put(task.Key, task.State, []byte(`[]`)))
	if _, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	f.Clock.Advance(catalogkit.UndropWindow + time.Second)
	for _, err := range []error{f.PurgeAll(f.Ctx), f.EndWindows(f.Ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if records, err := f.Ledger.Get(f.Ctx, registry.PointerKey(pointer.ID), registry.LocationKey(pointer.Claims[0]), registry.TombstoneKey(pointer.Claims[0])); err != nil || records[0].Exists() || records[1].State == registry.StateOwner {
		t.Errorf("the pointer or its claim outlives the window (%v)", err)
	} else if left, err := registry.Decode[registry.Tombstone](records[2]); err != nil || left.How != registry.EndedWindow || !left.Lasting {
		t.Errorf("it leaves %+v (%v)", left, err)
	}
	if len(f.Present([]string{table.MetadataLocation})) != 1 {
		t.Error("the file is gone")
	}
	f.WantClean()
}

// The purge worker logs an unreadable task once, and counts it until it is gone.
func TestPurgeBesideUnreadable(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := catalogkit.New(t, func(c *catalog.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.Create("t")
	f.Create("u")
	dropPurged(f, "t", registry.StateDropped)
	damaged := registry.TaskKey(registry.ID{15: 1}) // sorts before all others
	blocker := abandon(f, "u")
	for _, key := range []registry.Key{damaged, registry.TaskKey(blocker.ID)} {
		catalogkit.Tamper(f).Write(registry.Put(key, registry.StateNone, []byte(`{"id":7}`)))
	}
	for range 3 {
		if err := f.PurgeAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := f.Purges.Stats(), (purge.Stats{Unfinished: 1, Blocked: 1}); got != want {
			t.Errorf("stats: got %+v, want %+v", got, want)
		}
	}
	if len(f.Present([]string{table.MetadataLocation})) > 0 {
		t.Error("the file of the table behind it is still there")
	}
	if said := logs.String(); strings.Count(said, "level=ERROR") != 1 || strings.Count(said, "key="+damaged.String()) != 1 || !strings.Contains(said, "moorage doctor forget") {
		t.Errorf("the log says %s", said)
	}
	if _, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := f.PurgeAll(f.Ctx); err != nil || f.Purges.Stats() != (purge.Stats{}) {
		t.Errorf("in the end: %+v (%v)", f.Purges.Stats(), err)
	}
}

// An unreadable blocker is listed with its transaction. The transaction can be retried and aborted
// as usual.
func TestUnreadableBlocker(t *testing.T) {
	t.Parallel()
	for storeName, open := range stores.Kinds() {
		t.Run(storeName, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, func(c *catalog.Config) {
				c.Store = catalogkit.ClockedStore{Store: open(t, newLockedRandom(5)), Now: c.Now}
			})
			f.Create("t")
			retried, aborted := abandon(f, "t"), abandon(f, "t")
			for _, id := range []registry.ID{retried.ID, aborted.ID} {
				catalogkit.Tamper(f).Write(registry.Put(registry.TaskKey(id), registry.StateBlocked, []byte(`{"id":7}`)))
			}
			found, _, err := f.Recovery().Unfinished(f.Ctx, "", 0)
			if err != nil || len(found) != 2 {
				t.Fatalf("listed %+v (%v)", found, err)
			}
			for _, transaction := range found {
				if transaction.Unreadable != nil || transaction.Blocker == nil || !strings.Contains(transaction.Blocker.Unreadable.Error(), "task/"+transaction.ID.String()) || len(transaction.Files) == 0 {
					t.Errorf("listed as %+v", transaction)
				}
			}
			wantOnlyBlocked(f)
			report, err := f.Check(f.Ctx)
			if err != nil || len(report.Problems) != 2 || strings.Count(strings.Join(report.Problems, "\n"), "cannot be read") != 2 {
				t.Errorf("check: %q (%v)", report.Problems, err)
			}
			if got, err := f.Recovery().Retry(f.Ctx, retried.ID.String()); err != nil || !got.Ended {
				t.Errorf("retried: %+v (%v)", got, err)
			}
			wantFiles(f, retried)
			got, err := f.Recovery().Abort(f.Ctx, aborted.ID.String())
			if err != nil || !got.Forgotten || !slices.Equal(got.Left, aborted.Surplus()) {
				t.Errorf("aborted: %+v (%v)", got, err)
			}
			wantFiles(f, aborted, aborted.Files[0])
			wantEnded(f)
			f.WantClean()
		})
	}
}
