package due_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

var warehouse = moorage.Identifier{Warehouse: "w"}

// TestTableKeepsItselfInOrder: one policy is enough to expire a table's snapshots and delete their
// files, when they are due and not before.
func TestTableKeepsItselfInOrder(t *testing.T) { overStores(t, testTableKeepsItselfInOrder) }

func testTableKeepsItselfInOrder(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 30 {
		w.clock.Advance(time.Second)
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "2", policy.MinSnapshotsToExpire: "1", policy.DeleteDelayHours: "1",
	})
	w.tend(w.node)
	if due := w.schedule(id).Job("snapshots").Due; due.IsZero() || due.Before(w.clock.Now()) {
		t.Fatalf("the walk made it due at %s", due)
	}
	w.clock.Advance(time.Hour)
	w.tend(w.node)
	if n := w.snapshots("t"); n != 30 {
		t.Fatalf("%d snapshots are left before their time", n)
	}
	w.clock.Advance(time.Hour + time.Minute)
	w.tend(w.node)
	if n := w.snapshots("t"); n != 1 {
		t.Fatalf("%d snapshots are left after their time: %+v", n, w.schedule(id))
	}
	files := len(w.list())
	w.clock.Advance(2 * time.Hour)
	w.tend(w.node)
	if left := len(w.list()); left >= files {
		t.Errorf("there were %d files, and %d are left", files, left)
	}
	runs, err := w.jobs.Runs(w.ctx, id, 10)
	if err != nil || len(runs) != 1 || runs[0].Outcome != jobs.OutcomeDone || runs[0].Caller != "policy of warehouse w" || runs[0].Totals.Snapshots != 29 {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
	if schedule := w.schedule(id).Job("snapshots"); !schedule.Due.IsZero() || schedule.Outcome != "done" || schedule.Base.Snapshots != 1 {
		t.Errorf("in the end its schedule is %+v", schedule)
	}
	// The next commits make it due again.
	for range 3 {
		w.clock.Advance(time.Second)
		w.commit("t", history.Append("main", 1)...)
	}
	w.tend(w.node)
	if due := w.schedule(id).Job("snapshots").Due; due.IsZero() {
		t.Error("new snapshots do not make it due")
	}
}

// list returns the files of the warehouse.
func (w *world) list() (names []string) {
	w.t.Helper()
	page, err := w.files.List(w.ctx, "file:///wh", "", 10_000)
	must(w.t, err)
	for _, file := range page.Files {
		names = append(names, file.Location)
	}
	return names
}

// TestNothingHappensUnlessAsked: without a policy, maintenance never calls a store. Nothing happens
// if the policy is disabled, if the table forbids maintenance, or if the policy is for a different
// scope.
func TestNothingHappensUnlessAsked(t *testing.T) { overStores(t, testNothingHappensUnlessAsked) }

func testNothingHappensUnlessAsked(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 5 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.store.take()
	must(t, w.monitor.RunOnce(w.ctx))
	must(t, w.planner.RunOnce(w.ctx))
	if calls := w.store.take(); len(calls) > 0 {
		t.Errorf("without a policy: %q", calls)
	}
	must(t, w.jobs.RunOnce(w.ctx))
	for _, call := range w.store.take() {
		if strings.HasPrefix(call, "Apply") {
			t.Errorf("without a job: %q", call)
		}
	}
	ns := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"other"}}
	_, err := w.ann().CreateNamespace(w.ctx, "w", ns.Namespace, nil)
	must(t, err)
	w.put(ns, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "0"})
	w.clock.Advance(1000 * time.Hour)
	w.tend(w.node)
	w.tend(w.node)
	if schedule := w.schedule(id); len(schedule.Jobs) > 0 || w.snapshots("t") != 5 {
		t.Errorf("another namespace's policy: %+v, %d snapshots", schedule, w.snapshots("t"))
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.commit("t", `{"action":"set-properties","updates":{"gc.enabled":"false"}}`)
	for range 5 {
		w.tend(w.node)
		w.clock.Advance(100 * time.Hour)
	}
	if n := w.snapshots("t"); n != 5 {
		t.Errorf("a table that says no has %d snapshots", n)
	}
	if schedule := w.schedule(id).Job("snapshots"); !schedule.Due.IsZero() {
		t.Errorf("a table that says no is due: %+v", schedule)
	}
	w.commit("t", `{"action":"remove-properties","removals":["gc.enabled"]}`)
	for range 5 {
		w.tend(w.node)
		w.clock.Advance(100 * time.Hour)
	}
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("a table that says no no more has %d snapshots: %+v", n, w.schedule(id))
	}
}

