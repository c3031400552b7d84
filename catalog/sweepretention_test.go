package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/registrytest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// leapingStore is a store whose clock was set ahead, or back, by so much.
type leapingStore struct {
	registry.Store
	leap time.Duration
}

func (s *leapingStore) Time(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Time(ctx)
	return now.Add(s.leap), err
}

// clockedStore is a store that goes by another clock.
type clockedStore struct {
	registry.Store
	now func() time.Time
}

func (s clockedStore) Time(context.Context) (time.Time, error) { return s.now(), nil }

// addChangesBy writes changes with the ids from first to last, by a node whose clock is ahead by so
// much.
func (f *fixture) addChangesBy(ahead time.Duration, first, last int) {
	f.t.Helper()
	for n := first; n <= last; n++ {
		_, err := f.store.Apply(f.ctx, registry.Batch{Change: &registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now().Add(ahead)}})
		must(f.t, err)
	}
}

// sweepEach has node sweep now, and then each minute or so until so much time has passed.
func (f *fixture) sweepEach(node *Catalog, spend time.Duration) {
	f.t.Helper()
	const every = 5 * time.Minute
	must(f.t, node.forgetChanges(f.ctx))
	for spent := time.Duration(0); spent < spend; spent += every {
		f.clock.Advance(every)
		must(f.t, node.forgetChanges(f.ctx))
	}
}

// A node whose clock is a year ahead writes more changes than are deleted at once. One whose clock
// is a year behind writes as many. They are among those of others. All of them live for as long as
// changes are kept, and little longer, in each store.
func TestRetentionIgnoresClocksOfNodes(t *testing.T) {
	t.Parallel()
	const retention, year, part = time.Hour, 365 * 24 * time.Hour, 700
	for name, open := range map[string]func(t *testing.T, now func() time.Time) registry.Store{
		"memory": func(_ *testing.T, now func() time.Time) registry.Store {
			return memoryregistry.NewWithClock(newLockedRandom(2), now)
		},
		"pebble": func(t *testing.T, now func() time.Time) registry.Store {
			store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: newLockedRandom(2), Now: now})
			must(t, err)
			t.Cleanup(func() { must(t, store.Close()) })
			return store
		},
		"postgres": func(t *testing.T, now func() time.Time) registry.Store {
			return clockedStore{openPostgres(t, newDatabase(t), newLockedRandom(2)), now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *Config) {
				c.Store = open(t, c.Now)
				c.ChangeRetention = retention
			})
			f.addChangesBy(0, 1, part)
			f.addChangesBy(year, part+1, 2*part)
			f.addChangesBy(-year, 2*part+1, 3*part)
			f.sweepEach(f.Catalog, retention-10*time.Minute)
			f.wantChanges(1, 3*part)
			f.addChangesBy(0, 3*part+1, 4*part)
			f.sweepEach(f.Catalog, 15*time.Minute)
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

// The store's clock is set ahead for a while, and back for a while. No change goes early because of
// that, and all go in the end.
func TestRetentionWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	leaping := new(leapingStore)
	f := newFixture(t, func(c *Config) {
		leaping.Store = c.Store
		c.Store = leaping
		c.ChangeRetention = time.Hour
	})
	f.addChanges(1, 10)
	f.sweepEach(f.Catalog, 10*time.Minute)
	for _, leap := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour, 0} {
		leaping.leap = leap
		f.sweepEach(f.Catalog, 10*time.Minute)
	}
	f.wantChanges(1, 10)
	f.sweepEach(f.Catalog, 30*time.Minute)
	f.wantChanges(1, 0)
}

