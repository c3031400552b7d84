package due_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/maintenance/policy"
	"moorage/registry"
	memorystorage "moorage/storage/memory"
)

// full makes a table of six files, which is due for compaction if a policy requires that.
func (w *world) full(name string) registry.ID {
	w.t.Helper()
	id, _ := w.table(name, 7)
	w.commit(name, fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":%d,`+
		`"manifest-list":"file:///wh/ns/%s/metadata/l.avro","summary":{"operation":"append","total-data-files":"6"},"schema-id":0}}`,
		w.clock.Now().UnixMilli(), name), `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}`)
	return id
}

// TestWorkNobodyAsksFor: work for programs outside the server is no longer due once its table is
// gone, or once no policy requires the work. It then does not count as overdue.
func TestWorkNobodyAsksFor(t *testing.T) { overStores(t, testWorkNobodyAsksFor) }

func testWorkNobodyAsksFor(t *testing.T, w *world) {
	w.put(warehouse, policy.SnapshotManagement, nil)
	w.put(warehouse, policy.Compaction, policy.Settings{policy.SettleMinutes: "0"})
	w.tend(w.node)
	ids := []registry.ID{w.full("dropped"), w.full("disabled"), w.full("stays")}
	must(t, w.monitor.RunOnce(w.ctx))
	w.clock.Advance(48 * time.Hour)
	isDue := func(id registry.ID) bool { return !w.schedule(id).Job("compaction").Due.IsZero() }
	want := func(at string, due ...bool) {
		t.Helper()
		w.clock.Advance(11 * time.Minute) // every so often, a round starts from the beginning
		stats, err := w.planner.Round(w.ctx)
		must(t, err)
		count := int64(0)
		for i, id := range ids {
			if isDue(id) != due[i] {
				t.Errorf("%s: table %d is due: %t", at, i, !due[i])
			}
			if due[i] {
				count++
			}
		}
		if stats.DueFound["compaction"] != count || count == 0 && stats.Overdue > time.Minute {
			t.Errorf("%s: the round found %v, overdue for %s", at, stats.DueFound, stats.Overdue)
		}
		w.wantAgreed(at)
	}
	want("before", true, true, true)
	must(t, w.ann().DropTable(w.ctx, ident("dropped"), catalog.DropOptions{}))
	must(t, w.policies.Put(w.ctx, w.ann().Scopes(), ident("disabled"), policy.Asked{
		Type: policy.Compaction, Status: policy.Disabled, By: "ann",
	}, nil))
	want("dropped, and disabled on one", false, false, true)
	must(t, w.policies.Delete(w.ctx, w.ann().Scopes(), warehouse, policy.Compaction, nil))
	want("nobody asks", false, false, false)
	w.put(moorage.Identifier{Warehouse: "w"}, policy.Compaction, policy.Settings{policy.SettleMinutes: "0"})
	must(t, w.policies.Delete(w.ctx, w.ann().Scopes(), ident("disabled"), policy.Compaction, nil))
	must(t, w.monitor.RunOnce(w.ctx))
	w.clock.Advance(2 * time.Minute)
	want("asked for again", false, true, true)
}

// meddler is a store in which something happens right before a due record is deleted, or before the
// first write that on selects.
type meddler struct {
	registry.Store
	on     func(registry.Write) bool
	before func() // nil if nothing happens
}

func (m *meddler) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	deletes := func(write registry.Write) bool { return write.Key.Table == registry.TableDue && write.Delete }
	if m.on != nil {
		deletes = m.on
	}
	if before := m.before; before != nil && slices.ContainsFunc(batch.Writes, deletes) {
		m.before = nil
		before()
	}
	return m.Store.Apply(ctx, batch)
}

