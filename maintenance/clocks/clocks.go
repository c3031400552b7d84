// Package clocks decides whether the store's clock can be trusted to judge the age of a file. The
// clock of a machine that was off, or that somebody has set, may be years ahead.
//
// # What it promises
//
// A clock is believed while the newest change that a caller asked for is at most an hour older than
// it, and not younger. Changes of the server's own jobs do not count: they would confirm the clock
// by which they happened. On a database, whose clock all nodes share, nobody need ask.
//
// # What it must not know
//
// What is done by the clock.
package clocks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

const (
	// aheadMax is how much older than the clock the newest change may be.
	aheadMax = time.Hour
	// behindMax is how much younger it may be: a clock that is corrected goes back a little.
	behindMax = time.Minute
	// page is how many changes are read at a time, and at least looked at to find the newest.
	page = 1000
)

// Clock is the clock of a store that has one process. It is safe for concurrent use.
type Clock struct {
	store registry.Store
	isOwn func(principal string) bool

	mu       sync.Mutex        // guards the fields below; held while the store is asked
	position registry.Position // up to which changes were read
	began    bool
	newest   time.Time // of those that callers asked for; zero: none is known
}

// New returns the clock of a store. isOwn reports whether a caller is a job of the server, by name.
func New(store registry.Store, isOwn func(principal string) bool) *Clock {
	return &Clock{store: store, isOwn: isOwn}
}

// Doubt returns why the clock cannot be believed now; empty if it can.
func (c *Clock) Doubt(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(ctx); err != nil {
		return "", ledger.StoreError("clocks.Doubt", err)
	}
	now, err := c.store.Time(ctx)
	if err != nil {
		return "", ledger.StoreError("clocks.Doubt", err)
	}
	const confirm = " If it is right, say: moorage maintain resume server"
	switch ahead := now.Sub(c.newest); {
	case c.newest.IsZero():
		return "No change confirms the clock of this machine." + confirm, nil
	case ahead > aheadMax:
		return fmt.Sprintf("The clock of this machine is %s ahead of the newest change.%s",
			ahead.Round(time.Minute), confirm), nil
	case ahead < -behindMax:
		return fmt.Sprintf("The clock of this machine is %s behind the newest change. Correct it.%s",
			-ahead.Round(time.Second), confirm), nil
	}
	return "", nil
}

// read reads the changes that it has not read.
func (c *Clock) read(ctx context.Context) error {
	if !c.began {
		horizon, err := registry.ReadHorizon(ctx, c.store)
		if err != nil {
			return err
		}
		head, err := registry.Head(ctx, c.store, horizon.Position)
		if err != nil {
			return err
		}
		if c.position = horizon.Position; head > page {
			c.position = max(c.position, head-page)
		}
		c.began = true
	}
	for {
		found, err := c.store.Changes(ctx, c.position, page)
		if err != nil {
			return err
		}
		for _, each := range found {
			c.position = each.Position
			if each.Unreadable == nil && !c.isOwn(each.Change.Principal) {
				c.newest = each.Change.Time
			}
		}
		if len(found) < page {
			return nil
		}
	}
}
