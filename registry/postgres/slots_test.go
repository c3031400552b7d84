package postgres

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// takeLater begins a call of take, and returns the channel of its error.
func takeLater(ctx context.Context, s *slots) <-chan error {
	result := make(chan error, 1)
	go func() { result <- s.take(ctx) }()
	synctest.Wait()
	return result
}

// pending fails the test if there is a result.
func pending(t *testing.T, result <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		t.Errorf("a call that is to wait has ended with %v", err)
	default:
	}
}

// TestSlotsQueueWhileSomeComeFree: calls wait in order, even longer than slotPatience, as long as a
// slot becomes free within each slotPatience.
func TestSlotsQueueWhileSomeComeFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2, slotPatience)
		if err := errors.Join(s.take(t.Context()), s.take(t.Context())); err != nil {
			t.Fatal(err)
		}
		var waiting []<-chan error
		for range 10 {
			waiting = append(waiting, takeLater(t.Context(), s))
		}
		for i, result := range waiting {
			time.Sleep(slotPatience - time.Millisecond)
			for _, later := range waiting[i:] {
				pending(t, later)
			}
			s.give()
			if err := <-result; err != nil {
				t.Errorf("call %d, whose turn it was: %v", i, err)
			}
		}
	})
}

// TestSlotsTurnAwayAtOnce: if no slot has become free for slotPatience, waiting and new calls are
// refused until a slot becomes free.
func TestSlotsTurnAwayAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, slotPatience)
		if err := s.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(slotPatience / 2)
		waiting := []<-chan error{takeLater(t.Context(), s), takeLater(t.Context(), s)}
		for _, result := range waiting {
			if err := <-result; !errors.Is(err, errNoSlot) {
				t.Errorf("waited: %v, want errNoSlot", err)
			}
		}
		if err := s.take(t.Context()); !errors.Is(err, errNoSlot) {
			t.Errorf("came later: %v, want errNoSlot", err)
		}
		if took := time.Since(began); took != slotPatience {
			t.Errorf("turned away after %s, want %s", took, slotPatience)
		}
		s.give()
		if err := s.take(t.Context()); err != nil {
			t.Errorf("one came free: %v", err)
		}
		time.Sleep(slotPatience / 2)
		pending(t, takeLater(t.Context(), s)) // now calls wait again
		time.Sleep(slotPatience)
		s.give()
	})
}

// TestSlotsOfThoseWhoLeave: a call whose context ends holds no slot, even if it got its turn at
// that moment.
func TestSlotsOfThoseWhoLeave(t *testing.T) {
	t.Parallel()
	for range 200 {
		s := newSlots(1, time.Hour)
		if err := s.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- s.take(ctx) }()
		go leave()
		s.give()
		if err := <-result; err == nil {
			s.give()
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		leave()
		if err := s.take(t.Context()); err != nil || s.free != 0 || len(s.waiting) > 0 {
			t.Fatalf("afterwards: %v, %d free, %d wait", err, s.free, len(s.waiting))
		}
	}
}

// TestSlotsOfAStoppedProcess: when a process continues that was stopped for longer than
// slotPatience, its timer fires first. No call is refused because of that, but the other parts of
// the patience still end.
func TestSlotsOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, slotPatience)
		if err := s.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		// fireFirst does what the timer of the first part does, however late it fires.
		fireFirst := func() {
			s.timer.Stop()
			s.endPart(s.runs, slotParts-1)
		}
		waiting := takeLater(t.Context(), s)
		fireFirst()
		pending(t, waiting)
		s.give()
		if err := <-waiting; err != nil {
			t.Errorf("one came free: %v", err)
		}
		waiting = takeLater(t.Context(), s)
		fireFirst()
		began := time.Now()
		if err := <-waiting; !errors.Is(err, errNoSlot) {
			t.Errorf("none came free: %v, want errNoSlot", err)
		}
		if took, want := time.Since(began), slotPatience-slotPatience/slotParts; took != want {
			t.Errorf("turned away %s after the process continued, want %s", took, want)
		}
		s.give()
	})
}
