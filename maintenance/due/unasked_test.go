package due_test

import (
	"context"
	"testing"
	"time"

	"moorage/maintenance/policy"
	memorystorage "moorage/storage/memory"
)

// noDeletes is a storage that fails the test if a file is deleted.
type noDeletes struct {
	*memorystorage.Store

	t     *testing.T
	asked bool // a policy now requires deletions
}

func (s *noDeletes) Delete(ctx context.Context, locations ...string) error {
	if !s.asked {
		s.t.Errorf("nobody has asked, and %q are deleted", locations)
	}
	return s.Store.Delete(ctx, locations...)
}

// TestNothingIsDeletedUnlessAsked: a server without policies never deletes files of old snapshots,
// orphans or earlier metadata files, however much time passes. With a policy, it deletes some.
func TestNothingIsDeletedUnlessAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory)
	files := &noDeletes{Store: w.files, t: t}
	w.opened = files
	w.node = w.newNode(w.store, true)
	_, history := w.table("t", 1)
	grow := func() {
		for range 5 {
			w.commit("t", history.Append("main", 1)...)
		}
	}
	grow()
	orphan := "file:///wh/ns/t/data/orphan.parquet"
	must(t, w.files.Create(w.ctx, orphan, []byte("x")))
	for range 10 {
		w.clock.Advance(1000 * time.Hour)
		w.tend(w.node)
	}
	grow()
	w.tend(w.node)
	before := len(w.list())
	w.put(warehouse, policy.SnapshotManagement, policy.Settings{
		policy.MaxSnapshotAgeHours: "0", policy.DeleteDelayHours: "0", policy.MinSnapshotsToExpire: "1",
	})
	files.asked = true
	for range 5 {
		w.clock.Advance(1000 * time.Hour)
		w.tend(w.node)
	}
	if after := len(w.list()); after >= before {
		t.Errorf("with a policy %d files became %d", before, after)
	}
}
