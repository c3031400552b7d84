package cluster

import (
	"sync"
	"testing"
	"time"
)

// clock is a clock that tests move. It is safe for concurrent use.
type clock struct {
	mu  sync.Mutex // guards the field below; leaf
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_000_000, 0)} }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A pointer is hot for 30 s after the last race that was lost on it.
func TestHeatCools(t *testing.T) {
	t.Parallel()
	time := newClock()
	heat := NewHeat(time.read)
	if heat.IsHot(pointer(1)) {
		t.Error("hot without a race")
	}
	heat.Lost(pointer(1))
	time.pass(HeatLasts - 1)
	if !heat.IsHot(pointer(1)) || heat.IsHot(pointer(2)) {
		t.Error("want pointer 1 hot, and no other")
	}
	heat.Lost(pointer(1))
	time.pass(HeatLasts - 1)
	if !heat.IsHot(pointer(1)) {
		t.Error("a second race does not keep it hot")
	}
	time.pass(1)
	if heat.IsHot(pointer(1)) || heat.Len() != 0 {
		t.Errorf("hot after 30 s, or remembered: %d", heat.Len())
	}
}

// However many pointers there are, memory is bounded, and the latest races are remembered.
func TestHeatIsBounded(t *testing.T) {
	t.Parallel()
	time := newClock()
	heat := NewHeat(time.read)
	const count = heatMax + 500
	for i := range count {
		heat.Lost(pointer(i))
		time.pass(1)
	}
	if heat.Len() != heatMax {
		t.Errorf("%d are remembered, want %d", heat.Len(), heatMax)
	}
	for i := range count {
		if want := i >= count-heatMax; heat.IsHot(pointer(i)) != want {
			t.Fatalf("pointer %d of %d: hot %t, want %t", i, count, !want, want)
		}
	}
	time.pass(HeatLasts)
	heat.Lost(pointer(count))
	if heat.Len() != 1 {
		t.Errorf("%d are remembered after all but one have cooled down", heat.Len())
	}
}
