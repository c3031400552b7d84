package due_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/policy"
	"moorage/testkit/registrytest"
)

// TestMonitorFallsBehind: a monitor that has fallen behind by 80 % of the retention checks all
// tables before changes are lost. It then continues at the head of the log. A monitor that is less
// far behind reads all changes.
func TestMonitorFallsBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		behind time.Duration
		passes bool
	}{"half": {6 * time.Hour, false}, "too far": {9 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory)
			id, history := w.table("t", 1)
			w.put(warehouse, policy.SnapshotManagement, nil)
			w.tend(w.node)
			others := w.pointers(10)
			for n := range 1500 {
				w.event(others[n%10], int64(n))
			}
			for range 30 {
				w.commit("t", history.Append("main", 1)...)
			}
			w.clock.Advance(tt.behind)
			made, err := due.NewMonitor(due.MonitorConfig{
				Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Alone: true, Now: w.clock.Now, Random: w.random}), Tables: w.catalog.As(moorage.System("expire")).Tables(), Policies: w.policies, Retention: 10 * time.Hour,
			})
			must(t, err)
			must(t, made.RunOnce(w.ctx))
			job, want := w.schedule(id).Job("snapshots"), due.ModeEvent
			if tt.passes {
				want = due.ModeWalk
			}
			if job.Due.IsZero() || job.Mode != want {
				t.Errorf("the schedule is %+v, want mode %s", job, want)
			}
			if read := made.Stats().Changes; (read < 1500) != tt.passes {
				t.Errorf("it has read %d changes", read)
			}
			w.wantAgreed("in the end")
		})
	}
}

// TestRuleThatComesBack: a table that forbids maintenance for a while keeps its schedule. If the
// last search for orphans was recent, there is no new one unless an operator requests it.
func TestRuleThatComesBack(t *testing.T) { overStores(t, testRuleThatComesBack) }

func testRuleThatComesBack(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	w.commit("t", history.Append("main", 1)...)
	w.put(warehouse, policy.UnreferencedFileRemoval, policy.Settings{policy.UnreferencedDays: "1", policy.NonCurrentDays: "1"})
	w.tend(w.node)
	w.clock.Advance(2 * time.Hour)
	w.tend(w.node)
	first := w.schedule(id).Job("orphans")
	if first.Last.IsZero() || !first.Due.IsZero() {
		t.Fatalf("orphans were not looked for: %+v", first)
	}
	w.commit("t", `{"action":"set-properties","updates":{"moorage.maintenance.orphans.enabled":"false"}}`)
	w.tend(w.node)
	w.clock.Advance(2 * time.Minute)
	w.tend(w.node)
	if job := w.schedule(id).Job("orphans"); !job.Due.IsZero() || !job.Last.Equal(first.Last) {
		t.Errorf("while the table says no its schedule is %+v", job)
	}
	w.commit("t", `{"action":"remove-properties","removals":["moorage.maintenance.orphans.enabled"]}`,
		`{"action":"set-properties","updates":{"write.target-file-size-bytes":"1000000"}}`) // makes it due
	w.tend(w.node)
	w.clock.Advance(2 * time.Minute)
	w.tend(w.node)
	want := first.Last.Add(7 * 24 * time.Hour).UTC().Truncate(time.Second)
	if job := w.schedule(id).Job("orphans"); !job.Last.Equal(first.Last) || !job.Due.Equal(want) {
		t.Errorf("once it says nothing its schedule is %+v, want due at %s", job, want)
	}
	w.clock.Advance(time.Minute)
	steering := &due.Control{
		Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs, Tables: w.catalog.As(moorage.System("expire")).Tables(),
	}
	must(t, steering.Run(w.ctx, w.ann().Scopes(), ident("t"), policy.Orphans))
	w.tend(w.node)
	if job := w.schedule(id).Job("orphans"); !job.Last.After(first.Last) {
		t.Errorf("an operator asked, and its schedule is %+v", job)
	}
}