// TestDroppedNamespaceTakesItsPolicyAlong: a new namespace with the same name does not inherit the
// policy.
func TestDroppedNamespaceTakesItsPolicyAlong(t *testing.T) {
	overStores(t, testDroppedNamespaceTakesItsPolicyAlong)
}

func testDroppedNamespaceTakesItsPolicyAlong(t *testing.T, w *world) {
	ns := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"brief"}}
	_, err := w.ann().CreateNamespace(w.ctx, "w", ns.Namespace, nil)
	must(t, err)
	w.put(ns, policy.SnapshotManagement, nil)
	must(t, w.ann().DropNamespace(w.ctx, "w", ns.Namespace))
	m, err := w.policies.Reload(w.ctx)
	must(t, err)
	if m.Asks() {
		t.Error("the policy outlives its namespace")
	}
}

// TestHotTableWritesNothing: once the due time is set, commits cost a read of the log, and no write
// except that of the position.
func TestHotTableWritesNothing(t *testing.T) { overStores(t, testHotTableWritesNothing) }

func testHotTableWritesNothing(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	w.put(warehouse, policy.SnapshotManagement, nil)
	w.tend(w.node)
	for range 3 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.tend(w.node)
	for range 5 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.store.take()
	must(t, w.monitor.RunOnce(w.ctx))
	calls := w.store.take()
	for _, call := range calls {
		if strings.HasPrefix(call, "Apply") && call != "Apply cursor" && !strings.Contains(call, "assignment") {
			t.Errorf("a hot table: %q of %q", call, calls)
		}
	}
}

// TestTwoMonitors: one of two nodes follows the log. Together, they make each table due once.
func TestTwoMonitors(t *testing.T) { overStores(t, testTwoMonitors) }

func testTwoMonitors(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	w.put(warehouse, policy.SnapshotManagement, nil)
	other := w.newNode(w.store, false)
	w.tend(w.node)
	for range 20 {
		w.commit("t", history.Append("main", 1)...)
		must(t, other.monitor.RunOnce(w.ctx))
		must(t, w.monitor.RunOnce(w.ctx))
	}
	if made := w.monitor.Stats().MadeDue + other.monitor.Stats().MadeDue; made != 1 {
		t.Errorf("the table was made due %d times", made)
	}
}

// meetingStore is the store of one of two nodes. The first job that the node begins waits until the
// other node begins one too. So neither node does all the work before the other one runs.
type meetingStore struct {
	registry.Store
	once        sync.Once
	here, there chan struct{} // closed when this node, or the other one, begins its first job
}

func (m *meetingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if slices.ContainsFunc(batch.Writes, func(write registry.Write) bool { return write.Key.Table == registry.TableJob }) {
		m.once.Do(func() {
			close(m.here)
			select {
			case <-m.there:
			case <-time.After(time.Minute): // the test fails
			}
		})
	}
	return m.Store.Apply(ctx, batch)
}

// TestNodesShareTheWork: two nodes check the tables of different shards at the same time, and each
// job is done once.
func TestNodesShareTheWork(t *testing.T) { overStores(t, testNodesShareTheWork) }