// A position is due once it was reached as long ago as changes are kept, and no earlier. That holds
// for one node however the store's clock is set. It also holds for several nodes that share a clock
// which nobody sets.
func TestRetentionIsNeverShort(t *testing.T) {
	t.Parallel()
	const kept = time.Hour
	// Each step lets some seconds pass, sets the store's clock, and lets a node count.
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
			var reached []time.Duration // when each position was
			begun := newClock().Now()
			for i, s := range steps {
				passed += time.Duration(s.Seconds) * 10 * time.Second
				if tt.leaps {
					leap += time.Duration(s.Leap) * time.Minute
				}
				node := int(s.Node) % tt.nodes
				reached = append(reached, passed)
				due := mark(&r, registry.Position(i+1), begun.Add(passed+leap), passed-counted[node], kept)
				counted[node] = passed
				if due > 0 && passed-reached[due-1] < kept || len(r.Marks) > marksMax+2 {
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

// Two nodes that sweep at the same time delete a first part of the order together, and no change
// behind it.
func TestTwoNodesForgetAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.ChangeRetention = time.Hour })
	other := f.other(f.store)
	f.addChanges(1, 5*forgetPage)
	must(t, f.forgetChanges(f.ctx))
	f.clock.Advance(time.Hour)
	f.addChanges(5*forgetPage+1, 5*forgetPage+10)
	var group sync.WaitGroup
	for _, node := range []*Catalog{f.Catalog, other} {
		group.Go(func() {
			for range 3 {
				if err := node.forgetChanges(f.ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	must(t, f.forgetChanges(f.ctx))
	f.wantChanges(5*forgetPage+1, 5*forgetPage+10)
}

// A round fails at each call that it makes of the store, in turn, and with each write done or not.
// What is left is always a last part of the order, and the horizon is where that begins. The next
// round goes on.
func TestRetentionAfterFailures(t *testing.T) {
	t.Parallel()
	const count = 2*forgetPage + 10
	for _, action := range []registrytest.Action{registrytest.Fail, registrytest.Lose} {
		for k, failed := 0, true; failed; k++ {
			f := newFixture(t, func(c *Config) { c.ChangeRetention = time.Hour })
			f.addChanges(1, count)
			must(t, f.forgetChanges(f.ctx))
			f.clock.Advance(time.Hour)
			faulty := registrytest.Faulty(f.store, registrytest.Nth(k, action))
			node := f.other(faulty)
			node.sweeps.marked = f.clock.Now().Add(-time.Hour)
			failed = node.forgetChanges(f.ctx) != nil
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
			must(t, f.forgetChanges(f.ctx))
			f.wantChanges(count+1, count)
		}
	}
}

// changesLeft returns the changes of addChanges that are left.
func (f *fixture) changesLeft() []registry.Record {
	f.t.Helper()
	left, err := f.store.List(f.ctx, registry.TableChange, "ff", "", registry.ListLimitMax)
	must(f.t, err)
	return left
}

// A record of the sweep that cannot be read stops the deletion, and is reported.
func TestRetentionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, key := range []registry.Key{registry.HorizonKey(), registry.RetentionKey()} {
		f := newFixture(t)
		tampering{f}.write(registry.Put(key, registry.StateNone, []byte("{")))
		if err := f.forgetChanges(f.ctx); moorage.KindOf(err) != moorage.KindInternal {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// datedStore finds what has expired by itself, except some outcomes.
type datedStore struct {
	registry.Store
	dates   map[registry.Key]time.Time
	undated map[registry.Key]bool
	decoded int
}

func (s *datedStore) Expired(ctx context.Context, before time.Time, limit int) (found []registry.Record, err error) {
	records, err := s.Store.ListKeys(ctx, registry.TableIdempotency, "", "", registry.ListLimitMax)
	for _, record := range records {
		if at, ok := s.dates[record.Key]; ok && !s.undated[record.Key] && at.Before(before) && len(found) < limit {
			found = append(found, record)
		}
	}
	return found, err
}

func (s *datedStore) Undated(ctx context.Context, after string, limit int) (found []registry.Record, err error) {
	records, err := s.Store.List(ctx, registry.TableIdempotency, "", after, registry.ListLimitMax)
	for _, record := range records {
		if s.undated[record.Key] && len(found) < limit {
			found = append(found, record)
		}
	}
	s.decoded += len(found)
	return found, err
}

// Where the store knows when outcomes expire, the sweep reads only those whose date the store does
// not know.
func TestSweepOfDatedKeys(t *testing.T) {
	t.Parallel()
	dated := &datedStore{dates: map[registry.Key]time.Time{}, undated: map[registry.Key]bool{}}
	f := newFixture(t, func(c *Config) {
		dated.Store = c.Store
		c.Store = dated
	})
	const count = ledger.ScanPage + 100
	for n := range count {
		work := f.newKeyed(f.ctx, Key{ID: fmt.Sprint(n)})
		_, write, err := work.Put(registry.Outcome{})
		must(t, err)
		if !write.Expires.Equal(work.Request.Expires) {
			t.Fatalf("the write expires at %v, the outcome at %v", write.Expires, work.Request.Expires)
		}
		dated.dates[write.Key], dated.undated[write.Key] = write.Expires, n%100 == 0
		_, err = f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{write}})
		must(t, err)
	}
	must(t, f.forgetKeys(f.ctx))
	if got := len(f.outcomes()); got != count || dated.decoded != count/100 {
		t.Errorf("%d outcomes are left, %d were decoded", got, dated.decoded)
	}
	f.clock.Advance(f.keyLifetime + keyGrace + time.Second)
	must(t, f.forgetKeys(f.ctx))
	if got := len(f.outcomes()); got != count/100 {
		t.Errorf("%d outcomes are left, want the %d without a time", got, count/100)
	}
	f.clock.Advance((f.keyLifetime + keyGrace) / 2)
	must(t, f.forgetKeys(f.ctx))
	if got := len(f.outcomes()); got != 0 || dated.decoded > 2*count/100 {
		t.Errorf("%d outcomes are left, %d were decoded", got, dated.decoded)
	}
}

// decodingStore counts the outcomes that lists return.
type decodingStore struct {
	registry.Store
	read int
}

func (s *decodingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	records, err := s.Store.List(ctx, table, prefix, after, limit)
	if table == registry.TableIdempotency {
		s.read += len(records)
	}
	return records, err
}

// Keys come at a steady rate. Each outcome is read about three times before it goes, and none is
// kept for twice its lifetime.
func TestSweepReadsOutcomesSeldom(t *testing.T) {
	t.Parallel()
	const rounds, perRound, readsMax = 300, 40, 4
	decoding := new(decodingStore)
	f := newFixture(t, func(c *Config) {
		decoding.Store = c.Store
		c.Store = decoding
	})
	read, most := 0, 0
	for round := range rounds {
		var batch registry.Batch
		for n := range perRound {
			work := f.newKeyed(f.ctx, Key{ID: fmt.Sprint(round, "/", n)})
			_, write, err := work.Put(registry.Outcome{})
			must(t, err)
			batch.Writes = append(batch.Writes, write)
		}
		_, err := f.store.Apply(f.ctx, batch)
		must(t, err)
		decoding.read = 0
		must(t, f.forgetKeys(f.ctx))
		read += decoding.read
		f.clock.Advance(time.Minute)
		most = max(most, len(f.outcomes()))
	}
	lifetime := int((f.keyLifetime + keyGrace) / time.Minute)
	if read > readsMax*rounds*perRound || most > 2*lifetime*perRound {
		t.Errorf("%d outcomes were read for %d that came, and %d were there at once", read, rounds*perRound, most)
	}
}
