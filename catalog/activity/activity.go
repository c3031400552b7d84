// Package activity remembers what this node did: the rates and latencies of commits and loads, the
// busiest tables, and the commits that were refused. Everything is in memory, takes up to 4 MB in
// all, and is gone when the process ends.
//
// It is pure: it does no I/O, and has no clock.
package activity

import (
	"sync"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/registry"
)

const (
	// One in LoadsPerSample loads is measured.
	LoadsPerSample = 16
	// MinutesKept is the number of one-minute samples that are kept.
	MinutesKept = 60
	// Rates are averages over rateSeconds.
	rateSeconds = 10
	// secondsKept adds the current second, and one for late arrivals, to rateSeconds.
	secondsKept = rateSeconds + 2
)

// Activity is the memory of one node. It is safe for concurrent use.
type Activity struct {
	since time.Time
	loads atomic.Uint64 // all loads

	mu sync.Mutex // guards the fields below; leaf
	// seconds is a ring buffer. The counts of Unix second t are at index t % secondsKept.
	seconds [secondsKept]second
	minute  minute   // the current minute
	minutes []Minute // the completed minutes, oldest first; at most MinutesKept
	tables  tables

	refused refusals
}

// New returns an Activity that begins now.
func New(now time.Time) *Activity {
	return &Activity{since: now, tables: newTables(), refused: newRefusals()}
}

// Since returns when a began to remember.
func (a *Activity) Since() time.Time { return a.since }

// second holds the counts of one second.
type second struct {
	at                        int64 // since 1970
	commits, conflicts, loads uint32
}

// minute holds the counts and latencies of the minute that is not over yet.
type minute struct {
	at                        int64 // Unix time in minutes
	commits, conflicts, loads uint64
	commitTimes, loadTimes    latencies
}

// Minute holds the numbers of one completed minute. A latency is zero if nothing was measured.
type Minute struct {
	At                        time.Time
	Commits, Conflicts, Loads uint64
	CommitP99, LoadP99        time.Duration
}

// Table identifies the table or view of a commit or load.
type Table struct {
	ID    registry.ID
	Ident moorage.Identifier
}

// Committed counts a commit that succeeded. by is the caller. took is how long the commit took, and
// waited is how much of that was spent waiting for other commits.
func (a *Activity) Committed(now time.Time, of Table, by string, took, waited time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secondLocked(now).commits++
	m := a.minuteLocked(now)
	m.commits++
	m.commitTimes.add(took)
	a.tables.commit(now, of, by, waited)
}

// Conflicted counts a commit that was refused because of another commit.
func (a *Activity) Conflicted(now time.Time, of Table) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secondLocked(now).conflicts++
	a.minuteLocked(now).conflicts++
	a.tables.conflict(now, of)
}

// Loads counts a load, and reports whether the caller must measure it and call Loaded.
func (a *Activity) Loads() (measured bool) { return a.loads.Add(1)%LoadsPerSample == 0 }

// Loaded counts a load for which Loads returned true.
func (a *Activity) Loaded(now time.Time, of Table, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secondLocked(now).loads += LoadsPerSample
	m := a.minuteLocked(now)
	m.loads += LoadsPerSample
	m.loadTimes.add(took)
	a.tables.load(now, of)
}

// secondLocked returns the counts of the present second; mu must be held.
func (a *Activity) secondLocked(now time.Time) *second {
	at := now.Unix()
	s := &a.seconds[uint64(at)%secondsKept]
	if s.at != at {
		*s = second{at: at}
	}
	return s
}

// minuteLocked returns the counts of the present minute; mu must be held. If the clock goes back,
// counting continues in the same minute.
func (a *Activity) minuteLocked(now time.Time) *minute {
	at := now.Unix() / 60
	if at <= a.minute.at {
		return &a.minute
	}
	if done := &a.minute; done.commits+done.conflicts+done.loads > 0 {
		if len(a.minutes) == MinutesKept {
			a.minutes = a.minutes[:copy(a.minutes, a.minutes[1:])]
		}
		a.minutes = append(a.minutes, Minute{
			At: time.Unix(done.at*60, 0).UTC(), Commits: done.commits, Conflicts: done.conflicts, Loads: done.loads,
			CommitP99: done.commitTimes.percentile(99), LoadP99: done.loadTimes.percentile(99),
		})
	}
	a.minute = minute{at: at}
	return &a.minute
}

// Top describes the present activity of a node. Rates are per second, averaged over the last ten
// seconds.
type Top struct {
	Since                     time.Time
	Commits, Conflicts, Loads float64
	CommitP99, LoadP99        time.Duration // of this minute and the previous one; zero if nothing was measured
	Tables                    []BusyTable   // busiest first
	Minutes                   []Minute      // completed minutes with any activity, oldest first
}

// BusyTable is a table with many commits or loads. Its rates are per second, averaged over about
// half a minute. They are too low for a table that has just become busy.
type BusyTable struct {
	Table
	Commits, Conflicts, Loads float64
	WaitP99                   time.Duration
	LastBy                    string // the caller of the last commit
}

// Top returns the present activity of the node, with at most count tables.
func (a *Activity) Top(now time.Time, count int) Top {
	a.mu.Lock()
	defer a.mu.Unlock()
	top := Top{Since: a.since}
	var sum second
	for _, s := range a.seconds {
		if age := now.Unix() - s.at; age >= 1 && age <= rateSeconds {
			sum.commits, sum.conflicts, sum.loads = sum.commits+s.commits, sum.conflicts+s.conflicts, sum.loads+s.loads
		}
	}
	top.Commits, top.Conflicts = float64(sum.commits)/rateSeconds, float64(sum.conflicts)/rateSeconds
	top.Loads = float64(sum.loads) / rateSeconds
	m := a.minuteLocked(now)
	top.CommitP99, top.LoadP99 = m.commitTimes.percentile(99), m.loadTimes.percentile(99)
	top.Minutes = append([]Minute{}, a.minutes...)
	if len(a.minutes) > 0 {
		if last := a.minutes[len(a.minutes)-1]; now.Sub(last.At) < 2*time.Minute {
			top.CommitP99, top.LoadP99 = max(top.CommitP99, last.CommitP99), max(top.LoadP99, last.LoadP99)
		}
	}
	top.Tables = a.tables.busiest(now, count)
	return top
}
