package cluster

import (
	"context"
	"testing"
	"time"

	"moorage/testkit/histories"
	"moorage/testkit/pgserver"
	"moorage/testkit/servers"
)

const (
	// bouncedDuration is the length of a history of a cluster behind PgBouncer. bouncedAfter is the
	// time at which PgBouncer is killed.
	bouncedDuration = 4 * time.Second
	bouncedAfter    = 2 * time.Second
)

// TestHistoryBehindBouncer has clients work on servers that share the few connections of a
// PgBouncer. PgBouncer runs in transaction pooling mode and is killed once.
func TestHistoryBehindBouncer(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	database := newDatabase(t)
	bouncer, err := pgserver.StartBouncer(database.DSN(), "default_pool_size = 12")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, bouncer.Stop()) })
	c := &cluster{binary: servers.Build(t), data: newFolder(t), store: database.DSN()}
	for range nodesCount {
		c.startNode(t, nil, bouncer.DSN()+"&default_query_exec_mode=exec")
	}
	c.study(t, &histories.Recorder{}, seed, bouncedDuration, func(ctx context.Context) error {
		if err := pause(ctx, bouncedAfter); err != nil {
			return err
		}
		if err := bouncer.Kill(); err != nil {
			return err
		}
		return bouncer.Restart()
	})
}
