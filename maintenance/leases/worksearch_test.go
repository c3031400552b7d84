package leases_test

import (
	"slices"
	"testing"
	"time"

	"moorage/maintenance/leases"
	"moorage/registry"
)

// before adds due records that come ahead of the due tables, in the shard of the first one. Their
// tables cannot be assigned to any caller.
func (w *world) before(count int) {
	w.t.Helper()
	for _, part := range slices.Collect(slices.Chunk(make([]struct{}, count), 100)) {
		var writes []registry.Write
		for range part {
			id, err := w.ledger.NewID()
			must(w.t, err)
			id[0] = w.tables[0][0]
			key := registry.DueKey(id, kind, w.now.Add(-time.Hour))
			value, err := registry.Encode(registry.Due{})
			must(w.t, err)
			writes = append(writes, registry.Put(key, registry.StateNone, value))
		}
		_, err := w.store.Apply(w.ctx, registry.Batch{Writes: writes})
		must(w.t, err)
	}
}

// A search finds work for a caller behind more than one page of work that the caller may not have.
func TestWorkBehindPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.before(450)
	if claimed := w.claim(ann); claimed.Table.Name != "t0" {
		t.Errorf("claimed %+v", claimed)
	}
}

// A search is bounded, and the caller's next search continues where it stopped. A search of another
// caller begins at the start.
func TestNextLookGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.before(4500)
	w.wantNothing(ann, "the first look is spent before it gets there")
	w.wantNothing(ann, "so is the second")
	w.wantNothing(bob, "the first look of another is")
	claimed := w.claim(ann)
	must(t, w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}))
	// Work before the place where a search stopped is found too, because searches wrap around.
	w.due(w.tables[0], w.now.Add(-2*time.Hour))
	w.wantNothing(bob, "the second look of the other goes on behind it")
	w.claim(bob)
}
