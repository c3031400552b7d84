package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// HeatLasts is the time for which a pointer stays hot after a lost race.
	HeatLasts = 30 * time.Second
	// heatMax is the maximum number of remembered pointers. If more pointers are hot, owners would
	// not help, and the pointers with the oldest lost races are forgotten.
	heatMax = 4096
)

// Heat remembers the pointers on which this node has lost a race in the last 30 s. It is safe for
// concurrent use.
type Heat struct {
	now   func() time.Time
	count atomic.Int64 // len(lost), so that nodes without races take no lock

	mu   sync.RWMutex // guards the field below; no lock is taken under it
	lost map[Pointer]time.Time
}

// NewHeat returns a Heat without hot pointers. now is time.Now, except in tests.
func NewHeat(now func() time.Time) *Heat {
	return &Heat{now: now, lost: make(map[Pointer]time.Time)}
}

// Lost records that this node lost a race on pointer.
func (h *Heat) Lost(pointer Pointer) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.lost[pointer]; !known && len(h.lost) >= heatMax {
		h.makeRoomLocked(now)
	}
	h.lost[pointer] = now
	h.count.Store(int64(len(h.lost)))
}

// makeRoomLocked forgets the pointers that have cooled down. If there are none, it forgets the
// pointer whose last lost race is oldest. mu must be held.
func (h *Heat) makeRoomLocked(now time.Time) {
	var oldest Pointer
	var since time.Time
	for pointer, at := range h.lost {
		if now.Sub(at) >= HeatLasts {
			delete(h.lost, pointer)
			continue
		}
		if since.IsZero() || at.Before(since) {
			oldest, since = pointer, at
		}
	}
	if len(h.lost) >= heatMax {
		delete(h.lost, oldest)
	}
}

// IsHot reports whether this node lost a race on pointer in the last 30 s.
func (h *Heat) IsHot(pointer Pointer) bool {
	if h.count.Load() == 0 {
		return false
	}
	h.mu.RLock()
	at, found := h.lost[pointer]
	h.mu.RUnlock()
	switch {
	case !found:
		return false
	case h.now().Sub(at) < HeatLasts:
		return true
	}
	h.cool(pointer)
	return false
}

// cool forgets pointer, unless this node has since lost another race on it.
func (h *Heat) cool(pointer Pointer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, found := h.lost[pointer]; found && h.now().Sub(at) >= HeatLasts {
		delete(h.lost, pointer)
		h.count.Store(int64(len(h.lost)))
	}
}

// Len returns the number of remembered pointers.
func (h *Heat) Len() int { return int(h.count.Load()) }
