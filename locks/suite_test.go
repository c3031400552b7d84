package locks_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
	"moorage/testkit/locktest"
)

func TestLocal(t *testing.T) {
	runContract(t, contract{
		New:       func(*testing.T) locks.Manager { return locks.NewLocal(locks.LocalConfig{}) },
		Footprint: func(manager locks.Manager) int { return manager.(*locks.Local).Stats().Paths },
	})
}

// cluster is a store of leases and the nodes over it.
type cluster struct {
	memory *locktest.MemoryLeases
	store  *locktest.LeasesAround
	nodes  uint64
}

func newCluster() *cluster {
	memory := locktest.NewMemoryLeases(time.Now)
	return &cluster{memory: memory, store: locktest.NewLeasesAround(memory)}
}

// noErrors is a log that fails the test if anything is written. Panics of workers are reported only
// in the log.
type noErrors struct{ t testing.TB }

func (n noErrors) Write(p []byte) (int, error) {
	n.t.Errorf("logged: %s", p)
	return len(p), nil
}

// distributed returns a new node.
func (c *cluster) distributed(t testing.TB, configure ...func(*locks.DistributedConfig)) *locks.Distributed {
	c.nodes++
	config := locks.DistributedConfig{
		Leases: c.store, Jitter: rand.New(rand.NewPCG(1, c.nodes)),
		Logger: slog.New(slog.NewTextHandler(noErrors{t}, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	for _, f := range configure {
		f(&config)
	}
	node := locks.NewDistributed(config)
	t.Cleanup(node.Close)
	return node
}

// coalesced returns a new node.
func (c *cluster) coalesced(t testing.TB, configure ...func(*locks.DistributedConfig)) *locks.Coalesced {
	node := locks.NewCoalesced(c.distributed(t, configure...))
	t.Cleanup(node.Close)
	return node
}

// managed is a Manager in the store of its own cluster.
type managed struct {
	locks.Manager
	cluster *cluster
	stats   func() locks.Stats
}

// footprint counts the leftovers in the process and in the store after shares have had time to end.
func footprint(manager locks.Manager) int {
	m := manager.(managed)
	time.Sleep(2 * time.Second)
	synctest.Wait()
	stats := m.stats()
	leases, wants := m.cluster.memory.Rows()
	return stats.Paths + stats.Leases + leases + wants
}

// lose ends the sessions in the store without telling their nodes, and waits until the nodes
// notice.
func lose(manager locks.Manager) {
	manager.(managed).cluster.endSessions()
	time.Sleep(locks.HeartbeatMax)
}

func (c *cluster) endSessions() {
	for _, session := range c.memory.Sessions() {
		_ = c.memory.End(context.Background(), session)
	}
}

func TestDistributed(t *testing.T) {
	runContract(t, contract{
		New: func(t *testing.T) locks.Manager {
			c := newCluster()
			node := c.distributed(t)
			return managed{node, c, node.Stats}
		},
		Footprint: footprint,
		Lose:      lose,
	})
}

func TestCoalesced(t *testing.T) {
	runContract(t, contract{
		New: func(t *testing.T) locks.Manager {
			c := newCluster()
			node := c.coalesced(t)
			return managed{node, c, node.Stats}
		},
		Footprint: footprint,
		Lose:      lose,
	})
}

// nodesConfig returns the configuration for runNodesContract: three nodes of one cluster.
func nodesConfig(handover time.Duration, newNode func(t *testing.T, c *cluster) managed) nodesContract {
	return nodesContract{
		New: func(t *testing.T) []locks.Manager {
			c := newCluster()
			return []locks.Manager{newNode(t, c), newNode(t, c), newNode(t, c)}
		},
		Handover: handover,
		Footprint: func(nodes []locks.Manager) int {
			left := footprint(nodes[0])
			for _, node := range nodes {
				stats := node.(managed).stats()
				left += stats.Paths + stats.Leases
			}
			return left
		},
	}
}

func TestDistributedNodes(t *testing.T) {
	runNodesContract(t, nodesConfig(250*time.Millisecond, func(t *testing.T, c *cluster) managed {
		node := c.distributed(t)
		return managed{node, c, node.Stats}
	}))
}

func TestCoalescedNodes(t *testing.T) {
	runNodesContract(t, nodesConfig(500*time.Millisecond, func(t *testing.T, c *cluster) managed {
		node := c.coalesced(t)
		return managed{node, c, node.Stats}
	}))
}

// Nodes of both kinds may share their locks: a cluster can change from one to the other while it
// runs.
func TestMixedNodes(t *testing.T) {
	runNodesContract(t, nodesConfig(500*time.Millisecond, func(t *testing.T, c *cluster) managed {
		if c.nodes%2 == 0 {
			node := c.distributed(t)
			return managed{node, c, node.Stats}
		}
		node := c.coalesced(t)
		return managed{node, c, node.Stats}
	}))
}
