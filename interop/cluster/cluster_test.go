package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
	"moorage/testkit/servers"
)

var (
	durationFlag  = flag.Duration("duration", 30*time.Second, "how long the history of the cluster is")
	transfersFlag = flag.Duration("transfers", 12*time.Second, "how long amounts are moved between tables")
	viewsFlag     = flag.Duration("views", 10*time.Second, "how long views are replaced")
	feedFlag      = flag.Duration("feed", 5*time.Second, "how long tables are changed while a program reads the feed")
	seedFlag      = flag.Uint64("seed", 0, "seed of everything that is random; 0: a new one each time")
)

const (
	nodesCount = 3
	// requestTimeout is the time after which a client tries another server.
	requestTimeout = 4 * time.Second
	// readyTimeout bounds the time until an undisturbed cluster is ready.
	readyTimeout = 3 * time.Minute
	// startsMax bounds the attempts to start a server that ends because its database is
	// unreachable.
	startsMax = 60
)

// newSeed returns the seed for a test's random choices. If the test fails, the seed is printed.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	return seed
}

// cluster is a database and the servers over it.
type cluster struct {
	binary   string
	data     string // the folder that the servers share
	store    string // the database, without a proxy
	database *pgserver.Server
	// authority signs the certificates with which servers forward commits to one another. If nil,
	// they do not forward.
	authority *loopback.Authority
	nodes     []*node
}

// node is one of the servers, across all its restarts. Only one goroutine may start and stop it.
type node struct {
	process *servers.Node
	proxy   *loopback.Proxy // between it and the database; may be nil
	args    []string
	client  atomic.Pointer[servers.Client] // for its current process
}

// newDatabase starts a database.
func newDatabase(t *testing.T) *pgserver.Server {
	t.Helper()
	database, err := pgserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, database.Stop()) })
	return database
}

// newCluster starts a database and n servers. Each server reaches the database through its own
// proxy. Competing commits are forwarded to one of the servers.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	database := newDatabase(t)
	c := &cluster{
		binary: servers.Build(t), data: newFolder(t), store: database.DSN(), database: database,
		authority: loopback.NewAuthority(t),
	}
	for range n {
		proxy, store := newProxy(t, c.store)
		c.startNode(t, proxy, store)
	}
	return c
}

// startNode starts one more server, with the database at store.
func (c *cluster) startNode(t *testing.T, proxy *loopback.Proxy, store string) {
	t.Helper()
	member := &node{proxy: proxy, args: []string{"--store", store, "--data", c.data, "--migrate"}}
	if c.authority != nil {
		member.args = append(member.args, c.authority.Flags(t)...)
	}
	if err := member.start(t.Context(), c.binary); err != nil {
		t.Fatalf("start node %d: %v", len(c.nodes), err)
	}
	c.nodes = append(c.nodes, member)
	t.Cleanup(func() { member.process.Kill() })
}

// newFolder returns a folder for data. Its name needs no escaping in a location.
func newFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "moorage-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, os.RemoveAll(folder)) })
	return folder
}

// newProxy starts a proxy to the database at store. It returns the database's address through the
// proxy, in the same form as store.
func newProxy(t *testing.T, store string) (proxy *loopback.Proxy, through string) {
	t.Helper()
	target, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err = loopback.NewProxy(target.Host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, proxy.Close()) })
	target.Host = proxy.Addr()
	return proxy, target.String()
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// start starts the server. If the server ends because the database is unreachable, start tries
// again as a supervisor would, at most startsMax times in total.
func (n *node) start(ctx context.Context, binary string) error {
	var failures error
	for range startsMax {
		process, err := servers.Start(binary, n.args...)
		if err == nil {
			n.process = process
			n.client.Store(servers.NewClient(process.URI, requestTimeout))
			return nil
		}
		failures = errors.Join(failures, err)
		if pause(ctx, time.Second) != nil {
			break
		}
	}
	return failures
}

// pause returns after d, or with an error when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitReady waits until every server reports that it is ready.
func (c *cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for i, n := range c.nodes {
		for {
			ready := n.client.Load().Ready(ctx)
			if ready == nil {
				break
			}
			if pause(ctx, 50*time.Millisecond) != nil {
				return fmt.Errorf("node %d is not ready: %w", i, ready)
			}
		}
	}
	return nil
}

// stop ends all servers as an operator would, and runs `moorage doctor --deep` on their data.
func (c *cluster) stop(t *testing.T) {
	t.Helper()
	for i, n := range c.nodes {
		if err := n.process.Stop(); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
	report(t, servers.Check(t.Context(), c.binary, "--store", c.store, "--data", c.data))
}

// warehouse returns the folder with the tables.
func (c *cluster) warehouse() string { return filepath.Join(c.data, "warehouse") }
