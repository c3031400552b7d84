package due_test

import (
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// TestChangedBehindACheck: a table opts out, leaves the namespace of the policy, or is paused right
// before the Apply that begins its job. Then no snapshot expires and no job begins.
func TestChangedBehindACheck(t *testing.T) {
	ns := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}
	other := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"other"}, Name: "t"}
	for name, of := range map[string]policy.Type{
		"snapshots": policy.SnapshotManagement, "orphans": policy.UnreferencedFileRemoval,
	} {
		for what, test := range map[string]struct {
			change func(w *world)
			begins bool
			ident  moorage.Identifier // the table's name afterwards
		}{
			"nothing": {func(*world) {}, true, ident("t")},
			"commit": {func(w *world) {
				w.commit("t", `{"action":"set-properties","updates":{"a":"b"}}`)
			}, true, ident("t")},
			"opt-out": {func(w *world) {
				w.commit("t", `{"action":"set-properties","updates":{"moorage.maintenance.`+name+`.enabled":"false"}}`)
			}, false, ident("t")},
			"pause": {func(w *world) {
				must(w.t, w.steering().Pause(w.ctx, w.ann().Scopes(), ident("t"), "test", "ann"))
			}, false, ident("t")},
			"rename": {func(w *world) { must(w.t, w.ann().RenameTable(w.ctx, ident("t"), other)) }, false, other},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				overStores(t, func(t *testing.T, w *world) {
					_, err := w.ann().CreateNamespace(w.ctx, "w", other.Namespace, nil)
					must(t, err)
					id, history := w.table("t", 1)
					for range 30 {
						w.clock.Advance(time.Second)
						w.commit("t", history.Append("main", 1)...)
					}
					settings := policy.Settings{policy.MaxSnapshotAgeHours: "2", policy.MinSnapshotsToExpire: "1"}
					if of == policy.UnreferencedFileRemoval {
						settings = nil
					}
					w.put(ns, of, settings)
					must(t, w.monitor.RunOnce(w.ctx))
					w.clock.Advance(100 * 24 * time.Hour)
					happened := false
					store := &meddler{Store: w.store, before: func() { happened = true; test.change(w) }}
					late := w.newNode(store, true)
					for range 3 { // the server must first have known the snapshots for a while
						must(t, late.planner.RunOnce(w.ctx))
						w.clock.Advance(2 * time.Hour)
					}
					under, _, err := w.jobs.List(w.ctx, id, "", 0)
					must(t, err)
					loaded, err := w.ann().LoadTable(w.ctx, test.ident)
					must(t, err)
					left := 0
					for range loaded.Document.Snapshots() {
						left++
					}
					if !happened || test.begins != (len(under) == 1) || !test.begins && left != 30 {
						t.Errorf("the change happened: %t; %d jobs, %d snapshots: %+v", happened, len(under), left, w.schedule(id))
					}
				})
			})
		}
	}
}

// TestPausedBehindARequest: an operator requests a job, and another one pauses the table right
// before the Apply that begins it. The first one is told, and no job begins.
func TestPausedBehindARequest(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]due.JobRequest{
		"snapshots": {Snapshots: &jobs.SnapshotSettings{Retention: metadata.Retention{MinSnapshots: 1}}},
		"orphans":   {Orphans: &jobs.OrphanSettings{OlderThan: 72 * time.Hour}},
	} {
		w := newWorld(t, inMemory)
		id, history := w.table("t", 1)
		for range 5 {
			w.commit("t", history.Append("main", 1)...)
		}
		w.clock.Advance(time.Hour)
		steering := w.steering()
		store := &meddler{
			Store:  w.store,
			on:     func(write registry.Write) bool { return write.Key.Table == registry.TableJob },
			before: func() { must(t, steering.Pause(w.ctx, w.ann().Scopes(), ident("t"), "test", "bob")) },
		}
		steering.Jobs = w.newNode(store, true).jobs
		_, err := steering.Begin(w.ctx, w.ann().Scopes(), ident("t"), asked)
		under, _, failed := w.jobs.List(w.ctx, id, "", 0)
		must(t, failed)
		if moorage.KindOf(err) != moorage.KindCommitFailed || store.before != nil || len(under) > 0 || w.snapshots("t") != 5 {
			t.Errorf("%s: %v, %d jobs, %d snapshots", name, err, len(under), w.snapshots("t"))
		}
	}
}

// TestOptOutBehindATrim: no snapshot of a table expires, but metadata files have left its log. The
// table opts out right before the Apply that announces them. Then they stay.
func TestOptOutBehindATrim(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		optOut func(w *world)
		files  int // that optOut writes
	}{
		"a property": {func(w *world) {
			w.commit("t", `{"action":"set-properties","updates":{"moorage.maintenance.snapshots.enabled":"false"}}`)
		}, 1},
		"a policy": {func(w *world) {
			must(t, w.policies.Put(w.ctx, w.ann().Scopes(), ident("t"), policy.Asked{
				Type: policy.SnapshotManagement, Status: policy.Disabled,
			}, nil))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory)
			w.former = 48 * time.Hour
			w.commitFormer("t")
			w.put(warehouse, policy.SnapshotManagement, policy.Settings{
				policy.MaxSnapshotAgeHours: "2", policy.MinSnapshotsToExpire: "1",
			})
			must(t, w.monitor.RunOnce(w.ctx))
			w.clock.Advance(5 * 24 * time.Hour)
			before := len(w.list())
			store := &meddler{
				Store:  w.store,
				on:     func(write registry.Write) bool { return write.Key.Table == registry.TablePointer },
				before: func() { row.optOut(w) },
			}
			late := w.newNode(store, true)
			for range 3 {
				must(t, late.planner.RunOnce(w.ctx))
				w.clock.Advance(2 * time.Hour)
			}
			if after := len(w.list()); store.before != nil || after != before+row.files {
				t.Errorf("the change happened: %t; %d files before, and %d after", store.before == nil, before, after)
			}
		})
	}
}

// commitFormer makes a table of two snapshots on two branches, and 200 further versions.
func (w *world) commitFormer(name string) registry.ID {
	w.t.Helper()
	id, history := w.table(name, 1)
	w.commit(name, history.Append("main", 1)...)
	w.commit(name, history.Append("other", 1)...) // each branch keeps one: nothing expires
	for i := range 200 {
		w.clock.Advance(time.Second)
		w.commit(name, fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, i))
	}
	return id
}
