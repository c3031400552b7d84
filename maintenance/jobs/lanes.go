package jobs

import (
	"sync"
	"time"

	"moorage/registry"
)

// lanes are the loops of a node, by the kind of the jobs that each takes: many jobs of one kind do
// not keep those of another waiting. There is one of a kind more than a warehouse may have at a
// time, so a warehouse whose storage hangs stops only its own jobs.
var lanes = [...]string{KindSnapshots, KindSnapshots, KindSnapshots, KindOrphans, KindOrphans}

const (
	// warehouseMax is how many jobs of one warehouse a node works on at a time, and orphansMax how
	// many of them look for orphans.
	warehouseMax = 2
	orphansMax   = 1
)

// busy knows which tables the jobs of this process are at: one job of a table at a time, whatever
// its kind. The zero value is ready. It is safe for concurrent use.
type busy struct {
	mu         sync.Mutex // guards the fields below; leaf
	tables     map[registry.ID]bool
	warehouses map[string]int
	orphans    map[string]int     // of warehouses
	stalls     map[string]stalled // likewise
}

// stalled is a warehouse whose storage gave no answer, so many times in a row. Until then this node
// leaves it to others.
type stalled struct {
	times int
	until time.Time
}

// enter reports whether a job of a table may be worked on at now, by the clock of this process. The
// caller who got true calls leave.
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

// leave ends what enter began, at now. isStalled says that the storage gave no answer.
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
	b.stalls[warehouse] = stalled{times, now.Add(FailurePause(times + 1))} // a job rests for half of it
}
