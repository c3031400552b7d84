package postgres

import (
	"sync"
	"testing"
	"time"

	"moorage/testkit/locktest"
)

// leaseClock is a store's clock that only moves when the test advances it. It is safe for
// concurrent use.
type leaseClock struct {
	mu  sync.Mutex // guards the field below; leaf
	now time.Time
}

func (c *leaseClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *leaseClock) pass(_ *testing.T, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newLeasesInMemory(*testing.T) leaseStore {
	var clock leaseClock
	return leaseStore{Leases: locktest.NewMemoryLeases(clock.read), Pass: clock.pass}
}

func TestLeasesInMemory(t *testing.T) { runLeaseContract(t, newLeasesInMemory) }

// An Around without a hook behaves like its store.
func TestLeasesAround(t *testing.T) {
	runLeaseContract(t, func(t *testing.T) leaseStore {
		s := newLeasesInMemory(t)
		s.Leases = locktest.NewLeasesAround(s.Leases)
		return s
	})
}
