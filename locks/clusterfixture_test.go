package locks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

// both runs body for a cluster of each kind of node, in a synctest bubble.
func both(t *testing.T, body func(t *testing.T, c *cluster, newNode func(configure ...func(*locks.DistributedConfig)) locks.Manager)) {
	t.Parallel()
	for _, kind := range []string{"distributed", "coalesced"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				body(t, c, func(configure ...func(*locks.DistributedConfig)) locks.Manager {
					if kind == "distributed" {
						return c.distributed(t, configure...)
					}
					return c.coalesced(t, configure...)
				})
			})
		})
	}
}

// events is an Observer that records losses and waits.
type events struct {
	mu   sync.Mutex // guards the field below; leaf
	seen []string
}

func (e *events) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, fmt.Sprintf(format, args...))
}

// take returns the recorded events, sorted, and clears them.
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen
	e.seen = nil
	slices.Sort(seen)
	return seen
}

func (e *events) LockConflicted(level locks.Level) { e.note("%s conflicted", level) }
func (e *events) LockWaited(level locks.Level, _ time.Duration, err error) {
	e.note("%s waited: %v", level, err)
}
func (e *events) LockHeld(level locks.Level, held time.Duration) { e.note("%s held %s", level, held) }
func (e *events) LockLost(level locks.Level)                     { e.note("%s lost", level) }
func (e *events) SessionLost()                                   { e.note("session lost") }

func shard(n uint8) locks.Path { return locks.Warehouse("wh").Namespace("ns").Shard(n) }

func writes(paths ...locks.Path) locks.Request { return locks.Request{Writes: paths} }

// mustAcquire takes locks that must be free.
func mustAcquire(t *testing.T, node locks.Manager, request locks.Request) locks.Hold {
	t.Helper()
	hold, err := node.Acquire(t.Context(), request, locks.Options{NonBlocking: true})
	if err != nil {
		t.Fatalf("%v: %v", request, err)
	}
	return hold
}

func mustBeLost(t *testing.T, hold locks.Hold) {
	t.Helper()
	if err := context.Cause(hold.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("context of the hold: got cause %v, want ErrLost", err)
	}
}

func mustBeHeld(t *testing.T, hold locks.Hold) {
	t.Helper()
	if err := context.Cause(hold.Context()); err != nil {
		t.Errorf("context of the hold: got cause %v, want none", err)
	}
}

// cutOff makes every call for a present session fail.
func (c *cluster) cutOff(methods ...string) {
	c.store.SetHook(func(ctx context.Context, method string, call func()) error {
		if slices.Contains(methods, method) {
			<-ctx.Done() // a connection without answers
			return ctx.Err()
		}
		call()
		return nil
	})
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
