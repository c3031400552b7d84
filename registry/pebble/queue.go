package pebble

import (
	"sync"

	"moorage/registry"
)

// groupBytesMax bounds the bytes of a group, which the committer writes with one sync. A larger
// group makes the sync slower without making the store faster. A larger request forms a group of
// its own.
const groupBytesMax = 1 << 20

// queue holds the requests that wait for the committer. It has no bound, because each request
// belongs to a waiting call of Apply, and the server bounds the number of calls. It is safe for
// concurrent use.
type queue struct {
	arrived sync.Cond // on mu: requests or closed have changed

	// mu guards the fields below, and the fields taken and withdrawn of requests. No lock is taken
	// under it.
	mu       sync.Mutex
	requests []*request
	closed   bool
}

func (q *queue) init() { q.arrived.L = &q.mu }

// add puts a request at the end. It returns ErrClosed if the queue was closed.
func (q *queue) add(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return registry.ErrClosed
	}
	q.requests = append(q.requests, r)
	q.arrived.Signal()
	return nil
}

// withdraw removes a request that the committer has not taken, and reports whether it did.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.taken {
		return false
	}
	r.withdrawn = true
	return true
}

// take waits for requests, and returns the first requests up to groupBytesMax, or one request that
// must run alone. It returns an empty result when the queue is closed and empty.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if group := q.takeLocked(); len(group) > 0 {
			return group
		}
		if q.closed {
			return nil
		}
		q.arrived.Wait()
	}
}

// takeLocked is like take, but does not wait. mu must be held.
func (q *queue) takeLocked() []*request {
	var group []*request
	bytes, next := 0, 0
	for ; next < len(q.requests); next++ {
		r := q.requests[next]
		if r.withdrawn {
			continue
		}
		if bytes += r.bytes(); len(group) > 0 && (bytes > groupBytesMax || r.alone != nil) {
			break
		}
		r.taken = true
		group = append(group, r)
		if r.alone != nil {
			next++
			break
		}
	}
	rest := copy(q.requests, q.requests[next:])
	clear(q.requests[rest:])
	q.requests = q.requests[:rest]
	return group
}

// close refuses further requests. The committer still takes the waiting requests.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Signal()
}
