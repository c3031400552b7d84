package catalog

import (
	"sync"

	"moorage/registry"
)

// PurgeStats is what the purge worker of this process has seen and done. The first two are as of its last look at the tasks.
type PurgeStats struct {
	Unfinished int // purges that are to be done, those that wait for their time among them
	Blocked    int // those that were given up, or whose task cannot be read

	Failures int64 // attempts that failed
}

// see counts what is left of a task, if anything is.
func (s *PurgeStats) see(left registry.Record) {
	if !left.Exists() {
		return
	}
	s.Unfinished++
	if left.State == registry.StateBlocked {
		s.Blocked++
	}
}

// purges keeps count of the purge worker's work. It is safe for concurrent use.
type purges struct {
	mu         sync.Mutex // guards the fields below; leaf
	stats      PurgeStats
	unreadable map[registry.Key]bool // the tasks that the last look could not read; replaced, never changed
}

// looked notes what a look at all tasks has found, and which it could not read.
func (p *purges) looked(found PurgeStats, unreadable map[registry.Key]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Unfinished, p.stats.Blocked = found.Unfinished+len(unreadable), found.Blocked+len(unreadable)
	p.unreadable = unreadable
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
