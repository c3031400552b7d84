package jobs

import (
	"testing"
	"time"

	"moorage/registry"
)

// At any time, one job of a table and two of a warehouse may run, at most one of them for orphans.
// A job that leaves makes room. A warehouse whose storage gave no answer is skipped for a while,
// and others are not.
func TestBusy(t *testing.T) {
	t.Parallel()
	var b busy
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	first, second, third, fourth := registry.ID{1}, registry.ID{2}, registry.ID{3}, registry.ID{4}
	for _, step := range []struct {
		name      string
		kind      string
		table     registry.ID
		warehouse string
		want      bool
	}{
		{"the first", KindOrphans, first, "w", true},
		{"the same table", KindSnapshots, first, "w", false},
		{"another table, for orphans", KindOrphans, second, "w", false},
		{"another table", KindSnapshots, second, "w", true},
		{"a third of the warehouse", KindSnapshots, third, "w", false},
		{"one of another warehouse", KindOrphans, third, "v", true},
		{"another one of that", KindSnapshots, fourth, "v", true},
	} {
		if got := b.enter(step.kind, step.table, step.warehouse, now); got != step.want {
			t.Errorf("%s may enter: %t", step.name, got)
		}
	}
	b.leave(KindOrphans, first, "w", now, false)
	if !b.enter(KindOrphans, first, "w", now) {
		t.Error("one that left has left no room")
	}
	b.leave(KindSnapshots, fourth, "v", now, false)
	b.leave(KindSnapshots, second, "w", now, false)
	for _, minutes := range []int{2, 4, 8, 15, 15} {
		b.leave(KindOrphans, first, "w", now, true)
		rests := time.Duration(minutes) * time.Minute
		if b.enter(KindSnapshots, second, "w", now.Add(rests-1)) || !b.enter(KindSnapshots, fourth, "v", now) {
			t.Errorf("a warehouse that stalled may be entered for %s, or another may not", rests)
		}
		b.leave(KindSnapshots, fourth, "v", now, false)
		if now = now.Add(rests); !b.enter(KindOrphans, first, "w", now) {
			t.Errorf("a warehouse that stalled may not be entered after %s", rests)
		}
	}
	b.leave(KindOrphans, first, "w", now, false)
	b.leave(KindOrphans, third, "v", now, false)
	if len(b.tables)+len(b.warehouses)+len(b.orphans)+len(b.stalls) > 0 {
		t.Errorf("left are %v, %v, %v and %v", b.tables, b.warehouses, b.orphans, b.stalls)
	}
}