func testNodesShareTheWork(t *testing.T, w *world) {
	const tables = 24
	files := make(map[string]bool)
	for n := range tables {
		name := fmt.Sprint("t", n)
		_, history := w.table(name, uint64(n))
		for range 5 {
			w.commit(name, history.Append("main", 1)...)
		}
		maps.Copy(files, history.Reach(map[int64]bool{history.Heads["main"].ID: true}))
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "1", policy.MinSnapshotsToExpire: "1", policy.DeleteDelayHours: "1",
	})
	first, second := make(chan struct{}), make(chan struct{})
	nodes := []node{
		w.newNode(&meetingStore{Store: w.store, here: first, there: second}, false),
		w.newNode(&meetingStore{Store: w.store, here: second, there: first}, false),
	}
	rounds := func(count int) {
		for range count {
			var both errgroup.Group
			for _, n := range nodes {
				both.Go(func() error {
					return errors.Join(n.monitor.RunOnce(w.ctx), n.planner.RunOnce(w.ctx), n.jobs.RunOnce(w.ctx))
				})
			}
			must(t, both.Wait())
			w.clock.Advance(2 * time.Hour)
		}
	}
	rounds(6)
	w.wantAgreed("in the end")
	var began [2]int64
	for i, n := range nodes {
		began[i] = n.planner.Stats().Began[string(policy.Snapshots)]
	}
	t.Logf("the nodes began %d jobs", began)
	if began[0]+began[1] != tables || began[0] == 0 || began[1] == 0 {
		t.Errorf("the nodes began %d jobs, want %d together", began, tables)
	}
	runs, err := w.store.List(w.ctx, registry.TableRun, "", "", 1000)
	must(t, err)
	met := make(map[registry.ID]bool)
	for _, record := range runs {
		run, err := registry.Decode[registry.Run](record)
		must(t, err)
		if met[run.Job] || run.Outcome != jobs.OutcomeDone || run.Totals.Snapshots != 4 {
			t.Errorf("the job ran again, or otherwise: %+v", run)
		}
		met[run.Job] = true
	}
	if len(met) != tables {
		t.Errorf("%d jobs have ended, want %d", len(met), tables)
	}
	for n := range tables {
		if left := w.snapshots(fmt.Sprint("t", n)); left != 1 {
			t.Errorf("table %d has %d snapshots", n, left)
		}
	}
	for file := range files {
		if _, err := w.files.Stat(w.ctx, file); err != nil {
			t.Errorf("the live file %s: %v", file, err)
		}
	}
}

// TestPolicyWinsOverJob: if a policy changes between a check and its Apply, the job does not begin.
func TestPolicyWinsOverJob(t *testing.T) { overStores(t, testPolicyWinsOverJob) }

func testPolicyWinsOverJob(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	w.clock.Advance(2 * time.Hour)
	// Another node disables the policy. This node does not know that yet.
	other := w.newNode(w.store, false)
	w.tend(w.node)
	if n := w.snapshots("t"); n != 1 {
		t.Fatalf("the policy of this node expires nothing: %d, %+v", n, w.schedule(id))
	}
	for range 30 {
		w.clock.Advance(time.Second)
		w.commit("t", history.Append("main", 1)...)
	}
	w.tend(w.node)
	w.clock.Advance(200 * time.Hour)
	mine := w.policies
	w.policies = other.policies
	w.put(moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}, policy.SnapshotManagement,
		policy.Settings{policy.MaxSnapshotAgeHours: "9000"})
	w.policies = mine
	must(t, w.planner.RunOnce(w.ctx))
	if n := w.snapshots("t"); n != 31 {
		t.Errorf("an outdated policy has expired: %d snapshots", n)
	}
}

// TestPolicyThatANodeDoesNotKnowYet: a policy requires maintenance of a table again, but a node
// does not know that yet. The node does not treat the table as one that no policy covers.
func TestPolicyThatANodeDoesNotKnowYet(t *testing.T) {
	overStores(t, testPolicyThatANodeDoesNotKnowYet)
}

