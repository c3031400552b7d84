package retention_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/maintenance/retention"
	"moorage/registry"
)

// TestLeftovers: records left behind by a node of version 0.1.0 are deleted within a day. Records
// that are still needed stay.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("live")
	f.create("dropped")
	f.create("gone")
	f.drop("dropped")
	f.unregister("gone")
	pointers := f.pointers()
	live, dropped := f.pointer(pointers["live"]), f.pointer(pointers["dropped"])
	if kept := f.list(registry.TableDropped, ""); len(kept) != 2 {
		t.Fatalf("a drop and an unregister leave %v", kept)
	}
	kept := map[registry.Key]bool{}
	for _, record := range f.list(registry.TableDropped, "") {
		kept[record.Key] = true
	}
	for range 2 { // labels, and dropped records
		f.endWindows() // the walk after a start
	}

	never := registry.ID{0xee}
	labels := registry.Labels{Object: map[string]string{"team": "billing"}}
	f.put(registry.LabelKey(never), registry.StateNone, labels)
	f.put(registry.LabelKey(live.ID), registry.StateNone, labels)
	f.put(registry.LabelKey(dropped.ID), registry.StateNone, labels)
	leave := func(name string, state registry.State, value registry.Dropped) registry.Key {
		key := registry.DroppedKey(live.WarehouseID, moorage.Namespace{"ns"}, name, f.clock.Now(), value.ID)
		value.Kind, value.Ident, value.At = registry.ItemTable, ident(name), f.clock.Now()
		f.put(key, state, value)
		return key
	}
	leave("ended", registry.StateDropped, registry.Dropped{ID: never})
	leave("restored", registry.StateDropped, registry.Dropped{ID: live.ID})
	leave("dropped", registry.StateDropped, registry.Dropped{ID: dropped.ID}) // at another time
	leave("forgotten", registry.StateEnded, registry.Dropped{ID: never, EndedChange: never})
	kept[leave("unknown", registry.StateEnded, registry.Dropped{ID: never})] = true
	damaged := leave("damaged", registry.StateDropped, registry.Dropped{ID: never})
	f.write(registry.Put(damaged, registry.StateDropped, []byte("{")))
	kept[damaged] = true

	f.endWindows()
	if got := f.list(registry.TableLabel, ""); len(got) != 3 {
		t.Errorf("before the next walk there are labels of %d tables", len(got))
	}
	f.clock.Advance(24*time.Hour + time.Second)
	f.endWindows()
	if err := f.RunOnce(f.ctx, retention.Windows); err == nil {
		t.Error("nothing is said of the damaged record")
	}
	for _, record := range f.list(registry.TableLabel, "") {
		if id := record.Key.ID; id != live.ID.String() && id != dropped.ID.String() {
			t.Errorf("there are labels of %s", id)
		}
	}
	if got := f.list(registry.TableLabel, ""); len(got) != 2 {
		t.Errorf("there are labels of %d tables", len(got))
	}
	for _, record := range f.list(registry.TableDropped, "") {
		if !kept[record.Key] {
			t.Errorf("%s is left: %s", record.Key, record.Value)
		}
		delete(kept, record.Key)
	}
	for key := range kept {
		t.Errorf("%s is gone", key)
	}
}
