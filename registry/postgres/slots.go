package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// slotPatience is how long calls that write wait while no slot becomes free. A commit takes
// milliseconds. So if no slot has become free in that time, all commits in progress are probably
// blocked by the same cause.
const slotPatience = 2 * time.Second

// slotParts is the number of parts of the patience. Each part has its own timer. When a stopped
// process continues, its timer fires before it has read the answers that arrived meanwhile. That
// ends one part only.
const slotParts = 4

// errNoSlot means that no slot has become free for slotPatience, so commits probably hang.
var errNoSlot = errors.New("all connections that write have been busy for 2 s: look for commits that wait in " +
	"pg_stat_activity, " +
	"for a synchronous standby or a lock")

// slots limits the calls that write, with one slot for each connection. Calls wait for a slot in
// the order of their arrival, as long as slots become free from time to time. When no slot has
// become free for slotPatience, the waiting calls are refused. After that, new calls are refused at
// once until a slot becomes free. slots is safe for concurrent use.
type slots struct {
	patience time.Duration

	mu      sync.Mutex // guards the fields below; no lock is taken under it
	free    int
	waiting []chan error // each gets one answer; nil means that the call has a slot
	stalled bool         // no slot has become free for patience
	timer   *time.Timer  // runs while no slot is free
	runs    int          // counts the runs of timer, so that a late expiry does nothing
}

func newSlots(count int, patience time.Duration) *slots {
	return &slots{free: count, patience: patience}
}

// take takes a slot, which the caller must return with give. It returns errNoSlot, or the error of
// ctx if ctx ends first.
func (s *slots) take(ctx context.Context) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		if s.free == 0 {
			s.beginRunLocked()
		}
		s.mu.Unlock()
		return nil
	}
	if s.stalled {
		s.mu.Unlock()
		return errNoSlot
	}
	answer := make(chan error, 1)
	s.waiting = append(s.waiting, answer)
	s.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, answer)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 && <-answer == nil { // the call got a slot at the same moment
		s.give()
	}
	return ctx.Err()
}

// give returns a slot.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = false
	if len(s.waiting) > 0 {
		s.waiting[0] <- nil
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.beginRunLocked()
		return
	}
	s.free++
	s.endRunLocked()
}

// beginRunLocked starts the wait for a slot to become free. s.mu must be held.
func (s *slots) beginRunLocked() {
	s.endRunLocked()
	s.beginPartLocked(s.runs, slotParts)
}

// beginPartLocked begins a part of the patience in the run with this number. left is the number of
// parts that are left, with this one. s.mu must be held.
func (s *slots) beginPartLocked(run, left int) {
	s.timer = time.AfterFunc(s.patience/slotParts, func() { s.endPart(run, left-1) })
}

// endRunLocked ends the wait, if there is one. s.mu must be held.
func (s *slots) endRunLocked() {
	s.runs++
	if s.timer != nil {
		s.timer.Stop()
	}
}

// endPart begins the next part of the patience, or refuses the waiting calls if no part is left. It
// does nothing if a slot has become free since the run with this number began.
func (s *slots) endPart(run, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs != run {
		return
	}
	if left > 0 {
		s.beginPartLocked(run, left)
		return
	}
	s.stalled = true
	for _, answer := range s.waiting {
		answer <- errNoSlot
	}
	s.waiting = nil
}
