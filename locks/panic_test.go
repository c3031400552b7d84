package locks_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"moorage/locks"
)

// panicIn makes calls of a method panic, as a driver may.
func (c *cluster) panicIn(method string) {
	c.store.SetHook(func(_ context.Context, called string, call func()) error {
		if called == method {
			panic("out of range")
		}
		call()
		return nil
	})
}

// If the store panics in the background, the panic is logged and counts as a failed call. It ends
// neither the process nor other operations.
func TestStorePanicsInBackground(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		var logs lockedBuffer
		node := newNode(func(config *locks.DistributedConfig) { config.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		wantTold := func(when string) {
			t.Helper()
			synctest.Wait()
			if text := logs.String(); !strings.Contains(text, "renewing this node's locks panicked") || !strings.Contains(text, "panic_test.go") {
				t.Errorf("%s: logged %q, want the panic and its place", when, text)
			}
			logs.mu.Lock()
			defer logs.mu.Unlock()
			logs.text.Reset()
		}

		hold := mustAcquire(t, node, writes(shard(1)))
		c.panicIn("Release")
		hold.Release()
		wantTold("a lock is given back")
		// The node still has the lease, and continues with it or releases it.
		mustAcquire(t, node, writes(shard(2))).Release()
		c.store.SetHook(nil)
		mustAcquire(t, node, writes(shard(1))).Release()

		hold = mustAcquire(t, node, writes(shard(1)))
		c.store.SetHook(func(ctx context.Context, method string, call func()) error {
			switch method {
			case "Renew":
				<-ctx.Done()
				return ctx.Err()
			case "End":
				panic("out of range")
			}
			call()
			return nil
		})
		<-hold.Context().Done()
		mustBeLost(t, hold)
		wantTold("a lost session is ended")
		c.store.SetHook(nil)
		hold.Release()
		mustAcquire(t, node, writes(shard(1))).Release()
	})
}
