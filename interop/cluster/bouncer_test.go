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
	// bouncedDuration is the length of the history of a cluster behind a proxy. bouncedAfter is
	// when the proxy is killed.
	bouncedDuration = 4 * time.Second
	bouncedAfter    = 2 * time.Second
)

// TestHistoryBehindBouncer lets clients work on servers that share the few connections of a
// PgBouncer. The PgBouncer pools transactions and is killed once.
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
