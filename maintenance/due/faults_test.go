package due_test

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/tablefiles"
)

var longFlag = flag.Bool("long", false, "all calls of the store, a million tables and as many events, not a part of them")

// wantAgreed fails the test unless the schedule and the due index agree.
func (w *world) wantAgreed(at string) {
	w.t.Helper()
	says := map[string]bool{}
	schedules, err := w.store.Store.List(w.ctx, registry.TableSchedule, "", "", 1000)
	must(w.t, err)
	for _, record := range schedules {
		schedule, err := registry.Decode[registry.Schedule](record)
		must(w.t, err)
		var pointer registry.ID
		must(w.t, pointer.UnmarshalText([]byte(record.Key.ID)))
		for _, job := range schedule.Jobs {
			if !job.Due.IsZero() {
				says[registry.DueKey(pointer, job.Kind, job.Due).ID] = true
			}
		}
	}
	dues, err := w.store.Store.List(w.ctx, registry.TableDue, "", "", 1000)
	must(w.t, err)
	for _, record := range dues {
		if _, _, _, err := registry.ParseDue(record.Key); err == nil && !says[record.Key.ID] {
			w.t.Errorf("%s: %s is due, and no schedule says so", at, record.Key)
		}
		delete(says, record.Key.ID)
	}
	if len(says) > 0 {
		w.t.Errorf("%s: schedule says %v, and the index does not", at, says)
	}
}

// crashSteps is the distance, for each store, between the calls that get a fault. With -every, each
// call gets one.
var crashSteps = map[string]int{"memory": 7, "postgres": 150}

// TestCrashEveryCall: in turn, calls of the store fail, lose their answer, or are the last call of
// a node. The schedule and the index still agree afterwards, and another node finishes the
// maintenance. Nothing is deleted too early.
func TestCrashEveryCall(t *testing.T) {
	t.Parallel()
	for store, open := range stores() {
		for name, action := range map[string]registrytest.Action{
			"fail": registrytest.Fail, "lose": registrytest.Lose, "die": registrytest.Die,
		} {
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				step := crashSteps[store]
				if scale.Every() {
					step = 1
				}
				for k, met := int(action)%step, true; met; k += step {
					met = false
					t.Run(strconv.Itoa(k), func(t *testing.T) { met = crash(t, open, k, action) }) // closes its store
				}
			})
		}
	}
}

// crash gives call k of a node a fault. It reports whether there was such a call.
func crash(t *testing.T, open newStore, k int, action registrytest.Action) (met bool) {
	t.Helper()
	w := newWorld(t, open)
	id, history := w.table("t", 1)
	for range 5 {
		w.clock.Advance(time.Second)
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "2", policy.MinSnapshotsToExpire: "1", policy.DeleteDelayHours: "1",
	})
	before := 1 << 30
	faulty := registrytest.Faulty(w.store, func(call int, _ string) registrytest.Action {
		if call == before+k {
			return action
		}
		return registrytest.Pass
	})
	first := w.newNode(faulty, false)
	before = faulty.Calls()
	round := func() {
		_ = first.monitor.RunOnce(w.ctx)
		_ = first.planner.RunOnce(w.ctx)
		_ = first.jobs.RunOnce(w.ctx)
	}
	round()
	w.wantAgreed("after the first round")
	if n := w.snapshots("t"); n != 5 {
		t.Fatalf("call %d: %d snapshots are left before their time", k, n)
	}
	w.clock.Advance(3 * time.Hour)
	round()
	w.wantAgreed("after the second round")
	w.clock.Advance(3 * time.Hour)
	round()
	second := w.newNode(w.store, false)
	for range 6 {
		w.clock.Advance(time.Hour) // the claims of the first node have ended
		w.tend(second)
	}
	w.wantAgreed("in the end")
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("call %d: %d snapshots are left: %+v", k, n, w.schedule(id))
	}
	if under, _, err := second.jobs.List(w.ctx, registry.ID{}, "", 0); err != nil || len(under) > 0 {
		t.Errorf("call %d: jobs are left: %+v, %v", k, under, err)
	}
	if met = faulty.Calls()-before > k; !met && k < 30 {
		t.Errorf("only %d calls were made", k)
	}
	return met && !t.Failed()
}

// TestLostLog: if changes were deleted before they were read, a walk over all tables finds the same
// tables.
func TestLostLog(t *testing.T) { overStores(t, testLostLog) }

