// These tests are in the package, because the ports do not show when and how long a commit waits
// for its turn.

package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/registry"
)

// turnTest runs body in a bubble of virtual time with a queue of turns. The queue must be empty at
// the end.
func turnTest(t *testing.T, body func(t *testing.T, turns *queue)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newQueue()
		body(t, turns)
		synctest.Wait()
		if got := len(turns.lines); got != 0 {
			t.Errorf("queues when nobody has a turn: got %d, want 0", got)
		}
	})
}

// take waits for a turn, like a commit that no other commit carries out.
func take(ctx context.Context, turns *queue, id registry.ID) (release func(), err error) {
	mine, err := turns.take(ctx, id, &edition{})
	return func() { turns.end(mine) }, err
}

func mustTake(t *testing.T, turns *queue, id registry.ID) (release func()) {
	t.Helper()
	began := time.Now()
	release, err := take(t.Context(), turns, id)
	if err != nil || time.Since(began) != 0 {
		t.Fatalf("take: got %v after %s, want a turn at once", err, time.Since(began))
	}
	return release
}

// Turns at one pointer begin in the order of arrival, each after the previous one has ended.
func TestTurnsInOrder(t *testing.T) {
	turnTest(t, func(t *testing.T, turns *queue) {
		const takers = 8
		release := mustTake(t, turns, registry.ID{1})
		var mu sync.Mutex // guards the two below
		var order []int
		underWay := 0
		var all sync.WaitGroup
		for i := range takers {
			all.Go(func() {
				release, err := take(t.Context(), turns, registry.ID{1})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				if underWay++; underWay != 1 {
					t.Errorf("taker %d: %d turns under way, want 1", i, underWay)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				underWay--
				mu.Unlock()
				release()
			})
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Errorf("began before the first ended: %v", order)
		}
		release()
		all.Wait()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(order, want) {
			t.Errorf("order: got %v, want %v", order, want)
		}
	})
}

// Commits to different pointers do not wait for each other.
func TestTurnsPerPointer(t *testing.T) {
	turnTest(t, func(t *testing.T, turns *queue) {
		first := mustTake(t, turns, registry.ID{1})
		second := mustTake(t, turns, registry.ID{2})
		first()
		mustTake(t, turns, registry.ID{1})()
		second()
	})
}

// A turn that is not released ends after turnMax. Releasing it later does not end the next turn.
func TestTurnsEnd(t *testing.T) {
	turnTest(t, func(t *testing.T, turns *queue) {
		began := time.Now()
		late := mustTake(t, turns, registry.ID{1})
		var releases []func()
		for i := range 3 {
			release, err := take(t.Context(), turns, registry.ID{1})
			if got, want := time.Since(began), time.Duration(i+1)*turnMax; err != nil || got != want {
				t.Fatalf("turn %d: got %v after %s, want it after %s", i, err, got, want)
			}
			releases = append(releases, release)
		}
		late()
		releases[0]()
		waiting := make(chan time.Duration)
		go func() {
			release, err := take(t.Context(), turns, registry.ID{1})
			if err != nil {
				t.Error(err)
			} else {
				release()
			}
			waiting <- time.Since(began)
		}()
		if got, want := <-waiting, 4*turnMax; got != want {
			t.Errorf("turn behind one that was not released: began after %s, want %s", got, want)
		}
	})
}

// A turn ends once, however often it is released.
func TestTurnsReleaseTwice(t *testing.T) {
	turnTest(t, func(t *testing.T, turns *queue) {
		first := mustTake(t, turns, registry.ID{1})
		first()
		second := mustTake(t, turns, registry.ID{1})
		first()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := take(ctx, turns, registry.ID{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the second turn is under way: got %v, want context.DeadlineExceeded", err)
		}
		second()
	})
}

// A commit that stops waiting leaves the queue, and the commits behind it keep their order.
func TestTurnsCancel(t *testing.T) {
	turnTest(t, func(t *testing.T, turns *queue) {
		release := mustTake(t, turns, registry.ID{1})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		results := make(chan error, 2)
		go func() {
			_, err := take(ctx, turns, registry.ID{1})
			results <- err
		}()
		synctest.Wait()
		go func() {
			release, err := take(t.Context(), turns, registry.ID{1})
			if err == nil {
				release()
			}
			results <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("cancelled: got %v after %s, want context.Canceled at once", err, time.Since(began))
		}
		release()
		if err := <-results; err != nil || time.Since(began) != 0 {
			t.Errorf("behind the cancelled: got %v after %s, want a turn at once", err, time.Since(began))
		}
		if _, err := take(ctx, turns, registry.ID{1}); !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel, with nobody in front: got %v, want context.Canceled", err)
		}
	})
}
