package check_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/check"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// waitingLists is a store that counts lists of pointers. Each list waits until release is closed or
// its context ends.
type waitingLists struct {
	registry.Store
	release chan struct{}
	lists   atomic.Int64
}

func (s *waitingLists) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == registry.TablePointer {
		s.lists.Add(1)
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// checking is a running call of Check.
type checking struct {
	leave context.CancelFunc
	ended chan error
	found check.Report
}

func beginCheck(f *fixture, c *check.Checker) *checking {
	call := &checking{ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(f.ctx)
	call.leave = cancel
	go func() {
		var err error
		call.found, err = c.Check(ctx)
		call.ended <- err
	}()
	synctest.Wait()
	return call
}

// TestCheckIsShared has ten callers arrive during one run, and the first of them leave.
func TestCheckIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.create("t")
		held := &waitingLists{Store: f.store, release: make(chan struct{})}
		c := f.over(held, time.Time{})
		var calls []*checking
		for range 10 {
			calls = append(calls, beginCheck(f, c))
		}
		calls[0].leave()
		if err := <-calls[0].ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left: %v", err)
		}
		close(held.release)
		for _, call := range calls[1:] {
			if err := <-call.ended; err != nil || call.found.Tables != 1 || call.found.Problems == nil {
				t.Errorf("found %+v, %v", call.found, err)
			}
			call.leave()
		}
		if got := held.lists.Load(); got != 1 {
			t.Errorf("%d runs for callers that came together", got)
		}
		if _, err := c.Check(f.ctx); err != nil || held.lists.Load() != 2 {
			t.Errorf("a later caller: %v, after %d runs in all", err, held.lists.Load())
		}
	})
}

// When the last caller leaves, the run ends. The next caller begins a new one.
func TestLastCallerEndsCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		held := &waitingLists{Store: f.store, release: make(chan struct{})}
		c := f.over(held, time.Time{})
		for _, call := range []*checking{beginCheck(f, c), beginCheck(f, c)} {
			call.leave()
			<-call.ended
		}
		synctest.Wait() // synctest.Test fails if the run continues
		close(held.release)
		if _, err := c.Check(f.ctx); err != nil || held.lists.Load() != 2 {
			t.Errorf("a later caller: %v, after %d runs in all", err, held.lists.Load())
		}
	})
}

// panickingFiles panics when a file is read.
type panickingFiles struct{ check.Files }

func (panickingFiles) PlaceOf(registry.Warehouse) storage.Place { panic("asked for") }

// A panic ends the run, not the process.
func TestCheckThatPanics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	c := check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store}), Files: panickingFiles{}})
	for range 2 {
		_, err := c.Check(f.ctx)
		wantKind(t, err, moorage.KindInternal)
	}
}
