package due_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/testkit/scale"
)

const (
	// lagMax is the maximum time between the Apply of a change and its reading.
	lagMax = 10 * time.Second
	// lagRate is the rate of changes, per second, that the monitor must keep up with.
	lagRate = 10_000
	// lagPatience is the maximum time from the last change until all changes have been read.
	lagPatience = 10 * time.Minute
	// lagTries is the maximum number of tries until the lag is at most lagMax.
	lagTries = 3
	// lagWriters is the number of writers, which share the syncs of a store.
	lagWriters = 64
)

// lagging is a monitor that reads the log while changes are applied.
type lagging struct {
	*world
	tables []registry.ID
	base   int64 // changes that were read before the test's first one
	// applied counts the changes. ticks samples this count from time to time.
	applied atomic.Int64

	mu    sync.Mutex // guards ticks
	ticks []tick
}

// tick is the number of changes that had been applied at one moment.
type tick struct {
	at      time.Time
	applied int64
}

// newLagging starts a monitor over store.
func newLagging(t *testing.T, store registry.Store, tables int) *lagging {
	t.Helper()
	l := &lagging{world: overStore(t, store), base: 0}
	l.tables = l.pointers(tables)
	l.base = l.monitor.Stats().Changes
	l.monitor.Start()
	t.Cleanup(l.monitor.Stop)
	return l
}

// apply applies changes for the given span, at most rate per second. It returns their number.
func (l *lagging) apply(ctx context.Context, span time.Duration, rate int) int64 {
	l.t.Helper()
	var writers errgroup.Group
	began := time.Now()
	for range lagWriters {
		writers.Go(func() error {
			for ctx.Err() == nil && time.Since(began) < span {
				n := l.applied.Add(1)
				pause(ctx, time.Duration(n)*time.Second/time.Duration(rate)-time.Since(began))
				l.event(l.tables[n%int64(len(l.tables))], n)
			}
			return nil
		})
	}
	must(l.t, writers.Wait())
	return l.applied.Load()
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watch observes until ctx ends which changes have been read. It returns the greatest age that an
// unread change reached.
func (l *lagging) watch(ctx context.Context) (lag time.Duration) {
	for ctx.Err() == nil {
		read := l.monitor.Stats().Changes - l.base
		now := time.Now()
		l.mu.Lock()
		l.ticks = append(l.ticks, tick{now, l.applied.Load()})
		for len(l.ticks) > 1 && l.ticks[1].applied <= read {
			l.ticks = l.ticks[1:]
		}
		if first := l.ticks[0]; first.applied < l.applied.Load() && read < l.applied.Load() {
			lag = max(lag, now.Sub(first.at))
		}
		l.mu.Unlock()
		pause(ctx, 20*time.Millisecond)
	}
	return lag
}

// run applies changes. It returns their rate per second, and the greatest lag until all were read.
func (l *lagging) run(span time.Duration, rate int) (perSecond float64, lag time.Duration) {
	l.t.Helper()
	watching, end := context.WithCancel(l.ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { lag = l.watch(watching) })
	began := time.Now()
	applied := l.apply(l.ctx, span, rate)
	perSecond = float64(applied) / time.Since(began).Seconds()
	for deadline := time.Now().Add(lagPatience); l.monitor.Stats().Changes-l.base < applied; {
		if time.Now().After(deadline) {
			l.t.Errorf("%d of %d changes were read", l.monitor.Stats().Changes-l.base, applied)
			break
		}
		pause(l.ctx, time.Millisecond)
	}
	end()
	watcher.Wait()
	return perSecond, lag
}

// TestLag: over Pebble, changes are applied at 10,000 a second, to few tables and to many. Each
// change is read within 10 seconds. For PostgreSQL, the test only prints the rate that it reaches.
// With the race detector, the rate of changes is a fifth.
func TestLag(t *testing.T) {
	span := 2 * time.Second
	if *longFlag {
		span = time.Minute
	}
	for _, row := range []struct {
		name   string
		tables int
		open   func(t *testing.T) registry.Store
		least  float64 // changes a second; 0 for as many as possible
	}{
		{"pebble, 1000 tables", 1000, openPebble, lagRate},
		{"pebble, 100000 tables", 100_000, openPebble, lagRate},
		{"postgres, 1000 tables", 1000, func(t *testing.T) registry.Store {
			dsn, err := database.Schema(t.Context())
			must(t, err)
			return openPostgres(t, dsn, postgres.Options{})
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if !*longFlag {
				row.tables = min(row.tables, 10_000)
			}
			// This machine may be stopped for a while during some of the tries.
			var perSecond float64
			lag := 2 * lagMax
			for try := 0; try < lagTries && lag > lagMax; try++ {
				perSecond, lag = newLagging(t, row.open(t), row.tables).run(span, 12*lagRate/10/scale.Factor)
			}
			t.Logf("%.0f changes a second of %d tables; the lag was at most %s", perSecond, row.tables, lag.Round(time.Millisecond))
			if lag > lagMax && row.least > 0 {
				t.Errorf("the lag was %s", lag)
			}
			if *longFlag && perSecond < row.least {
				t.Errorf("%.0f changes a second were applied, want %.0f", perSecond, row.least)
			}
		})
	}
}
