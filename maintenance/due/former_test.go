package due_test

import (
	"strings"
	"testing"
	"time"

	"moorage/maintenance/policy"
	"moorage/registry"
)

// With a policy, metadata files are deleted if they left the table's log longer ago than change
// records are kept. That also happens if no snapshot expires, and it creates no version of the
// table.
func TestExpiryTrimsMetadataFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	w.former = 48 * time.Hour
	w.node = w.newNode(w.store, true)
	id := w.commitFormer("t")
	files := func() (count int) {
		for _, file := range w.list() {
			if strings.HasSuffix(file, ".metadata.json") {
				count++
			}
		}
		return count
	}
	pointer := func() registry.Pointer {
		records, err := w.store.Store.Get(w.ctx, registry.PointerKey(id))
		must(t, err)
		value, err := registry.Decode[registry.Pointer](records[0])
		must(t, err)
		return value
	}
	last := pointer().MetadataLocation
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "2", policy.MinSnapshotsToExpire: "1",
	})
	for range 3 * 24 {
		w.clock.Advance(time.Hour)
		w.tend(w.node)
		if age := w.clock.Now().Sub(pointer().Since); age < w.former && files() != 203 {
			t.Fatalf("%d metadata files are left after %s", files(), age)
		}
	}
	if got := files(); got != 101 {
		t.Errorf("%d metadata files are left, want the log and the present one: %+v", got, w.schedule(id))
	}
	if now := pointer().MetadataLocation; now != last {
		t.Errorf("the table is at %s, want %s", now, last)
	}
	if due := w.schedule(id).Job("snapshots").Due; due.After(w.clock.Now().Add(24 * time.Hour)) {
		t.Errorf("it is due again at %s", due)
	}
	w.clock.Advance(25 * time.Hour)
	w.tend(w.node)
	if due := w.schedule(id).Job("snapshots").Due; !due.IsZero() {
		t.Errorf("it is due again at %s", due)
	}
}
