package leases_test

import (
	"slices"
	"testing"
	"time"

	"moorage/maintenance/leases"
	"moorage/registry"
)

// before puts records in front of the tables that are due, in the shard of the first: of tables
// that nobody can be given.
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

// What a caller can have is found behind more than one page of what he cannot have.
func TestWorkBehindPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.before(450)
	if claimed := w.claim(ann); claimed.Table.Name != "t0" {
		t.Errorf("claimed %+v", claimed)
	}
}

// One look is bounded, and the next one of the caller goes on where it stopped. That of another
// begins at the start.
func TestNextLookGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.before(4500)
	w.wantNothing(ann, "the first look is spent before it gets there")
	w.wantNothing(ann, "so is the second")
	w.wantNothing(bob, "the first look of another is")
	claimed := w.claim(ann)
	must(t, w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}))
	// What is due in front of the place where a look stopped is found too: looks go around.
	w.due(w.tables[0], w.now.Add(-2*time.Hour))
	w.wantNothing(bob, "the second look of the other goes on behind it")
	w.claim(bob)
}
