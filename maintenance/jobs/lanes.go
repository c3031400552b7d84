package jobs

import (
	"sync"

	"moorage/registry"
)

// lanes are the loops of a node, by the kind of the jobs that each takes: many jobs of one kind do
// not keep those of another waiting.
var lanes = [...]string{KindSnapshots, KindSnapshots, KindOrphans}

// warehouseMax is how many jobs of one warehouse a node works on at a time.
const warehouseMax = 2

// busy knows which tables the jobs of this process are at: one job of a table at a time, whatever
// its kind. The zero value is ready. It is safe for concurrent use.
type busy struct {
	mu         sync.Mutex // guards the fields below; leaf
	tables     map[registry.ID]bool
	warehouses map[string]int
}

// enter reports whether a job of a table may be worked on now. Who got true calls leave.
func (b *busy) enter(table registry.ID, warehouse string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tables[table] || b.warehouses[warehouse] >= warehouseMax {
		return false
	}
	if b.tables == nil {
		b.tables, b.warehouses = make(map[registry.ID]bool), make(map[string]int)
	}
	b.tables[table] = true
	b.warehouses[warehouse]++
	return true
}

func (b *busy) leave(table registry.ID, warehouse string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tables, table)
	if b.warehouses[warehouse]--; b.warehouses[warehouse] == 0 {
		delete(b.warehouses, warehouse)
	}
}
