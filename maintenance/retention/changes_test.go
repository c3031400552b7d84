package retention_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// leapingStore is a store whose clock was set ahead or back.
type leapingStore struct {
	registry.Store
	leap time.Duration
}

func (s *leapingStore) Time(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Time(ctx)
	return now.Add(s.leap), err
}

// clockedStore is a store that uses another clock.
type clockedStore struct {
	registry.Store
	now func() time.Time
}

func (s clockedStore) Time(context.Context) (time.Time, error) { return s.now(), nil }

// sweepEach makes node sweep now, and then about every minute until the given time has passed.
func (f *fixture) sweepEach(node *retention.Retention, spend time.Duration) {
	f.t.Helper()
	const every = 5 * time.Minute
	must(f.t, node.RunOnce(f.ctx, retention.Changes))
	for spent := time.Duration(0); spent < spend; spent += every {
		f.clock.Advance(every)
		must(f.t, node.RunOnce(f.ctx, retention.Changes))
	}
}

// A node whose clock is a year ahead writes more changes than are deleted at once. So does a node
// whose clock is a year behind. Other nodes write changes in between. In each store, all changes
// are kept for the retention, and little longer.
func TestRetentionIgnoresClocksOfNodes(t *testing.T) {
	t.Parallel()
	const kept, year, part = time.Hour, 365 * 24 * time.Hour, 700
	for name, open := range map[string]func(t *testing.T, now func() time.Time) registry.Store{
		"memory": func(_ *testing.T, now func() time.Time) registry.Store {
			return memory.NewWithClock(newBits(2), now)
		},
		"pebble": func(t *testing.T, now func() time.Time) registry.Store {
			store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: newBits(2), Now: now})
			must(t, err)
			t.Cleanup(func() { must(t, store.Close()) })
			return store
		},
		"postgres": func(t *testing.T, now func() time.Time) registry.Store {
			return clockedStore{storetest.OpenPostgres(t, stores.NewDatabase(t)), now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *retention.Config) {
				c.Store = open(t, c.Now)
				c.ChangeRetention = kept
			})
			f.addChangesBy(0, 1, part)
			f.addChangesBy(year, part+1, 2*part)
			f.addChangesBy(-year, 2*part+1, 3*part)
			f.sweepEach(f.Retention, kept-10*time.Minute)
			f.wantChanges(1, 3*part)
			f.addChangesBy(0, 3*part+1, 4*part)
			f.sweepEach(f.Retention, 15*time.Minute)
			f.wantChanges(3*part+1, 4*part)
			horizon, err := registry.ReadHorizon(f.ctx, f.store)
			left, readErr := registry.Follow(f.ctx, f.store, horizon.Position, 1)
			if errors.Join(err, readErr) != nil || len(left) != 1 || left[0].Change.ID != numbered(3*part+1) {
				t.Errorf("behind the horizon %d is %v (%v, %v), want %s", horizon.Position, left, err, readErr, numbered(3*part+1))
			}
			if _, err := registry.Follow(f.ctx, f.store, 0, 1); !errors.Is(err, registry.ErrForgotten) {
				t.Errorf("a reader that has read nothing is answered %v", err)
			}
			f.wantClean()
		})
	}
}

// The store's clock is set ahead for a while, and back for a while. No change is deleted early
// because of that, and all changes are deleted in the end.
func TestRetentionWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	leaping := new(leapingStore)
	f := newFixture(t, func(c *retention.Config) {
		leaping.Store = c.Store
		c.Store = leaping
		c.ChangeRetention = time.Hour
	})
	f.addChanges(1, 10)
	f.sweepEach(f.Retention, 10*time.Minute)
	for _, leap := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		leaping.leap = leap
		f.sweepEach(f.Retention, 10*time.Minute)
	}
	f.wantChanges(1, 10)
	f.sweepEach(f.Retention, 30*time.Minute)
	f.wantChanges(1, 0)
}

// A position is due once the retention has passed since the position was reached, and no earlier.
// That holds for one node, however the store's clock is set. It also holds for several nodes that
// share a clock that is never set.
func TestRetentionIsNeverShort(t *testing.T) {
	t.Parallel()
	const kept = time.Hour
	// Each step advances time by some seconds, sets the store's clock, and has a node count.
	type step struct {
		Seconds uint8
		Leap    int16
		Node    uint8
	}
	for _, tt := range []struct {
		nodes int
		leaps bool
	}{{1, true}, {3, false}} {
		check := func(steps []step) bool {
			var r registry.Retention
			var passed, leap time.Duration
			counted := make([]time.Duration, tt.nodes)
			var reached []time.Duration // when each position was reached
			begun := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
			for i, s := range steps {
				passed += time.Duration(s.Seconds) * 10 * time.Second
				if tt.leaps {
					leap += time.Duration(s.Leap) * time.Minute
				}
				node := int(s.Node) % tt.nodes
				reached = append(reached, passed)
				due := retention.Mark(&r, registry.Position(i+1), begun.Add(passed+leap), passed-counted[node], kept)
				counted[node] = passed
				if due > 0 && passed-reached[due-1] < kept || len(r.Marks) > retention.MarksMax+2 {
					t.Logf("position %d may go at %v; %d marks", due, passed, len(r.Marks))
					return false
				}
			}
			return true
		}
		if err := quick.Check(check, nil); err != nil {
			t.Errorf("%d nodes: %v", tt.nodes, err)
		}
	}
}

