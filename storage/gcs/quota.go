package gcs

import "sync/atomic"

// quotaMax is the number of retries that a full quota allows before a request must succeed.
const quotaMax = 100

// quota limits retries while a server is down, so that not every caller sends five attempts. The
// zero value is full. It is safe for concurrent use.
type quota struct{ used atomic.Int64 }

// take reports whether another attempt may be repeated.
func (q *quota) take() bool {
	if q.used.Add(1) <= quotaMax {
		return true
	}
	q.used.Add(-1)
	return false
}

// refill records that a request was answered.
func (q *quota) refill() {
	if used := q.used.Load(); used > 0 {
		q.used.CompareAndSwap(used, used-1) // one of several concurrent refills is enough
	}
}
