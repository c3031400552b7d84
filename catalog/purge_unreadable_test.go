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
)

// dropPurged drops a table with a purge. It returns its task and the pointer, whose state it sets:
// it is marked as in the middle of the purge if state says so.
func (f *fixture) dropPurged(name string, state registry.State) (task registry.Record, pointer registry.Pointer) {
	f.t.Helper()
	if err := f.DropTable(f.ctx, ident(name), catalog.DropOptions{Purge: true}); err != nil {
		f.t.Fatal(err)
	}
	records, err := f.store.List(f.ctx, registry.TablePointer, "", "", registry.ListLimitMax)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, record := range records {
		value, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			f.t.Fatal(err)
		}
		if value.Name == name && !value.Task.IsZero() {
			pointer = value
			tampering{f}.put(record.Key, state, value)
		}
	}
	tasks, err := f.ledger.Get(f.ctx, registry.TaskKey(pointer.Task))
	if err != nil || !tasks[0].Exists() {
		f.t.Fatalf("no task for %s (%v)", name, err)
	}
	return tasks[0], pointer
}

// taskDamages returns what may stand in the record of a task so that it cannot be read.
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

// wantOnlyBlocked fails the test unless the ids in want are those of all that was given up. It
// reads pages of one.
func (f *fixture) wantOnlyBlocked(want ...string) []purge.Blocked {
	f.t.Helper()
	var all []purge.Blocked
	for after := ""; ; {
		purges, next, err := newPurger(f.t, f.instance).Blocked(f.ctx, after, 1)
		if err != nil || len(purges) > 1 {
			f.t.Fatalf("a page of one: %+v (%v)", purges, err)
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
		f.t.Errorf("listed %q, want %q", ids, want)
	}
	return all
}

// Operators see a task that cannot be read, and what comes behind it. It is neither tried again nor
// aborted: the last resort removes it. Then the files of its table stay, and so does the table for
// its window, if the purge had not begun.
func TestUnreadableTask(t *testing.T) {
	t.Parallel()
	for storeName, open := range anyStores() {
		for damageName := range taskDamages(t, registry.ID{1}) {
			if storeName != "memory" && damageName != "of another type" {
				continue // a store does not look into values
			}
			t.Run(storeName+"/"+damageName, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, func(c *catalog.Config) { c.Store = clockedStore{open(t, newLockedRandom(3)), c.Now} })
				dropped, purging := f.create("dropped"), f.create("purging")
				droppedTask, droppedPointer := f.dropPurged("dropped", registry.StateDropped)
				purgingTask, purgingPointer := f.dropPurged("purging", registry.StatePurging)
				orphan := registry.ID{9}
				ids := []string{droppedTask.Key.ID, purgingTask.Key.ID, orphan.String()}
				for _, id := range []registry.ID{droppedPointer.Task, purgingPointer.Task, orphan} {
					tampering{f}.write(taskDamages(t, id)[damageName])
				}

				for _, purge := range f.wantOnlyBlocked(ids...) {
					if purge.Unreadable == nil || !strings.Contains(purge.Unreadable.Error(), "task/"+purge.ID) || purge.Attempts != 0 || purge.LastError != "" {
						t.Errorf("listed as %+v", purge)
					}
					_, err := f.recovery().Retry(f.ctx, purge.ID)
					wantKind(t, err, moorage.KindUnprocessable)
					_, err = f.recovery().Abort(f.ctx, purge.ID)
					wantKind(t, err, moorage.KindUnprocessable)
				}
				report, err := f.Check(f.ctx)
				problems := strings.Join(report.Problems, "\n")
				if err != nil || len(report.Problems) != 3 || strings.Count(problems, "cannot be read") != 3 {
					t.Errorf("check: %q (%v)", report.Problems, err)
				}
				for _, owner := range []string{"the purge of table w.ns.dropped", "the purge of table w.ns.purging", "no dropped table awaits it"} {
					if !strings.Contains(problems, owner) {
						t.Errorf("check does not say %q:\n%s", owner, problems)
					}
				}
				if err := f.purgeAll(f.ctx); err != nil {
					t.Error(err)
				}

				if off, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil || off.Purges != 2 {
					t.Errorf("cancelled %+v (%v)", off, err)
				}
				f.wantOnlyBlocked()
				f.wantEnded()
				f.wantClean()
				if files := []string{dropped.MetadataLocation, purging.MetadataLocation}; len(f.present(files)) != len(files) {
					t.Error("files are gone of a purge that was called off")
				}
				f.wantCalledOff(dropped, purging)
			})
		}
	}
}

