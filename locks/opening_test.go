package locks_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

// If the store does not answer, all operations that need a session fail together, not one after
// another. The store does not get a call for each.
func TestStoreAwayForMany(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		asked := 0
		c.store.SetHook(func(ctx context.Context, method string, call func()) error {
			if method != "Open" {
				call()
				return nil
			}
			asked++
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		var many sync.WaitGroup
		for i := range uint8(locks.Shards) {
			many.Go(func() {
				_, err := node.Acquire(t.Context(), writes(shard(i)), locks.Options{NonBlocking: i%2 == 0})
				if took := time.Since(began); !errors.Is(err, locks.ErrUnavailable) || took != 5*time.Second {
					t.Errorf("got %v after %s, want ErrUnavailable after 5s", err, took)
				}
			})
		}
		many.Wait()
		if asked != 1 {
			t.Errorf("the store was asked %d times, want once", asked)
		}
		c.store.SetHook(nil)
		mustAcquire(t, node, writes(shard(1))).Release()
	})
}

// If an operation that opens the session for others is cancelled, one of the others opens it.
func TestOpenerGoesAway(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		c.cutOff("Open")
		gone, leave := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := node.Acquire(gone, writes(shard(1)), locks.Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("who went away got %v", err)
			}
		})
		synctest.Wait()
		running.Go(func() {
			hold, err := node.Acquire(t.Context(), writes(shard(2)), locks.Options{})
			if err != nil {
				t.Errorf("who stayed got %v", err)
				return
			}
			hold.Release()
		})
		synctest.Wait()
		c.store.SetHook(nil)
		leave()
		running.Wait()
	})
}
