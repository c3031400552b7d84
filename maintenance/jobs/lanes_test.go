package jobs

import (
	"testing"

	"moorage/registry"
)

// One job of a table at a time, and two of a warehouse; what leaves makes room.
func TestBusy(t *testing.T) {
	t.Parallel()
	var b busy
	first, second, third := registry.ID{1}, registry.ID{2}, registry.ID{3}
	for _, step := range []struct {
		name      string
		table     registry.ID
		warehouse string
		want      bool
	}{
		{"the first", first, "w", true},
		{"the same table", first, "w", false},
		{"another table", second, "w", true},
		{"a third of the warehouse", third, "w", false},
		{"one of another warehouse", third, "v", true},
	} {
		if got := b.enter(step.table, step.warehouse); got != step.want {
			t.Errorf("%s may enter: %t", step.name, got)
		}
	}
	b.leave(first, "w")
	if !b.enter(first, "w") {
		t.Error("one that left has left no room")
	}
	b.leave(first, "w")
	b.leave(second, "w")
	b.leave(third, "v")
	if len(b.tables)+len(b.warehouses) > 0 {
		t.Errorf("left are %v and %v", b.tables, b.warehouses)
	}
}
