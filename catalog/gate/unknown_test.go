package gate

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage/registry"
)

// epochReads is a store that counts the calls that read the epoch.
type epochReads struct {
	registry.Store
	count atomic.Int64
}

func (e *epochReads) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if keys[0] == registry.EpochKey() {
		e.count.Add(1)
	}
	return e.Store.Get(ctx, keys...)
}

// TestUnknownPrincipals asks a node for principals that another node has just created, while an
// attacker floods the node with invented names. Each principal is found, and the flood causes only
// ten looks a second.
func TestUnknownPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const made, flood = 20, 2000
		w := newWorld(t)
		reads := &epochReads{Store: w.lossy}
		other := New(Config{Store: reads})
		if _, _, err := other.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		reads.count.Store(0)
		var asking sync.WaitGroup
		ask := func(name string, want bool) {
			policy, _, err := other.FreshForUnknown(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if _, found := policy.Principal(name); found != want {
				t.Errorf("%s: found is %t", name, found)
			}
		}
		begun := time.Now()
		for i := range flood {
			if i%(flood/made) == 0 {
				name := "made" + strconv.Itoa(i)
				if err := w.disable(name, false); err != nil {
					t.Fatal(err)
				}
				asking.Go(func() { ask(name, true) })
			}
			asking.Go(func() { ask("nobody", false) })
			time.Sleep(time.Millisecond)
		}
		asking.Wait()
		// A look reads the epoch up to three times if the policy has changed, and otherwise once.
		looks := int64(time.Since(begun)/lookPause) + 1
		if got := reads.count.Load(); got < looks/2 || got > 3*looks {
			t.Errorf("%d reads of the epoch in %s, want at most %d", got, time.Since(begun), 3*looks)
		}
	})
}

// slow is a store that answers some calls only when the test lets it, or when their context ends.
type slow struct {
	registry.Store
	held chan struct{} // if nil, it answers at once
}

func (s *slow) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if s.held != nil {
		select {
		case <-s.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Store.Get(ctx, keys...)
}

// TestUnknownWhileTheStoreHangs: a caller can give up at once, and no other caller fails because of
// that. A call that begins during a look gets the result of a later look.
func TestUnknownWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		store := &slow{Store: w.lossy, held: make(chan struct{})}
		other := New(Config{Store: store})
		impatient, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, _, err := other.FreshForUnknown(impatient); err == nil {
				t.Error("a call that was called off has a result")
			}
		})
		synctest.Wait() // the look is running
		if err := w.disable("late", false); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			asking.Go(func() {
				policy, on, err := other.FreshForUnknown(t.Context())
				if err != nil || !on {
					t.Errorf("access is on: %t, %v", on, err)
					return
				}
				if _, found := policy.Principal("late"); !found {
					t.Error("a principal that was made before the call is not found")
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(store.held)
		asking.Wait()
	})
}
