package activity

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"moorage/registry"
)

const (
	// tablesMax is the maximum number of tables that are counted at a time.
	tablesMax = 128
	// windowSeconds is the length of one of the two windows over which tables are counted.
	windowSeconds = 30
	// commitWeight is the weight of a commit. A measured load has weight 1.
	commitWeight = 16
	// After missesPerPlace commits and loads of tables without a place, one of these tables gets a
	// place. It does not get one at once, because finding a place costs more than counting.
	missesPerPlace = 7
	waitBuckets    = 20
)

// tables counts the commits and loads of the busiest tables. A new table takes the place of the
// table with the lowest weight, and inherits that weight. So a table is soon counted if its weight
// is well above the total weight divided by tablesMax. Source: Metwally, Agrawal, El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams" (space-saving).
type tables struct {
	at      map[registry.ID]int // index in the arrays
	weights [tablesMax]uint32
	of      [tablesMax]counted
	others  counted // the tables without a place
	misses  int
	count   int
	window  int64 // number of the present window
}

// counted holds the counts of one table.
type counted struct {
	Table
	now, before tableCounts // of the present window, and of the previous one
	waits       [waitBuckets]uint16
	lastBy      string
}

type tableCounts struct{ commits, conflicts, loads uint32 }

func newTables() tables { return tables{at: make(map[registry.ID]int, tablesMax)} }

func (t *tables) commit(now time.Time, of Table, by string, waited time.Duration) {
	c := t.counted(now, of, commitWeight)
	c.now.commits++
	c.lastBy = by
	if bucket := &c.waits[min(bits.Len64(uint64(max(waited, 0)/time.Millisecond)), waitBuckets-1)]; *bucket < 1<<16-1 {
		*bucket++
	}
}

func (t *tables) conflict(now time.Time, of Table) { t.counted(now, of, commitWeight).now.conflicts++ }

func (t *tables) load(now time.Time, of Table) { t.counted(now, of, 1).now.loads += LoadsPerSample }

// counted returns the counts of a table, and adds to its weight.
func (t *tables) counted(now time.Time, of Table, weight uint32) *counted {
	if window := now.Unix() / windowSeconds; window > t.window {
		t.turn(window)
	}
	at, known := t.at[of.ID]
	if !known {
		if t.misses++; t.count == tablesMax && t.misses%missesPerPlace != 0 {
			return &t.others
		}
		at = t.place(of.ID)
		t.of[at] = counted{Table: of}
	}
	t.weights[at] += weight
	return &t.of[at]
}

// place returns a place for a new table.
func (t *tables) place(id registry.ID) int {
	at := t.count
	if at < tablesMax {
		t.count++
	} else {
		at = 0
		for i, weight := range t.weights[1:] {
			if weight < t.weights[at] {
				at = i + 1
			}
		}
		delete(t.at, t.of[at].ID)
	}
	t.at[id] = at
	return at
}

// turn begins a new window. It halves the weights from earlier windows.
func (t *tables) turn(window int64) {
	isNext := window == t.window+1
	t.window = window
	for i := range t.count {
		c := &t.of[i]
		c.before, c.now = c.now, tableCounts{}
		t.weights[i] /= 2
		for j := range c.waits {
			c.waits[j] /= 2
		}
		if !isNext {
			c.before, c.waits, t.weights[i] = tableCounts{}, [waitBuckets]uint16{}, 0
		}
	}
}

// busiest returns at most count tables, busiest first.
func (t *tables) busiest(now time.Time, count int) []BusyTable {
	if window := now.Unix() / windowSeconds; window > t.window {
		t.turn(window)
	}
	// The part of the previous window that lies within the last windowSeconds.
	part := 1 - float64(now.Unix()%windowSeconds)/windowSeconds
	rate := func(now, before uint32) float64 { return (float64(now) + float64(before)*part) / windowSeconds }
	var all []BusyTable
	for i := range t.count {
		c := &t.of[i]
		busy := BusyTable{
			Table: c.Table, Commits: rate(c.now.commits, c.before.commits),
			Conflicts: rate(c.now.conflicts, c.before.conflicts), Loads: rate(c.now.loads, c.before.loads),
			WaitP99: c.waitP99(), LastBy: c.lastBy,
		}
		if busy.Commits+busy.Conflicts+busy.Loads > 0 {
			all = append(all, busy)
		}
	}
	weigh := func(b BusyTable) float64 { return (b.Commits+b.Conflicts)*commitWeight + b.Loads/LoadsPerSample }
	slices.SortFunc(all, func(a, b BusyTable) int {
		return cmp.Or(cmp.Compare(weigh(b), weigh(a)), cmp.Compare(a.Ident.Warehouse, b.Ident.Warehouse),
			cmp.Compare(a.Ident.String(), b.Ident.String()))
	})
	return all[:min(count, len(all))]
}

// waitP99 returns a bound on how long 99 of 100 commits waited. It is zero if the bound is below a
// millisecond.
func (c *counted) waitP99() time.Duration {
	all := 0
	for _, n := range c.waits {
		all += int(n)
	}
	seen := 0
	for bucket, n := range c.waits {
		if seen += int(n); all > 0 && seen*100 >= all*99 {
			if bucket == 0 {
				return 0
			}
			return time.Millisecond << bucket
		}
	}
	return 0
}