// Two nodes sweep at the same time. Together they delete a first part of the order, and no change
// after that part.
func TestTwoNodesForgetAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *retention.Config) { c.ChangeRetention = time.Hour })
	other := f.other(f.store)
	f.addChanges(1, 5*retention.ForgetPage)
	must(t, f.RunOnce(f.ctx, retention.Changes))
	f.clock.Advance(time.Hour)
	f.addChanges(5*retention.ForgetPage+1, 5*retention.ForgetPage+10)
	var group sync.WaitGroup
	for _, node := range []*retention.Retention{f.Retention, other} {
		group.Go(func() {
			for range 3 {
				if err := node.RunOnce(f.ctx, retention.Changes); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	must(t, f.RunOnce(f.ctx, retention.Changes))
	f.wantChanges(5*retention.ForgetPage+1, 5*retention.ForgetPage+10)
}

// A round fails at each of its calls to the store in turn, with a write either done or not. The
// remaining changes are always a last part of the order, and the horizon is at its beginning. The
// next round continues.
func TestRetentionAfterFailures(t *testing.T) {
	t.Parallel()
	const count = 2*retention.ForgetPage + 10
	for _, action := range []registrytest.Action{registrytest.Fail, registrytest.Lose} {
		for k, failed := 0, true; failed; k++ {
			f := newFixture(t, func(c *retention.Config) { c.ChangeRetention = time.Hour })
			f.addChanges(1, count)
			must(t, f.RunOnce(f.ctx, retention.Changes))
			f.clock.Advance(time.Hour)
			faulty := registrytest.Faulty(f.store, registrytest.Nth(k, action))
			node := f.other(faulty)
			node.SetMarked(f.clock.Now().Add(-time.Hour))
			failed = node.RunOnce(f.ctx, retention.Changes) != nil
			left := f.changesLeft()
			first := count + 1
			if len(left) > 0 {
				first = count + 1 - len(left)
			}
			f.wantChanges(first, count)
			horizon, err := registry.ReadHorizon(f.ctx, f.store)
			must(t, err)
			all, err := f.store.Changes(f.ctx, 0, 1)
			must(t, err)
			page, err := registry.Follow(f.ctx, f.store, horizon.Position, 1)
			if err != nil || len(page) != len(all) || len(all) > 0 && page[0].Position != all[0].Position {
				t.Errorf("call %d: behind the horizon %d is %v, but the first is %v (%v)", k, horizon.Position, page, all, err)
			}
			must(t, f.RunOnce(f.ctx, retention.Changes))
			f.wantChanges(count+1, count)
		}
	}
}

// A record of the sweep that cannot be read stops the deletion, and is reported.
func TestRetentionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, key := range []registry.Key{registry.HorizonKey(), registry.RetentionKey()} {
		f := newFixture(t)
		f.write(registry.Put(key, registry.StateNone, []byte("{")))
		if err := f.RunOnce(f.ctx, retention.Changes); moorage.KindOf(err) != moorage.KindInternal {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// damagedChanges is a store whose changes cannot be read.
type damagedChanges struct {
	registry.Store
	damaged map[registry.ID]bool
}

func (s *damagedChanges) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	changes, err := s.Store.Changes(ctx, after, limit)
	for i, change := range changes {
		if s.damaged[change.Change.ID] {
			changes[i] = registry.PositionedChange{Position: change.Position, Change: registry.Change{ID: change.Change.ID}, Unreadable: errDamaged}
		}
	}
	return changes, err
}

var errDamaged = errors.New("damaged")

// The age of a change follows from its position. So an unreadable change is deleted together with
// its neighbours.
func TestSweepForgetsUnreadableChanges(t *testing.T) {
	t.Parallel()
	damaged := &damagedChanges{damaged: map[registry.ID]bool{}}
	f := newFixture(t, func(c *retention.Config) {
		damaged.Store = c.Store
		c.Store = damaged
	})
	const count = retention.ForgetPage + 10
	f.addChanges(1, count)
	for _, n := range []int{1, 2, 500, count} {
		damaged.damaged[numbered(n)] = true
	}
	must(t, f.RunOnce(f.ctx, retention.Changes))
	f.wantChanges(1, count)
	f.clock.Advance(week)
	must(t, f.RunOnce(f.ctx, retention.Changes))
	f.wantChanges(1, 0)
}
