package due_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog/gate"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/registry/pebble"
)

// pointers writes the pointers of count tables without documents, and returns their ids.
func (w *world) pointers(count int) []registry.ID {
	w.t.Helper()
	ids := make([]registry.ID, count)
	for i := 0; i < count; i += 1000 {
		var batch registry.Batch
		for n := i; n < min(i+1000, count); n++ {
			id, err := registry.NewID(w.random)
			must(w.t, err)
			ids[n] = id
			value, err := registry.Encode(registry.Pointer{
				ID: id, Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: fmt.Sprintf("t%d", n), TableUUID: id.String(),
			})
			must(w.t, err)
			batch.Writes = append(batch.Writes, registry.Put(registry.PointerKey(id), registry.StateLive, value))
		}
		_, err := w.store.Apply(w.ctx, batch)
		must(w.t, err)
	}
	return ids
}

// event writes a change record as a commit to a table does, but does not change the table.
func (w *world) event(id registry.ID, n int64) {
	w.t.Helper()
	commit, err := registry.NewID(w.random)
	must(w.t, err)
	item := registry.Item{
		Kind: registry.ItemTable, ID: id, Ident: ident("t"), UUID: id.String(), MetadataLocation: "file:///wh/m.json",
		Summary: &registry.Summary{Snapshots: 100 + n, FirstMS: w.clock.Now().UnixMilli(), Files: n, Deletes: -1, Bytes: -1},
	}
	change := registry.Change{
		ID: commit, Operation: string(gate.Commit), Ident: ident("t"), Principal: "ann", Time: w.clock.Now(),
		Items: []registry.Item{item},
	}
	_, err = w.store.Apply(w.ctx, registry.Batch{Change: &change})
	must(w.t, err)
}

// withoutAssignments returns calls without the ones for assignments, because the clock decides when
// those are renewed.
func withoutAssignments(calls []string) []string {
	return slices.DeleteFunc(calls, func(call string) bool { return strings.Contains(call, "assignment") })
}

// TestIdleTablesCostNothing: in rounds without changes, maintenance makes the same calls to the
// store with many tables as with none. All of these tables become due some day.
func TestIdleTablesCostNothing(t *testing.T) {
	t.Parallel()
	count := 3000
	if *longFlag {
		count = 1_000_000
	}
	var want []string
	for _, tables := range []int{0, count} {
		w := newWorld(t, inMemory)
		w.put(warehouse, policy.SnapshotManagement, nil)
		w.tend(w.node)
		for i, id := range w.pointers(tables) {
			w.event(id, int64(i))
		}
		w.tend(w.node)
		w.tend(w.node)
		if made := w.monitor.Stats().MadeDue + int64(count-tables); made < int64(count) {
			t.Fatalf("%d tables are due", made)
		}
		w.store.take()
		for range 5 {
			w.clock.Advance(time.Minute)
			must(t, w.monitor.RunOnce(w.ctx))
			must(t, w.planner.RunOnce(w.ctx))
		}
		calls := withoutAssignments(w.store.take())
		t.Logf("%d tables: %d calls in 5 rounds", tables, len(calls))
		if tables == 0 {
			want = calls
		} else if !slices.Equal(calls, want) {
			t.Errorf("with %d tables: %d calls, %q\nwith none: %d calls, %q", tables, len(calls), calls, len(want), want)
		}
	}
}

// overStore returns a world over a store with its own clock. A policy in it is enabled.
func overStore(t *testing.T, store registry.Store) *world {
	t.Helper()
	w := newWorld(t, func(testing.TB, *lockedRandom, *clock) registry.Store { return store })
	w.put(warehouse, policy.SnapshotManagement, nil)
	must(t, w.monitor.RunOnce(w.ctx))
	return w
}

func openPebble(t *testing.T) registry.Store {
	t.Helper()
	store, err := pebble.Open(t.TempDir(), pebble.Options{})
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// TestManyEvents: over Pebble, a change of a table causes no write of its own if the table's due
// time is already set.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	events, tables := 10_000, 500
	if *longFlag {
		events, tables = 500_000, 10_000
	}
	w := overStore(t, openPebble(t))
	ids := w.pointers(tables)
	var writers errgroup.Group
	writers.SetLimit(64) // this many writers share one sync
	for n := range events {
		writers.Go(func() error {
			w.event(ids[n%tables], int64(n))
			return nil
		})
	}
	must(t, writers.Wait())
	w.store.take()
	before := w.monitor.Stats()
	began := time.Now()
	must(t, w.monitor.RunOnce(w.ctx))
	took, stats := time.Since(began), w.monitor.Stats()
	applies := stats.Applies - before.Applies
	t.Logf("%d events of %d tables in %s, %.0f/s; %d Applies", events, tables, took, float64(events)/took.Seconds(), applies)
	if stats.Changes-before.Changes < int64(events) || stats.MadeDue-before.MadeDue != int64(tables) {
		t.Errorf("read %d changes, made %d due", stats.Changes-before.Changes, stats.MadeDue-before.MadeDue)
	}
	if float64(applies) > 0.01*float64(events) {
		t.Errorf("%d Applies for %d events", applies, events)
	}
	// Once a table's due time is set, the only write is that of the position.
	for n := range events / 100 {
		w.event(ids[n%tables], int64(n))
	}
	before = w.monitor.Stats()
	must(t, w.monitor.RunOnce(w.ctx))
	if made := w.monitor.Stats().MadeDue - before.MadeDue; made != 0 {
		t.Errorf("%d tables whose time stands were made due again", made)
	}
}

// TestRoundTrips: the calls to the store for a check for changes, for a fold of one new table, and
// for a due table. Calls for assignments are left out, because a node holds an assignment for a
// long time.
func TestRoundTrips(t *testing.T) { overStores(t, testRoundTrips) }

func testRoundTrips(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.store.take()
	must(t, w.monitor.RunOnce(w.ctx))
	fold := []string{
		"Time", // of the assignment
		"List maintenance-policy", "List maintenance-policy", "List maintenance-policy", "Get cursor",
		"Changes", "Get cursor", // the changes, and which of them were deleted
		"Get schedule", "Time", "Apply schedule due cursor", // due records
		"Time", "List cursor", // whether the clock has gone back, and walks
		"Apply cursor",
	}
	if calls := withoutAssignments(w.store.take()); !slices.Equal(calls, fold) {
		t.Errorf("a fold: %q", calls)
	}
	w.clock.Advance(2 * time.Hour)
	must(t, w.planner.RunOnce(w.ctx)) // this creates records that the policies need
	w.clock.Advance(2 * time.Hour)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	must(t, w.monitor.RunOnce(w.ctx))
	w.clock.Advance(2 * time.Hour)
	w.store.take()
	must(t, w.planner.RunOnce(w.ctx))
	var applies []string
	for _, call := range withoutAssignments(w.store.take()) {
		if strings.HasPrefix(call, "Apply") {
			applies = append(applies, call)
		}
	}
	if len(applies) > 2 {
		t.Errorf("a due table: %q", applies)
	}
}
