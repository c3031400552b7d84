package due_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/testkit/registrytest"
	"moorage/testkit/tablefiles"
)

// doubting gives the maintenance of w a clock that is compared with other clocks. The function set
// moves only the store's clock.
func (w *world) doubting() (set func(time.Duration)) {
	w.t.Helper()
	began, ahead := w.clock.Now(), time.Duration(0)
	clock := jobs.NewClock(jobs.ClockConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Boot: func() time.Duration { return w.clock.Now().Sub(began) - ahead },
	})
	if why, err := clock.Doubt(w.ctx); err != nil || why != "" {
		w.t.Fatalf("at the start: %q, %v", why, err)
	}
	tables := w.catalog.As(moorage.System("expire")).Tables()
	var err error
	w.jobs, err = jobs.New(jobs.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Now: w.clock.Now, Random: w.random, Alone: true}), Tables: tables, Doubt: clock.Doubt,
	})
	must(w.t, err)
	w.planner, err = due.NewPlanner(due.PlannerConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Alone: true, Now: w.clock.Now, Random: w.random}), Jobs: w.jobs, Tables: tables, Policies: w.policies, Doubt: clock.Doubt,
	})
	must(w.t, err)
	return func(d time.Duration) {
		ahead += d
		w.clock.Advance(d)
	}
}

// TestClockThatJumps: the store's clock jumps ahead by a year, and a commit has its time from that
// clock. No snapshot is then taken for old, either by a policy or in a job begun by hand. The
// suspension lasts until an operator ends it.
func TestClockThatJumps(t *testing.T) { overStores(t, testClockThatJumps) }

func testClockThatJumps(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 29 {
		w.commit("t", history.Append("main", 1)...)
	}
	set := w.doubting()
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "24"})
	w.tend(w.node)
	w.clock.Advance(3 * time.Hour)
	w.tend(w.node)
	set(365 * 24 * time.Hour)
	w.commit("t", `{"action":"set-properties","updates":{"a":"b"}}`)
	for range 3 {
		w.tend(w.node)
		w.clock.Advance(2 * time.Hour)
	}
	if n := w.snapshots("t"); n != 29 {
		t.Errorf("%d snapshots are left that are a few hours old", n)
	}
	_, err := w.jobs.Expire(w.ctx, id, jobs.DefaultSnapshots(), nil)
	if moorage.KindOf(err) != moorage.KindUnavailable || !strings.Contains(err.Error(), "set 8760h0m0s ahead") {
		t.Errorf("by hand: %v", err)
	}
	must(t, w.steering().Resume(w.ctx, w.ann().Scopes(), moorage.Identifier{}))
	for range 3 {
		w.tend(w.node)
		w.clock.Advance(2 * time.Hour)
	}
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("%d snapshots are left after an operator's word", n)
	}
}

// TestSnapshotAhead: a table with a snapshot dated in the future waits and reports the reason. It
// does not hold up other tables.
func TestSnapshotAhead(t *testing.T) { overStores(t, testSnapshotAhead) }

func testSnapshotAhead(t *testing.T, w *world) {
	_, other := w.table("other", 2)
	for range 30 {
		w.commit("other", other.Append("main", 1)...)
	}
	id, history := w.table("t", 1)
	for range 29 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.clock.Advance(5 * time.Hour)
	w.commit("t", history.Step((5 * time.Hour).Milliseconds())...)
	w.clock.Advance(-3 * time.Hour)
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	tend := func(hours int) {
		for range hours {
			w.tend(w.node)
			w.clock.Advance(time.Hour)
		}
	}
	tend(2)
	if n, others := w.snapshots("t"), w.snapshots("other"); n != 30 || others != 1 {
		t.Errorf("%d snapshots of the table are left, %d of the other", n, others)
	}
	if job := w.schedule(id).Job("snapshots"); !strings.Contains(job.Error, "ahead of the store's clock") || job.Due.IsZero() {
		t.Errorf("the table says %+v", job)
	}
	tend(6)
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("%d snapshots of the table are left later", n)
	}
}

// TestCareOfTheFuture: the store's clock is a year ahead for a while. When the clock is right
// again, maintenance continues without another commit. That holds for tables that were changed in
// that time, and for jobs that wait.
func TestCareOfTheFuture(t *testing.T) { overStores(t, testCareOfTheFuture) }

func testCareOfTheFuture(t *testing.T, w *world) {
	const year, names = 365 * 24 * time.Hour, "abc"
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "24", policy.DeleteDelayHours: "24",
	})
	w.put(warehouse, policy.UnreferencedFileRemoval, policy.Settings{})
	w.tend(w.node)
	histories := make(map[string]*tablefiles.History)
	ids := make(map[string]registry.ID)
	fill := func(name string) {
		ids[name], histories[name] = w.table(name, 1)
		for range 20 {
			w.commit(name, histories[name].Append("main", 1)...)
		}
	}
	fill("a")
	fill("b")
	w.tend(w.node)
	w.clock.Advance(26 * time.Hour)
	w.tend(w.node) // the jobs of both tables wait
	w.clock.Advance(year)
	w.commit("a", `{"action":"set-properties","updates":{"write.target-file-size-bytes":"1"}}`)
	fill("c") // changed only while the clock was ahead
	for range 3 {
		w.tend(w.node)
		w.clock.Advance(2 * time.Hour)
	}
	w.clock.Advance(-year - 6*time.Hour)
	for range 5 * 24 {
		w.tend(w.node)
		w.clock.Advance(time.Hour)
	}
	for name := range strings.SplitSeq(names, "") {
		schedule := w.schedule(ids[name])
		for _, job := range schedule.Jobs {
			if job.Due.Sub(w.clock.Now()) > 60*24*time.Hour || job.Last.After(w.clock.Now()) {
				t.Errorf("%s rests: %+v", name, job)
			}
		}
		jobs, _, err := w.jobs.List(w.ctx, ids[name], "", 0)
		must(t, err)
		for _, job := range jobs {
			if job.NotBefore.Sub(w.clock.Now()) > 60*24*time.Hour {
				t.Errorf("a job of %s rests until %s", name, job.NotBefore)
			}
		}
	}
	if n := w.snapshots("c"); n != 20 { // they are dated in the future
		t.Errorf("%d snapshots of c are left", n)
	}
	w.wantAgreed("in the end")
}