func testLostLog(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	w.put(warehouse, policy.SnapshotManagement, nil)
	w.tend(w.node)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	head, err := registry.Head(w.ctx, w.store, 0)
	must(t, err)
	value, err := registry.Encode(registry.Horizon{Position: head})
	must(t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.HorizonKey(), registry.StateNone, value)}})
	must(t, err)
	w.tend(w.node)
	if job := w.schedule(id).Job("snapshots"); job.Due.IsZero() || job.Mode != due.ModeWalk {
		t.Errorf("the schedule is %+v", job)
	}
	w.wantAgreed("after the walk")
}

// forgetDue removes a table's schedule and its due records, as a bug might.
func (w *world) forgetDue(id registry.ID) {
	w.t.Helper()
	schedules, err := due.ReadSchedules(w.ctx, registrytest.Ledger(w.store), id)
	must(w.t, err)
	change := schedules[0].End()
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: change.Writes})
	must(w.t, err)
}

// TestMissedTable: the daily walk finds and counts a table that should be due but is not. An
// operator can also request a walk over all tables.
func TestMissedTable(t *testing.T) { overStores(t, testMissedTable) }

func testMissedTable(t *testing.T, w *world) {
	var ids []registry.ID
	for _, name := range []string{"a", "b", "c"} {
		id, history := w.table(name, 1)
		w.commit(name, history.Append("main", 1)...)
		w.commit(name, history.Append("main", 1)...)
		ids = append(ids, id)
	}
	w.put(warehouse, policy.SnapshotManagement, nil)
	w.tend(w.node)
	steering := &due.Control{Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs, Tables: w.catalog.Tables()}
	for _, id := range ids {
		w.forgetDue(id)
	}
	must(t, steering.Rescan(w.ctx, w.ann().Scopes(), ident("a")))
	w.tend(w.node)
	for i, want := range []bool{true, false, false} {
		if due := !w.schedule(ids[i]).Job("snapshots").Due.IsZero(); due != want {
			t.Errorf("after a rescan of the first table, table %d is due: %t", i, due)
		}
	}
	for range 80 { // the walk begins at a random place
		w.clock.Advance(25 * time.Hour)
		must(t, w.monitor.RunOnce(w.ctx))
	}
	for i, id := range ids {
		if w.schedule(id).Job("snapshots").Due.IsZero() {
			t.Errorf("table %d is not found", i)
		}
	}
	if missed := w.monitor.Stats().Missed; missed != 2 {
		t.Errorf("%d tables are counted, want 2", missed)
	}
}

// failing is a stand-in for jobs whose expiries fail.
type failing struct {
	due.Jobs
	err error
}

func (f *failing) Expire(ctx context.Context, pointer registry.ID, s jobs.SnapshotSettings, extra jobs.Extra) (
	jobs.Began, error) {
	if f.err != nil {
		return jobs.Began{}, f.err
	}
	return f.Jobs.Expire(ctx, pointer, s, extra)
}

// TestBlocker: a failure that would recur in every check blocks the kind after five times, until an
// operator unblocks it. A failure that may be temporary blocks it much later.
func TestBlocker(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err         error
		least, most int
	}{
		"lasts":    {&jobs.BlockedError{Why: "broken"}, 5, 5},
		"may pass": {ledger.StoreError("x", errors.New("away")), 15, 30},
	} {
		w, id, history := newGrownWorld(t)
		broken := w.fail(tt.err)
		tables := w.catalog.Tables()
		w.tend(w.node)
		w.clock.Advance(2 * time.Hour)
		looks := 0
		for ; looks < 40 && w.schedule(id).Job("snapshots").Held == ""; looks++ {
			w.clock.Advance(16 * time.Minute)
			w.tend(w.node)
			w.wantAgreed(name)
		}
		if looks < tt.least || looks > tt.most {
			t.Errorf("%s: blocked after %d looks", name, looks)
		}
		steering := &due.Control{Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs, Tables: tables}
		if blockers, _, err := steering.Blockers(w.ctx, "", 10); err != nil || len(blockers) != 1 || blockers[0].Table.Name != "t" {
			t.Errorf("%s: the blockers are %+v, %v", name, blockers, err)
		}
		broken.err = nil
		w.commit("t", history.Append("main", 1)...)
		w.clock.Advance(100 * time.Hour)
		w.tend(w.node)
		if n := w.snapshots("t"); n != 31 {
			t.Errorf("%s: a blocked table has %d snapshots", name, n)
		}
		must(t, steering.Run(w.ctx, w.ann().Scopes(), ident("t"), policy.Snapshots))
		w.tend(w.node)
		if n := w.snapshots("t"); n > 2 {
			t.Errorf("%s: a table that was unblocked has %d snapshots: %+v", name, n, w.schedule(id))
		}
	}
}

