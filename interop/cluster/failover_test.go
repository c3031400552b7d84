package cluster

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"moorage/testkit/histories"
	"moorage/testkit/pgserver"
	"moorage/testkit/servers"
)

// The phases of a failover: the clients' work before the primary dies, the time without a primary,
// and the clients' whole run.
const (
	failoverAfter    = 4 * time.Second
	failoverTakes    = 3 * time.Second
	failoverDuration = 14 * time.Second
)

// TestFailover kills the database under load and promotes its synchronous standby. The servers know
// both hosts and find the new primary by themselves.
func TestFailover(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	primary := newDatabase(t)
	standby := newStandby(t, primary)
	c := &cluster{binary: servers.Build(t), data: newFolder(t), store: bothHosts(t, primary, standby)}
	for range nodesCount {
		c.startNode(t, nil, c.store)
	}
	c.study(t, &histories.Recorder{}, seed, failoverDuration, func(ctx context.Context) error {
		if err := pause(ctx, failoverAfter); err != nil {
			return err
		}
		if err := primary.Kill(); err != nil {
			return err
		}
		if err := pause(ctx, failoverTakes); err != nil {
			return err
		}
		if err := standby.Promote(); err != nil {
			return err
		}
		promoted := time.Now()
		err := c.awaitReady(ctx)
		t.Logf("ready %s after the promotion", time.Since(promoted).Round(time.Millisecond))
		return err
	})
}

// newStandby starts a synchronous standby.
func newStandby(t *testing.T, primary *pgserver.Server) *pgserver.Server {
	t.Helper()
	standby, err := primary.Standby(primary.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, standby.Stop()) })
	return standby
}

// bothHosts returns a connection string that names the hosts of both databases.
func bothHosts(t *testing.T, first, second *pgserver.Server) string {
	t.Helper()
	one, err := url.Parse(first.DSN())
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(second.DSN())
	if err != nil {
		t.Fatal(err)
	}
	one.Host = fmt.Sprintf("%s,%s", one.Host, other.Host)
	return one.String()
}
