package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// A live node loses no leases if its heartbeats are delayed by no more than a second or two.
func TestLateHeartbeats(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	delayed := func(ctx context.Context, by time.Duration, call func()) error {
		select {
		case <-time.After(by):
			call()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for name, renew := range map[string]func(ctx context.Context, count int, call func()) error{
		"each takes most of a second": func(ctx context.Context, _ int, call func()) error {
			return delayed(ctx, 900*time.Millisecond, call)
		},
		"each takes a second and a half": func(ctx context.Context, _ int, call func()) error {
			return delayed(ctx, 1500*time.Millisecond, call)
		},
		"nothing comes back on every third connection": func(ctx context.Context, count int, call func()) error {
			if count%3 == 2 {
				return hang(ctx)
			}
			call()
			return nil
		},
		"the answers to every third are lost": func(ctx context.Context, count int, call func()) error {
			call()
			if count%3 == 2 {
				return hang(ctx)
			}
			return nil
		},
		"the store refuses every other": func(_ context.Context, count int, call func()) error {
			if count%2 == 1 {
				return errors.New("refused")
			}
			call()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
				store := c.store
				late := locktest.NewLeasesAround(c.memory)
				c.store = late // only of the first node
				node := newNode()
				c.store = store
				count := 0
				late.SetHook(func(ctx context.Context, method string, call func()) error {
					if method != "Renew" {
						call()
						return nil
					}
					count++
					return renew(ctx, count, call)
				})
				mustStayHeld(t, mustAcquire(t, node, writes(shard(1))), newNode())
				late.SetHook(nil)
			})
		})
	}
}

// A heartbeat does not wait for leases that cannot be released.
func TestHeartbeatBesideReleases(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		hold, released := mustAcquire(t, node, writes(shard(1))), mustAcquire(t, node, writes(shard(2)))
		c.cutOff("Release")
		released.Release()
		mustStayHeld(t, hold, other)
		c.store.SetHook(nil)
	})
}

// mustStayHeld requests shard 1 on another node for a minute, which must fail, and then releases
// the hold on the shard.
func mustStayHeld(t *testing.T, hold locks.Hold, other locks.Manager) {
	t.Helper()
	for range 600 {
		if _, err := other.Acquire(t.Context(), writes(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Fatalf("the lock of a node that lives: got %v, want ErrConflict", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	mustBeHeld(t, hold)
	hold.Release()
}