// wantCalledOff fails the test unless the dropped table comes back as itself. The one whose purge
// had begun must not. What is left of it can be a new table when its window is over.
func (f *fixture) wantCalledOff(dropped, purging *catalog.Table) {
	f.t.Helper()
	back, err := f.RegisterTable(f.ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
	if err != nil || back.PointerID() != dropped.PointerID() {
		f.t.Errorf("the table does not come back: %v", err)
	}
	_, err = f.RegisterTable(f.ctx, ident("anew"), catalog.RegisterRequest{MetadataLocation: purging.MetadataLocation})
	wantKind(f.t, err, moorage.KindAlreadyExists)
	f.wantClean()
	f.clock.Advance(undropWindow + time.Second)
	if err := f.endWindows(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	anew, err := f.RegisterTable(f.ctx, ident("anew"), catalog.RegisterRequest{MetadataLocation: purging.MetadataLocation})
	if err != nil || anew.PointerID() == purging.PointerID() {
		f.t.Errorf("what is left of the other cannot be registered as a new table: %v", err)
	}
	f.wantClean()
}

// A table whose purge was called off ends with its window, like one that was dropped without a
// purge. Its files stay.
func TestCalledOffPurgeEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	task, pointer := f.dropPurged("t", registry.StateDropped)
	tampering{f}.write(registry.Put(task.Key, task.State, []byte(`[]`)))
	if _, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(undropWindow + time.Second)
	for _, err := range []error{f.purgeAll(f.ctx), f.endWindows(f.ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if records, err := f.ledger.Get(f.ctx, registry.PointerKey(pointer.ID), registry.LocationKey(pointer.Claims[0]), registry.TombstoneKey(pointer.Claims[0])); err != nil || records[0].Exists() || records[1].State == registry.StateOwner {
		t.Errorf("the pointer or its claim outlives the window (%v)", err)
	} else if left, err := registry.Decode[registry.Tombstone](records[2]); err != nil || left.How != registry.EndedWindow || !left.Lasting {
		t.Errorf("it leaves %+v (%v)", left, err)
	}
	if len(f.present([]string{table.MetadataLocation})) != 1 {
		t.Error("the file is gone")
	}
	f.wantClean()
}

// The purge worker tells of what it cannot read once, and counts it until it is gone.
func TestPurgeBesideUnreadable(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, func(c *catalog.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.create("t")
	f.create("u")
	f.dropPurged("t", registry.StateDropped)
	damaged := registry.TaskKey(registry.ID{15: 1}) // the first of all
	blocker := f.abandon("u")
	for _, key := range []registry.Key{damaged, registry.TaskKey(blocker.ID)} {
		tampering{f}.write(registry.Put(key, registry.StateNone, []byte(`{"id":7}`)))
	}
	for range 3 {
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := f.purges.Stats(), (purge.Stats{Unfinished: 1, Blocked: 1}); got != want {
			t.Errorf("stats: got %+v, want %+v", got, want)
		}
	}
	if len(f.present([]string{table.MetadataLocation})) > 0 {
		t.Error("the file of the table behind it is still there")
	}
	if said := logs.String(); strings.Count(said, "level=ERROR") != 1 || strings.Count(said, "key="+damaged.String()) != 1 || !strings.Contains(said, "moorage doctor forget") {
		t.Errorf("the log says %s", said)
	}
	if _, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := f.purgeAll(f.ctx); err != nil || f.purges.Stats() != (purge.Stats{}) {
		t.Errorf("in the end: %+v (%v)", f.purges.Stats(), err)
	}
}

// A blocker that cannot be read is listed with its transaction. The transaction can be tried again
// and aborted as usual.
func TestUnreadableBlocker(t *testing.T) {
	t.Parallel()
	for storeName, open := range anyStores() {
		t.Run(storeName, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *catalog.Config) { c.Store = clockedStore{open(t, newLockedRandom(5)), c.Now} })
			f.create("t")
			retried, aborted := f.abandon("t"), f.abandon("t")
			for _, id := range []registry.ID{retried.ID, aborted.ID} {
				tampering{f}.write(registry.Put(registry.TaskKey(id), registry.StateBlocked, []byte(`{"id":7}`)))
			}
			found, _, err := f.recovery().Unfinished(f.ctx, "", 0)
			if err != nil || len(found) != 2 {
				t.Fatalf("listed %+v (%v)", found, err)
			}
			for _, transaction := range found {
				if transaction.Unreadable != nil || transaction.Blocker == nil || !strings.Contains(transaction.Blocker.Unreadable.Error(), "task/"+transaction.ID.String()) || len(transaction.Files) == 0 {
					t.Errorf("listed as %+v", transaction)
				}
			}
			f.wantOnlyBlocked()
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != 2 || strings.Count(strings.Join(report.Problems, "\n"), "cannot be read") != 2 {
				t.Errorf("check: %q (%v)", report.Problems, err)
			}
			if got, err := f.recovery().Retry(f.ctx, retried.ID.String()); err != nil || !got.Ended {
				t.Errorf("retried: %+v (%v)", got, err)
			}
			f.wantFiles(retried)
			got, err := f.recovery().Abort(f.ctx, aborted.ID.String())
			if err != nil || !got.Forgotten || !slices.Equal(got.Left, aborted.Surplus()) {
				t.Errorf("aborted: %+v (%v)", got, err)
			}
			f.wantFiles(aborted, aborted.Files[0])
			f.wantEnded()
			f.wantClean()
		})
	}
}
