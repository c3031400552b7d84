package transfers

import (
	"fmt"
	"sync"
	"sync/atomic"

	"moorage/testkit/servers"
)

// Load is a reader's load of a table, with the version in the answer.
type Load struct {
	Client          int
	Table, Location string
	From, To        int64 // positions in the count of all begins and ends
}

// Event is a transfer with its outcome.
type Event struct {
	Transfer
	Outcome  servers.Outcome
	From, To int64 // positions in the count of all begins and ends
}

// Sweep holds the results of a reader's loads of all tables, one at a time: the locations of their
// versions.
type Sweep struct {
	Client int
	Tables map[string]string
}

// History is everything that all clients saw.
type History struct {
	Loads    []Load
	Events   []Event
	Sweeps   []Sweep  // the sweeps of one client are in their order
	Failures []string // answers that no server may give
}

// Summary counts the calls.
func (h History) Summary() string {
	return fmt.Sprintf("%d loads, %d transfers acknowledged, %d refused, %d unknown",
		len(h.Loads), h.count(servers.Acknowledged), h.count(servers.Refused), h.count(servers.Unknown))
}

// count counts the transfers with an outcome.
func (h History) count(outcome servers.Outcome) (n int) {
	for _, event := range h.Events {
		if event.Outcome == outcome {
			n++
		}
	}
	return n
}

// Recorder records events. The zero value is ready for use. It is safe for concurrent use.
type Recorder struct {
	count atomic.Int64

	mu      sync.Mutex // guards history; no other lock is taken under it
	history History
}

// Now returns the next position in the count of all begins and ends.
func (r *Recorder) Now() int64 { return r.count.Add(1) }

func (r *Recorder) note(change func(*History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.history)
}

func (r *Recorder) fail(format string, args ...any) {
	r.note(func(h *History) { h.Failures = append(h.Failures, fmt.Sprintf(format, args...)) })
}

// Acknowledged returns the number of transfers that were acknowledged since the last Take.
func (r *Recorder) Acknowledged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.count(servers.Acknowledged)
}

// Take returns the records since the last Take. Calls in progress are returned by a later Take.
func (r *Recorder) Take() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.history
	r.history = History{}
	return taken
}
