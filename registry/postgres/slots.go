package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// slotPatience is how long calls that write wait while none of the slots comes free. A commit takes
// milliseconds, so that by then all that are under way are likely to be held up by the same cause.
const slotPatience = 2 * time.Second

// errNoSlot says that commits stand still.
var errNoSlot = errors.New("all connections that write have been busy for 2 s: look for commits that wait in " +
	"pg_stat_activity, " +
	"for a synchronous standby or a lock")

// slots are the places of calls that write, one for each connection that may. A call waits for one
// in turn as long as some come free. When none has come free for a while, those that wait are
// turned away, and so is each new call at once until one does. It is safe for concurrent use.
type slots struct {
	patience time.Duration

	mu      sync.Mutex // guards the fields below; leaf
	free    int
	waiting []chan error // each gets one answer: nil is a slot
	stalled bool         // none has come free for patience
	timer   *time.Timer  // runs while none is free
	runs    int          // counts the runs of timer, so that one that was ended too late does nothing
}

func newSlots(count int, patience time.Duration) *slots {
	return &slots{free: count, patience: patience}
}

// take takes a slot, which the caller gives back. It returns errNoSlot, or the error of ctx when
// that ends first.
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
	if i < 0 && <-answer == nil { // it got one at the same moment
		s.give()
	}
	return ctx.Err()
}

// give gives a slot back.
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

// beginRunLocked starts the wait for a slot to come free, from now on; s.mu must be held.
func (s *slots) beginRunLocked() {
	s.endRunLocked()
	run := s.runs
	s.timer = time.AfterFunc(s.patience, func() { s.end(run) })
}

// endRunLocked ends the wait, if there is one; s.mu must be held.
func (s *slots) endRunLocked() {
	s.runs++
	if s.timer != nil {
		s.timer.Stop()
	}
}

// end turns away those that wait, if no slot has come free since run began.
func (s *slots) end(run int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs != run {
		return
	}
	s.stalled = true
	for _, answer := range s.waiting {
		answer <- errNoSlot
	}
	s.waiting = nil
}