// TestAskedForAgainBehindALook: no policy requires a table's work any more, or the table forbids
// it. A policy requires the work again right before the due record would be removed. Then the table
// stays due. The only policies belong to a warehouse.
func TestAskedForAgainBehindALook(t *testing.T) {
	type policyOf struct {
		of       policy.Type
		settings policy.Settings
	}
	snapshots := policyOf{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"}}
	compaction := policyOf{policy.Compaction, policy.Settings{policy.SettleMinutes: "0"}}
	ofWarehouse := moorage.Identifier{Warehouse: "w"}
	for name, test := range map[string]struct {
		policyOf
		leave, again func(w *world)
	}{
		"snapshots": {snapshots, func(w *world) { w.forget(ofWarehouse, snapshots.of) },
			func(w *world) { w.put(ofWarehouse, snapshots.of, snapshots.settings) }},
		"compaction": {compaction, func(w *world) { w.forget(ofWarehouse, compaction.of) },
			func(w *world) { w.put(ofWarehouse, compaction.of, compaction.settings) }},
		"hold": {snapshots,
			func(w *world) {
				w.commit("t", `{"action":"set-properties","updates":{"moorage.maintenance.hold":"true"}}`)
			},
			func(w *world) {
				w.commit("t", `{"action":"remove-properties","removals":["moorage.maintenance.hold"]}`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			overStores(t, func(t *testing.T, w *world) {
				kind := string(test.of.Kind())
				w.put(ofWarehouse, test.of, test.settings)
				_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "other", Location: "file:///other"})
				must(t, err)
				w.put(moorage.Identifier{Warehouse: "other"}, test.of, test.settings) // some policy is enabled
				id := w.full("t")
				for n := range 30 {
					w.commit("t", fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"parent-snapshot-id":%d,"sequence-number":%d,`+
						`"timestamp-ms":%d,"manifest-list":"file:///wh/ns/t/metadata/l.avro","summary":{"operation":"append","total-data-files":"6"},"schema-id":0}}`,
						n+2, n+1, n+2, w.clock.Now().UnixMilli()))
				}
				must(t, w.monitor.RunOnce(w.ctx))
				w.clock.Advance(3 * time.Hour)
				before := w.schedule(id).Job(kind).Due
				test.leave(w)
				happened := false
				store := &meddler{Store: w.store, before: func() {
					happened = true
					test.again(w)
					must(t, w.monitor.RunOnce(w.ctx))
				}}
				other := w.newNode(store, false)
				_, err = other.policies.Reload(w.ctx)
				must(t, err)
				must(t, other.planner.RunOnce(w.ctx))
				if after := w.schedule(id).Job(kind).Due; before.IsZero() || !happened || after.IsZero() {
					t.Errorf("due %s before, %s after; somebody asked again: %t", before, after, happened)
				}
				w.wantAgreed("in the end")
			})
		})
	}
}

// forget removes a scope's policy of one type.
func (w *world) forget(ident moorage.Identifier, of policy.Type) {
	w.t.Helper()
	must(w.t, w.policies.Delete(w.ctx, w.ann().Scopes(), ident, of, nil))
}

// TestUnsafePolicies: a policy that was accepted as unsafe stays marked as unsafe.
func TestUnsafePolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	id, _ := w.table("t", 1)
	const of = policy.UnreferencedFileRemoval
	isUnsafe := func(at string, want bool) {
		t.Helper()
		matcher, err := w.policies.Reload(w.ctx)
		must(t, err)
		if got := policy.Effective(matcher.Chain(id, ident("t")), nil)[of].Unsafe; got != want {
			t.Errorf("%s: unsafe is %t", at, got)
		}
	}
	asked := policy.Asked{Type: of, Status: policy.Enabled, By: "ann"}
	must(t, w.policies.Put(w.ctx, w.ann().Scopes(), warehouse, asked, nil))
	isUnsafe("safe", false)
	asked.Unsafe = true
	must(t, w.policies.Put(w.ctx, w.ann().Scopes(), warehouse, asked, nil))
	isUnsafe("unsafe, with settings that are safe", true)
}

// TestNamesWhileStorageIsAway: blocked work and running jobs are listed with the names of their
// tables even while no document can be read.
func TestNamesWhileStorageIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	id, history := w.table("t", 1)
	for range 30 {
		w.commit("t", history.Append("main", 1)...)
	}
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	w.tend(w.node)
	w.clock.Advance(2 * time.Hour)
	w.tend(w.node)
	w.blockJob(id, "the disk was full")
	w.files = memorystorage.New() // without any file
	w.node = w.newNode(w.store, true)
	blockers, _, err := w.steering().Blockers(w.ctx, "", 10)
	if err != nil || len(blockers) != 1 || blockers[0].Table.Name != "t" {
		t.Errorf("the blockers are %+v, %v", blockers, err)
	}
	under, _, err := w.jobs.List(w.ctx, registry.ID{}, "", 0)
	if err != nil || len(under) != 1 || under[0].Table.Name != "t" {
		t.Errorf("the jobs are %+v, %v", under, err)
	}
}
