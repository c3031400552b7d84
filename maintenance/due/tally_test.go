package due_test

import (
	"testing"
	"time"

	"moorage/catalog"
	"moorage/maintenance/policy"
)

// TestOverdueBetweenFullRounds: records that have been due for a long time count in every round,
// not only in full rounds. That includes records that became old after the last full round. A
// record whose table was checked no longer counts.
func TestOverdueBetweenFullRounds(t *testing.T) { overStores(t, testOverdueBetweenFullRounds) }

func testOverdueBetweenFullRounds(t *testing.T, w *world) {
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	_, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	must(t, w.monitor.RunOnce(w.ctx))
	w.put(warehouse, policy.Compaction, policy.Settings{policy.SettleMinutes: "0"})
	w.full("first")
	must(t, w.monitor.RunOnce(w.ctx))
	began := w.clock.Now()
	round := func(at string, after time.Duration, compaction, snapshots int64, first time.Time) {
		t.Helper()
		w.clock.Advance(after)
		stats, err := w.planner.Round(w.ctx)
		must(t, err)
		found, overdue := stats.DueFound, w.clock.Now().Sub(first)
		if found["compaction"] != compaction || found["snapshots"] != snapshots ||
			(stats.Overdue-overdue).Abs() > time.Minute {
			t.Errorf("%s: %v are due for %s, want %d and %d for %s", at, found, stats.Overdue, compaction, snapshots, overdue)
		}
	}
	round("full, two days late", 48*time.Hour, 1, 1, began)
	round("and a moment later", 15*time.Second, 1, 0, began)
	must(t, w.jobs.RunOnce(w.ctx))
	w.full("second")
	must(t, w.monitor.RunOnce(w.ctx))
	second := w.clock.Now()
	for range 4 {
		round("with another one", 15*time.Second, 2, 0, began)
	}
	must(t, w.policies.Delete(w.ctx, w.ann().Scopes(), warehouse, policy.SnapshotManagement, nil))
	must(t, w.monitor.RunOnce(w.ctx))
	round("full, an hour later", 55*time.Minute, 2, 0, began)
	for range 9 { // the second record becomes too old for ordinary rounds
		round("in the minutes after it", time.Minute, 2, 0, began)
	}
	must(t, w.ann().DropTable(w.ctx, ident("first"), catalog.DropOptions{}))
	round("full, without the first", 2*time.Minute, 1, 0, second)
	round("and a moment later", 15*time.Second, 1, 0, second)
}