func testPolicyThatANodeDoesNotKnowYet(t *testing.T, w *world) {
	id, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	other := w.newNode(w.store, false)
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	must(t, w.policies.Put(w.ctx, w.ann().Scopes(), ident("t"), policy.Asked{
		Type: policy.SnapshotManagement, Status: policy.Disabled, By: "ann",
	}, nil))
	_, err := other.policies.Reload(w.ctx)
	must(t, err)
	must(t, w.policies.Delete(w.ctx, w.ann().Scopes(), ident("t"), policy.SnapshotManagement, nil))
	must(t, w.monitor.RunOnce(w.ctx))
	w.clock.Advance(3 * time.Hour)
	for range 2 {
		must(t, other.planner.RunOnce(w.ctx))
		w.clock.Advance(11 * time.Minute) // every so often, a round starts from the beginning
	}
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("%d snapshots are left; its schedule is %+v", n, w.schedule(id))
	}
}

// TestPausedScopeIsLeftAlone: no table in a paused scope is maintained until the scope is resumed.
func TestPausedScopeIsLeftAlone(t *testing.T) { overStores(t, testPausedScopeIsLeftAlone) }

func testPausedScopeIsLeftAlone(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	value, err := registry.Encode(registry.Pauses{Pauses: []registry.Pause{{Scope: registry.ScopeServer, Reason: "test"}}})
	must(t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
	must(t, err)
	for range 4 {
		w.tend(w.node)
		w.clock.Advance(time.Hour)
	}
	if n := w.snapshots("t"); n != 30 {
		t.Fatalf("a paused table has %d snapshots", n)
	}
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Delete(registry.PauseKey())}})
	must(t, err)
	w.tend(w.node)
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("a resumed table has %d snapshots", n)
	}
}

// TestSnapshotsThatLookOld: a client whose clock is slow writes snapshots that look old. They do
// not expire until the server has known them for an hour.
func TestSnapshotsThatLookOld(t *testing.T) { overStores(t, testSnapshotsThatLookOld) }

func testSnapshotsThatLookOld(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	w.clock.Advance(10 * 24 * time.Hour)
	for range 30 {
		w.commit("t", history.Append("main", 1)...) // their time is ten days ago
	}
	for range 5 {
		w.tend(w.node)
		w.clock.Advance(11 * time.Minute)
	}
	if n := w.snapshots("t"); n != 30 {
		t.Errorf("%d snapshots are left that are not an hour old", n)
	}
	w.clock.Advance(10 * time.Minute)
	w.tend(w.node)
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("%d snapshots are left after an hour", n)
	}
}

// TestClockInDoubt: no job begins while the clock is in doubt.
func TestClockInDoubt(t *testing.T) { overStores(t, testClockInDoubt) }

func testClockInDoubt(t *testing.T, w *world) {
	_, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	full := w.full("full")
	w.put(warehouse, policy.Compaction, policy.Settings{policy.SettleMinutes: "0"})
	w.tend(w.node)
	why := ""
	var err error
	w.planner, err = due.NewPlanner(due.PlannerConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Alone: true, Now: w.clock.Now, Random: w.random}), Jobs: w.jobs, Tables: w.catalog.Tables(), Policies: w.policies, Doubt: func(context.Context) (string, error) { return why, nil },
	})
	must(t, err)
	w.clock.Advance(10 * time.Minute)
	before, err := w.planner.Round(w.ctx)
	if must(t, err); before.DueFound["compaction"] != 1 || w.schedule(full).Job("compaction").Due.IsZero() {
		t.Errorf("found before the doubt: %+v", before)
	}
	why = "in doubt"
	w.clock.Advance(10 * time.Minute)
	found, err := w.planner.Round(w.ctx)
	if must(t, err); found.DueFound["compaction"] != 1 {
		t.Errorf("a round in doubt found %+v", found)
	}
	for range 3 {
		w.tend(w.node)
		w.clock.Advance(10 * time.Hour)
	}
	if n := w.snapshots("t"); n != 30 {
		t.Errorf("%d snapshots are left by a clock in doubt", n)
	}
	why = ""
	w.tend(w.node)
	if n := w.snapshots("t"); n != 1 {
		t.Errorf("%d snapshots are left by a clock that is believed", n)
	}
}
