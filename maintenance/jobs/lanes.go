package jobs

import (
	"sync"
	"time"

	"moorage/registry"
)

// lanes lists the kind of job that each loop of a node runs. Each kind has its own loops, so that
// many jobs of one kind do not delay another kind. There is one loop more for each kind than one
// warehouse may use. So a warehouse whose storage hangs stops only its own jobs.
var lanes = [...]string{KindSnapshots, KindSnapshots, KindSnapshots, KindOrphans, KindOrphans}

const (
	// A node runs at most warehouseMax jobs of one warehouse at a time. At most orphansMax of them
	// find orphans.
	warehouseMax = 2
	orphansMax   = 1
)

// busy holds the tables on which this process runs a job. Only one job of a table runs at a time,
// whatever its kind. The zero value is ready. It is safe for concurrent use.
type busy struct {
	mu         sync.Mutex // guards the fields below; no lock is taken under it
	tables     map[registry.ID]bool
	warehouses map[string]int
	orphans    map[string]int     // number of jobs that find orphans, by warehouse
	stalls     map[string]stalled // by warehouse
}

// stalled describes a warehouse whose storage repeatedly failed to answer. This node leaves the
// warehouse to other nodes until the time in the field until.
type stalled struct {
	times int
	until time.Time
}

// enter reports whether a job of a table may run at time now, by the clock of this process. If it
// returns true, the caller must call leave.
func (b *busy) enter(kind string, table registry.ID, warehouse string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tables[table] || b.warehouses[warehouse] >= warehouseMax || now.Before(b.stalls[warehouse].until) ||
		kind == KindOrphans && b.orphans[warehouse] >= orphansMax {
		return false
	}
	if b.tables == nil {
		b.tables, b.warehouses = make(map[registry.ID]bool), make(map[string]int)
		b.orphans, b.stalls = make(map[string]int), make(map[string]stalled)
	}
	b.tables[table] = true
	b.warehouses[warehouse]++
	if kind == KindOrphans {
		b.orphans[warehouse]++
	}
	return true
}

// leave undoes enter, at time now. isStalled is true if the storage did not answer.
func (b *busy) leave(kind string, table registry.ID, warehouse string, now time.Time, isStalled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tables, table)
	if b.warehouses[warehouse]--; b.warehouses[warehouse] == 0 {
		delete(b.warehouses, warehouse)
	}
	if kind == KindOrphans {
		if b.orphans[warehouse]--; b.orphans[warehouse] == 0 {
			delete(b.orphans, warehouse)
		}
	}
	if !isStalled {
		delete(b.stalls, warehouse)
		return
	}
	times := b.stalls[warehouse].times + 1
	b.stalls[warehouse] = stalled{times, now.Add(FailurePause(times + 1))} // a job pauses half as long
}
