package pebble

import (
	"sync"

	"moorage/registry"
)

// groupBytesMax bounds the bytes that the committer writes at once. More data makes the sync slower
// without making the store faster. A larger request is a group of its own.
const groupBytesMax = 1 << 20

// queue holds the requests that wait for the committer. It has no bound, because each request is a
// waiting call of Apply, and the layer that admits calls bounds their number. It is safe for
// concurrent use.
type queue struct {
	arrived sync.Cond // on mu: requests or closed have changed

	// mu guards the fields below, and the field taken of requests; leaf.
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

// take waits for requests and returns the first of them, up to groupBytesMax, or one that must be
// alone. It returns an empty result when the queue is closed and empty.
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

// takeLocked is take without waiting. mu must be held.
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
