package leasestest_test

import (
	"sync"
	"testing"
	"time"

	"moorage/locks/leasestest"
)

// clock is a store's clock that stands still until somebody moves it. It is safe for concurrent
// use.
type clock struct {
	mu  sync.Mutex // guards the field below; leaf
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(_ *testing.T, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newStore(*testing.T) leasestest.Store {
	var clock clock
	return leasestest.Store{Leases: leasestest.NewMemory(clock.read), Pass: clock.pass}
}

func TestMemory(t *testing.T) { leasestest.Run(t, newStore) }

// A store behind an Around without a hook is that store.
func TestAround(t *testing.T) {
	leasestest.Run(t, func(t *testing.T) leasestest.Store {
		s := newStore(t)
		s.Leases = leasestest.NewAround(s.Leases)
		return s
	})
}
