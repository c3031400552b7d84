package retention_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
)

// A table's maintenance records are deleted at the end of its undrop window. The records of other
// tables stay.
func TestEndTakesMaintenance(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := map[string]registry.ID{}
	put := func(key registry.Key, state registry.State, value registry.Value) {
		t.Helper()
		encoded, err := registry.Encode(value)
		must(t, err)
		_, err = f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{registry.Put(key, state, encoded)}})
		must(t, err)
	}
	for _, name := range []string{"gone", "stays"} {
		ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
		_, err := f.catalog.CreateTable(f.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema)})
		must(t, err)
		id, err := f.catalog.Tables().Find(f.ctx, ident)
		must(t, err)
		ids[name] = id
		now := f.clock.Now()
		put(registry.ScheduleKey(id), registry.StateNone, registry.Schedule{Jobs: []registry.KindSchedule{
			{Kind: "compaction", Due: now}, {Kind: "orphans", Held: "blocked"},
		}})
		put(registry.DueKey(id, "compaction", now), registry.StateNone, registry.Due{})
		put(registry.DueBlockedKey(id, "orphans"), registry.StateNone, registry.Due{Reason: "broken"})
		put(registry.DueBlockedKey(id, "snapshots"), registry.StateNone, registry.Due{Reason: "broken"})
		put(registry.JobKey(id, "snapshots"), registry.StateBlocked, registry.Job{Kind: "snapshots", Pointer: id})
		for n := range 3 {
			put(registry.RunKey(id, now.Add(time.Duration(n)*time.Hour), registry.ID{byte(n)}), registry.StateNone, registry.Run{})
		}
		put(registry.MaintenancePolicyKey(registry.TableScope(id)), registry.StateNone, registry.MaintenancePolicy{})
	}
	// The schedule of a third table cannot be read. That does not keep any window from ending.
	damaged := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "damaged"}
	_, err := f.catalog.CreateTable(f.ctx, damaged, catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	id, err := f.catalog.Tables().Find(f.ctx, damaged)
	must(t, err)
	ids["damaged"] = id
	_, err = f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{
		registry.Put(registry.ScheduleKey(id), registry.StateNone, []byte(`{"jobs":7}`)),
	}})
	must(t, err)
	must(t, f.catalog.DropTable(f.ctx, damaged, catalog.DropOptions{}))
	left := func(id registry.ID) (keys []string) {
		t.Helper()
		for _, table := range []registry.Table{
			registry.TableSchedule, registry.TableDue, registry.TableJob, registry.TableRun, registry.TableMaintenancePolicy,
		} {
			records, err := f.store.List(f.ctx, table, "", "", 1000)
			must(t, err)
			for _, record := range records {
				if strings.Contains(record.Key.ID, id.String()) {
					keys = append(keys, record.Key.String())
				}
			}
		}
		return keys
	}
	all := len(left(ids["gone"]))
	gone := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "gone"}
	must(t, f.catalog.DropTable(f.ctx, gone, catalog.DropOptions{}))
	must(t, f.RunOnce(f.ctx))
	drop := registry.WindowKey(ids["gone"], f.clock.Now()).String()
	if keys := left(ids["gone"]); len(keys) != all+1 || !slices.Contains(keys, drop) {
		t.Errorf("%v is left of a table that may come back, want %d and %s", keys, all, drop)
	}
	f.clock.Advance(8 * 24 * time.Hour)
	must(t, f.RunOnce(f.ctx))
	if keys := left(ids["gone"]); len(keys) > 0 {
		t.Errorf("%v is left of a table that is gone", keys)
	}
	if keys := left(ids["damaged"]); len(keys) > 0 {
		t.Errorf("%v is left of a table whose schedule is damaged", keys)
	}
	if keys := left(ids["stays"]); len(keys) != all {
		t.Errorf("%v is left of another table, want %d", keys, all)
	}
}
