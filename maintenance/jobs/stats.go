package jobs

import (
	"maps"
	"sync"

	"moorage/registry"
)

// Of is a key of counts: a kind of job, and a state or an outcome.
type Of struct{ Kind, Is string }

// Stats counts the work of a process's jobs since the process started. It also holds the results of
// the last search for jobs.
type Stats struct {
	Commits map[Of]int64     // attempts to expire snapshots, by outcome
	Files   int64            // that were deleted
	Bytes   int64            // of deleted orphans
	Kept    map[string]int64 // files that stayed, by reason
	// Jobs counts the jobs in the store by state. Blockers counts the blockers in the store. Both
	// are from the last search.
	Jobs     map[Of]int64
	Blockers int64
}

// counters collects the Stats of a process. The zero value is ready. It is safe for concurrent use.
type counters struct {
	mu    sync.Mutex // guards stats; no lock is taken under it
	stats Stats
}

// get returns a copy, except for Jobs, which is never written to.
func (c *counters) get() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := c.stats
	copied.Commits, copied.Kept = maps.Clone(copied.Commits), maps.Clone(copied.Kept)
	return copied
}

// committed counts an attempt to expire snapshots.
func (c *counters) committed(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Commits == nil {
		c.stats.Commits = make(map[Of]int64)
	}
	c.stats.Commits[Of{KindSnapshots, outcome}]++
}

// deleted counts files that were deleted.
func (c *counters) deleted(files int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Files, c.stats.Bytes = c.stats.Files+int64(files), c.stats.Bytes+bytes
}

// kept counts the files that an ended job has kept.
func (c *counters) kept(all []registry.KeptOf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Kept == nil {
		c.stats.Kept = make(map[string]int64)
	}
	for _, kept := range all {
		c.stats.Kept[kept.Reason] += kept.Files
	}
}

// found records the jobs that a search has found.
func (c *counters) found(jobs map[Of]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Jobs = jobs
}

// blocked records the number of blockers.
func (c *counters) blocked(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Blockers = n
}
