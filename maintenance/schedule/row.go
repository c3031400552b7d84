package schedule

import "time"

// What blocks a kind on a table, or a job: see Row, and Tries in its record.
const (
	// TriesMax is after how many failures that another try would meet again it is blocked.
	TriesMax = 5
	// latersMax and laterMax are after how many failures of a row, and after how long a row, it is
	// blocked.
	latersMax = 30
	laterMax  = 4 * time.Hour
	// LaterPause is how long it rests after the first failure. The pause doubles up to
	// LaterPauseMax.
	LaterPause    = time.Minute
	LaterPauseMax = 15 * time.Minute
	// rowGapMax is how long after a rest the next try of the same row begins at the latest.
	rowGapMax = time.Hour
)

// Row is failures one after another that may pass, such as those of a storage that is away. Its
// times are by the store's clock.
type Row struct {
	Count int
	Since time.Time // when the first one was
	Until time.Time // the end of the rest that the last one brought
}

// Again returns r with one more failure, at now, of a try that began at began. If that was long
// after the rest of the one before, a row begins: nobody tried meanwhile.
func (r Row) Again(began, now time.Time) Row {
	if r.Count == 0 || began.Sub(r.Until) > rowGapMax {
		r = Row{Since: now}
	}
	r.Count++
	r.Until = now.Add(Pause(r.Count))
	return r
}

// Blocks reports whether r is so long that an operator must look.
func (r Row) Blocks() bool {
	return r.Count >= latersMax || r.Until.Add(-Pause(r.Count)).Sub(r.Since) > laterMax
}

// Pause returns how long it rests after so many failures, at least one.
func Pause(failures int) time.Duration {
	return min(LaterPause<<min(failures-1, 10), LaterPauseMax)
}