// newGrownWorld returns a world with a table of 30 snapshots that a policy expires after an hour.
func newGrownWorld(t *testing.T) (w *world, id registry.ID, history *tablefiles.History) {
	t.Helper()
	w = newWorld(t, inMemory)
	id, history = w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	return w, id, history
}

// fail gives w a planner whose expiries fail with err.
func (w *world) fail(err error) *failing {
	w.t.Helper()
	broken := &failing{Jobs: w.jobs, err: err}
	made, err := due.NewPlanner(due.PlannerConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Alone: true, Now: w.clock.Now, Random: w.random}), Jobs: broken, Tables: w.catalog.Tables(), Policies: w.policies,
	})
	must(w.t, err)
	w.planner = made
	return broken
}

// TestFailuresThatBlockNothing: temporary failures that are hours apart, because the server was
// off, do not count as failures in a row. Storage that is too busy does not count as a failure.
func TestFailuresThatBlockNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		pause time.Duration
	}{
		"hours apart": {ledger.StoreError("x", errors.New("away")), 5 * time.Hour},
		"slow down":   {moorage.E("x", "", moorage.KindUnavailable, storage.ErrSlowDown), 16 * time.Minute},
	} {
		w, id, _ := newGrownWorld(t)
		broken := w.fail(tt.err)
		w.tend(w.node)
		w.clock.Advance(2 * time.Hour)
		for n := range 40 {
			w.clock.Advance(tt.pause)
			w.tend(w.node)
			if job := w.schedule(id).Job("snapshots"); job.Held != "" || job.Laters > 1 || n > 0 && job.Error == "" {
				t.Fatalf("%s: after look %d the schedule is %+v", name, n, job)
			}
		}
		broken.err = nil
		w.clock.Advance(tt.pause)
		w.tend(w.node)
		if n := w.snapshots("t"); n != 1 {
			t.Errorf("%s: %d snapshots are left in the end", name, n)
		}
	}
}

// TestOrphansByPolicy: orphans are searched for periodically. Orphans from before the policy stay.
func TestOrphansByPolicy(t *testing.T) { overStores(t, testOrphansByPolicy) }

func testOrphansByPolicy(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	w.commit("t", history.Append("main", 1)...)
	old := "file:///wh/ns/t/data/old.parquet"
	loaded, err := w.ann().LoadTable(w.ctx, ident("t"))
	must(t, err)
	old, stray := loaded.Document.Location()+"/data/old.parquet", loaded.Document.Location()+"/data/stray.parquet"
	must(t, w.files.Create(w.ctx, old, []byte("x")))
	w.clock.Advance(time.Hour)
	w.put(warehouse, policy.UnreferencedFileRemoval, policy.Settings{policy.UnreferencedDays: "1", policy.NonCurrentDays: "1"})
	w.tend(w.node)
	w.clock.Advance(time.Minute)
	must(t, w.files.Create(w.ctx, stray, []byte("x")))
	for range 5 {
		w.clock.Advance(30 * time.Hour)
		w.commit("t", history.Append("main", 1)...)
		w.tend(w.node)
	}
	for range 12 {
		w.clock.Advance(30 * time.Hour)
		w.commit("t", history.Append("main", 1)...)
		w.tend(w.node)
	}
	if _, err := w.files.Stat(w.ctx, old); err != nil {
		t.Errorf("a file from before the policy: %v", err)
	}
	if _, err := w.files.Stat(w.ctx, stray); err == nil {
		runs, _ := w.jobs.Runs(w.ctx, id, 10)
		t.Errorf("an orphan is left: %+v, %+v", w.schedule(id), runs)
	}
}

// TestBlockedJob: a blocked job has a blocker until it is retried. After the retry, the table's
// maintenance continues as before.
func TestBlockedJob(t *testing.T) { overStores(t, testBlockedJob) }

