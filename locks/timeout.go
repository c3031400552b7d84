package locks

import (
	"sync"
	"time"
)

// How a Timeout adapts: after every timeoutWindow waits it evaluates their results.
const (
	timeoutWindow = 16
	// timeoutGrowthMax is the maximum value, as a multiple of the initial one. There is a limit
	// because callers do not wait forever either.
	timeoutGrowthMax = 4
)

// Timeout limits the waits of one class of operations, and adapts to them in windows of 16 waits.
// If more than a third of the waits in a window timed out, the Timeout grows by a quarter. It grows
// to at most four times its initial value. If at most a tenth timed out, it shrinks halfway towards
// twice the longest successful wait, but never below its floor. Only Acquires that had to wait are
// counted, because the others do not show how long waiting takes. It is safe for concurrent use.
type Timeout struct {
	floor, ceiling time.Duration

	mu       sync.Mutex // guards the fields below; no other lock is taken under it
	current  time.Duration
	waits    int
	timeouts int
	longest  time.Duration // longest successful wait
}

// NewTimeout returns a Timeout that begins at initial and never falls below floor. floor is at most
// initial.
func NewTimeout(initial, floor time.Duration) *Timeout {
	return &Timeout{floor: min(floor, initial), ceiling: timeoutGrowthMax * initial, current: initial}
}

// FixedTimeout returns a Timeout that is always d.
func FixedTimeout(d time.Duration) *Timeout {
	return &Timeout{floor: d, ceiling: d, current: d}
}

// Timeouts holds one Timeout for each class of operations that wait.
type Timeouts struct {
	Structural    *Timeout // create, register, drop, rename: 30 s, floor 5 s
	NamespaceDrop *Timeout // 45 s, floor 30 s
}

// NewTimeouts returns the classes at their initial values.
func NewTimeouts() Timeouts {
	return Timeouts{
		Structural:    NewTimeout(30*time.Second, 5*time.Second),
		NamespaceDrop: NewTimeout(45*time.Second, 30*time.Second),
	}
}

// Duration returns how long the next Acquire may wait.
func (t *Timeout) Duration() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// Succeeded records an Acquire that waited and then got all its locks.
func (t *Timeout) Succeeded(waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = max(t.longest, waited)
	t.countLocked()
}

// TimedOut records an Acquire that waited for the whole Duration in vain. A cancelled Acquire does
// not show how long waiting takes, and is not recorded.
func (t *Timeout) TimedOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timeouts++
	t.countLocked()
}

// countLocked counts a wait and adapts when the window is full; mu must be held.
func (t *Timeout) countLocked() {
	if t.waits++; t.waits < timeoutWindow {
		return
	}
	switch {
	case t.timeouts*3 > t.waits:
		t.current = min(t.ceiling, t.current+t.current/4)
	case t.timeouts*10 <= t.waits:
		if target := max(t.floor, 2*t.longest); target < t.current {
			t.current -= (t.current - target + 1) / 2
		}
	}
	t.waits, t.timeouts, t.longest = 0, 0, 0
}
