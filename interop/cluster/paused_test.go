package cluster

import (
	"context"
	"testing"
	"time"

	"moorage/testkit/histories"
)

// The phases of a history with one paused server: the clients' work before the pause, and their
// whole run.
const (
	pausedAfter    = time.Second
	pausedDuration = pausedAfter + passedOverSpan + 3*time.Second
)

// pauseFirst pauses the first server until others have taken its locks, and then resumes it.
func (c *cluster) pauseFirst(ctx context.Context) error {
	if err := pause(ctx, pausedAfter); err != nil {
		return err
	}
	return c.suffer(ctx, step{node: 0, fault: faultPassedOver, span: passedOverSpan})
}

// TestPausedServer pauses a server, and resumes it when others have its locks. Its pending changes
// must fail, or happen in one order with the changes of the others.
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