func testBlockedJob(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	w.clock.Advance(2 * time.Hour)
	w.tend(w.node)
	steering := &due.Control{Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs, Tables: w.catalog.Tables()}
	want := func(at string, count int) {
		t.Helper()
		if blockers, _, err := steering.Blockers(w.ctx, "", 10); err != nil || len(blockers) != count {
			t.Errorf("%s: %+v, %v", at, blockers, err)
		}
	}
	under, _, err := w.jobs.List(w.ctx, id, "", 0)
	must(t, err)
	want("a job that waits", 0)
	must(t, w.jobs.Quarantine(w.ctx, under[0].ID, "to look", "ann"))
	want("in quarantine", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.clock.Advance(100 * time.Hour)
	w.tend(w.node)
	must(t, w.jobs.Retry(w.ctx, under[0].ID, jobs.Retrying{}))
	want("retried", 0)
	for range 4 {
		w.tend(w.node)
		w.clock.Advance(30 * time.Hour)
	}
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("after that the table has %d snapshots: %+v", n, w.schedule(id))
	}
	under, _, err = w.jobs.List(w.ctx, id, "", 0)
	must(t, err)
	for _, job := range under {
		must(t, w.jobs.Quarantine(w.ctx, job.ID, "to look", "ann"))
		must(t, w.jobs.Cancel(w.ctx, job.ID, "ann"))
	}
	want("cancelled", 0)
}

// TestNowTriesBlockedJobs: Run retries a table's blocked job. The blocker stays until the job is no
// longer blocked. A job in quarantine stays there.
func TestNowTriesBlockedJobs(t *testing.T) { overStores(t, testNowTriesBlockedJobs) }

func testNowTriesBlockedJobs(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	w.clock.Advance(2 * time.Hour)
	w.tend(w.node)
	steering := w.steering()
	state := func() registry.State {
		t.Helper()
		under, _, err := w.jobs.List(w.ctx, id, "", 0)
		must(t, err)
		blocked, err := w.store.Get(w.ctx, registry.DueBlockedKey(id, "snapshots"))
		must(t, err)
		if is := under[0].State == registry.StateBlocked; blocked[0].Exists() != is {
			t.Errorf("the job is %s, and there is a blocker: %t", under[0].State, blocked[0].Exists())
		}
		return under[0].State
	}
	before := state()
	w.blockJob(id, "the disk was full")
	w.clock.Advance(jobsSeen)
	w.tend(w.node) // the planner checks it too, and leaves it alone
	if is := state(); is != registry.StateBlocked {
		t.Fatalf("the job is %s", is)
	}
	must(t, steering.Run(w.ctx, w.ann().Scopes(), ident("t"), policy.Snapshots))
	if is := state(); is != before {
		t.Errorf("a job that is to be tried again is %s, want %s", is, before)
	}
	under, _, err := w.jobs.List(w.ctx, id, "", 0)
	must(t, err)
	must(t, w.jobs.Quarantine(w.ctx, under[0].ID, "to look", "bob"))
	err = steering.Run(w.ctx, w.ann().Scopes(), ident("t"), policy.Snapshots)
	if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.Contains(err.Error(), "bob") || state() != registry.StateBlocked {
		t.Errorf("a job in quarantine is %s: %v", state(), err)
	}
	must(t, w.jobs.Retry(w.ctx, under[0].ID, jobs.Retrying{}))
	for range 4 {
		w.tend(w.node)
		w.clock.Advance(30 * time.Hour)
	}
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("after that the table has %d snapshots: %+v", n, w.schedule(id))
	}
}

// jobsSeen is the time after which the planner checks a table again if its job has not ended.
const jobsSeen = 30 * time.Hour

// blockJob blocks a table's expiry job, as a failure would.
func (w *world) blockJob(id registry.ID, why string) {
	w.t.Helper()
	key := registry.JobKey(id, "snapshots")
	records, err := w.store.Get(w.ctx, key)
	must(w.t, err)
	job, err := registry.Decode[registry.Job](records[0])
	must(w.t, err)
	job.Before, job.LastError = records[0].State, why
	value, err := registry.Encode(job)
	must(w.t, err)
	blocker, err := registry.Encode(registry.Due{Reason: why, Since: w.clock.Now()})
	must(w.t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{
		registry.Put(key, registry.StateBlocked, value),
		registry.Put(registry.DueBlockedKey(id, "snapshots"), registry.StateNone, blocker),
	}})
	must(w.t, err)
}

func (w *world) steering() *due.Control {
	return &due.Control{
		Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs, Tables: w.catalog.Tables(),
	}
}
