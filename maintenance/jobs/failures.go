package jobs

import "time"

// The limits that block a kind on a table, or a job: see FailureRow, and Tries in its record.
const (
	// TriesMax is the number of failures, which another try would meet again, that blocks it.
	TriesMax = 5
	// latersMax and laterMax are the number of failures in a row, and the duration of a row, that
	// block it.
	latersMax = 30
	laterMax  = 4 * time.Hour
	// LaterPause is the pause after the first failure. The pause doubles up to LaterPauseMax.
	LaterPause    = time.Minute
	LaterPauseMax = 15 * time.Minute
	// rowGapMax is the longest time after a pause at which the next try still belongs to the row.
	rowGapMax = time.Hour
)

// FailureRow is a sequence of failures that may be temporary, such as the failures of an
// unavailable storage. Its times are by the store's clock.
type FailureRow struct {
	Count int
	Since time.Time // when the first failure was
	Until time.Time // the end of the pause after the last failure
}

// Again returns r with one more failure, at now, of a try that began at began. If the try was long
// after the last pause, a new row begins, because there was no try in between.
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
