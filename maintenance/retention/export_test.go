package retention

import (
	"context"
	"time"
)

// Internals for tests in package retention_test.
const (
	ScanPages       = scanPages
	ForgetPage      = forgetPage
	KeptMin         = keptMin
	MarksMax        = marksMax
	StagedAge       = stagedAge
	StagedMax       = stagedMax
	StagedRemoveMax = stagedRemoveMax
	WalkEvery       = walkEvery
	NumberInterval  = numberInterval
	NumberLate      = numberLate
	NumberingName   = numberingName
	NumberingLife   = numberingLife
)

// Mark is mark.
var Mark = mark

// Number runs one round of the numbering.
func (r *Retention) Number(ctx context.Context) error { return r.number.RunOnce(ctx) }

// SeenFences returns the number of remembered fences.
func (r *Retention) SeenFences() int { return len(r.changes.fences.seen) }

// SetMarked sets the time of the process's last mark.
func (r *Retention) SetMarked(at time.Time) { r.changes.marked = at }

// MeasuredSince returns the times from which this process measures durations.
func (r *Retention) MeasuredSince() []time.Time {
	times := []time.Time{r.changes.marked}
	for _, fence := range r.changes.fences.seen {
		times = append(times, fence.since)
	}
	return times
}

// StagedFolders returns the number of remembered folders.
func (r *Retention) StagedFolders() int { return len(r.staged.made) }
