package cluster

import (
	"testing"
	"time"

	"moorage/testkit"
)

// newClock returns a clock that tests move.
func newClock() *testkit.Clock { return testkit.NewClockAt(time.Unix(1_000_000, 0)) }

// A pointer is hot for 30 s after the last lost race on it.
func TestHeatCools(t *testing.T) {
	t.Parallel()
	time := newClock()
	heat := NewHeat(time.Now)
	if heat.IsHot(pointer(1)) {
		t.Error("hot without a race")
	}
	heat.Lost(pointer(1))
	time.Advance(HeatLasts - 1)
	if !heat.IsHot(pointer(1)) || heat.IsHot(pointer(2)) {
		t.Error("want pointer 1 hot, and no other")
	}
	heat.Lost(pointer(1))
	time.Advance(HeatLasts - 1)
	if !heat.IsHot(pointer(1)) {
		t.Error("a second race does not keep it hot")
	}
	time.Advance(1)
	if heat.IsHot(pointer(1)) || heat.Len() != 0 {
		t.Errorf("hot after 30 s, or remembered: %d", heat.Len())
	}
}

// However many pointers there are, memory is bounded, and the latest races are remembered.
func TestHeatIsBounded(t *testing.T) {
	t.Parallel()
	time := newClock()
	heat := NewHeat(time.Now)
	const count = heatMax + 500
	for i := range count {
		heat.Lost(pointer(i))
		time.Advance(1)
	}
	if heat.Len() != heatMax {
		t.Errorf("%d are remembered, want %d", heat.Len(), heatMax)
	}
	for i := range count {
		if want := i >= count-heatMax; heat.IsHot(pointer(i)) != want {
			t.Fatalf("pointer %d of %d: hot %t, want %t", i, count, !want, want)
		}
	}
	time.Advance(HeatLasts)
	heat.Lost(pointer(count))
	if heat.Len() != 1 {
		t.Errorf("%d are remembered after all but one have cooled down", heat.Len())
	}
}
