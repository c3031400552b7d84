package cluster

import (
	"context"
	"testing"
	"time"

	"moorage/testkit/histories"
)

// Lengths of a history with one server that is paused: how long the clients work before it, and how
// long in all.
const (
	pausedAfter    = time.Second
	pausedDuration = pausedAfter + passedOverSpan + 3*time.Second
)

// pauseFirst pauses the first server until others have taken the locks that it held. Then the
// server goes on.
func (c *cluster) pauseFirst(ctx context.Context) error {
	if err := pause(ctx, pausedAfter); err != nil {
		return err
	}
	return c.suffer(ctx, step{node: 0, fault: faultPassedOver, span: passedOverSpan})
}

// TestPausedServer pauses a server that goes on with locks that others have by then. What it was
// about to do fails, or is done in an order with what the others did.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	t.Run("names and commits", func(t *testing.T) {
		t.Parallel()
		seed := newSeed(t)
		c := newCluster(t, nodesCount)
		c.study(t, &histories.Recorder{}, seed, pausedDuration, c.pauseFirst)
	})
	t.Run("transactions", func(t *testing.T) {
		t.Parallel()
		seed := newSeed(t)
		c := newCluster(t, nodesCount)
		c.moveAmounts(t, seed, pausedDuration, c.pauseFirst)
	})
}
