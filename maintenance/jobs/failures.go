package jobs

import "time"

// These limits decide when failures block a kind on a table, or a job. See FailureRow, and Tries in
// the job's record.
const (
	// TriesMax is the number of failures that block a kind or job if they would recur in the next
	// try.
	TriesMax = 5
	// latersMax is the number of temporary failures in a row that block a kind or job. laterMax is
	// the maximum duration of such a row.
	latersMax = 30
	laterMax  = 4 * time.Hour
	// LaterPause is the pause after the first failure. The pause doubles up to LaterPauseMax.
	LaterPause    = time.Minute
	LaterPauseMax = 15 * time.Minute
	// rowGapMax is the longest time between the end of a pause and the next try in the same row. A
	// later try begins a new row.
	rowGapMax = time.Hour
)

// FailureRow is a sequence of failures that may be temporary, for example while a storage is
// unavailable. Its times are by the store's clock.
type FailureRow struct {
	Count int
	Since time.Time // time of the first failure
	Until time.Time // the end of the pause after the last failure
}

// Again returns r with one more failure. The failed try ran from began to now. If the try began
// long after the last pause, a new row begins.
func (r FailureRow) Again(began, now time.Time) FailureRow {
	if r.Count == 0 || began.Sub(r.Until) > rowGapMax {
		r = FailureRow{Since: now}
	}
	r.Count++
	r.Until = now.Add(FailurePause(r.Count))
	return r
}

// Blocks reports whether r is so long that an operator must check it.
func (r FailureRow) Blocks() bool {
	return r.Count >= latersMax || r.Until.Add(-FailurePause(r.Count)).Sub(r.Since) > laterMax
}

// FailurePause returns the pause after the given number of failures, at least one.
func FailurePause(failures int) time.Duration {
	return min(LaterPause<<min(failures-1, 10), LaterPauseMax)
}
