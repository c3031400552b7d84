package catalog

import (
	"sync"

	"moorage/registry"
)

// PurgeStats is what the purge worker of this process has seen and done. The first two are as of its last look at the tasks, and what it has done
// since.
type PurgeStats struct {
	Unfinished int // purges that are to be done, those that wait for their time among them
	Blocked    int // those that were given up, or whose task cannot be read

	Failures int64 // attempts that failed
}

// purges keeps count of the purge worker's work. It is safe for concurrent use.
type purges struct {
	mu         sync.Mutex // guards the fields below; leaf
	stats      PurgeStats
	unreadable map[registry.Key]bool // the tasks that the last look could not read; replaced, never changed
}

// looked notes what tasks a look has found, with their states, and which it could not read.
func (p *purges) looked(states map[registry.ID]registry.State, unreadable map[registry.Key]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreadable = unreadable
	p.countLocked(states)
}

// left notes what is left of the tasks that the last look has found.
func (p *purges) left(states map[registry.ID]registry.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countLocked(states)
}

// countLocked counts states, and what could not be read; mu must be held.
func (p *purges) countLocked(states map[registry.ID]registry.State) {
	p.stats.Unfinished, p.stats.Blocked = len(states)+len(p.unreadable), len(p.unreadable)
	for _, state := range states {
		if state == registry.StateBlocked {
			p.stats.Blocked++
		}
	}
}

// toldOf tells whether the last look could not read the task either.
func (p *purges) toldOf(task registry.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unreadable[task]
}

// failed counts an attempt that failed.
func (p *purges) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Failures++
}

// PurgeStats returns what the purge worker of this process has seen and done.
func (c *Catalog) PurgeStats() PurgeStats {
	c.purges.mu.Lock()
	defer c.purges.mu.Unlock()
	return c.purges.stats
}
