package web

import (
	"context"
	"slices"
	"sync"
)

// room is a budget of memory, such as the memory for the bodies of all requests. It only counts
// bytes, and allocates no memory. A request that fits gets memory at once, even while larger
// requests wait. It is safe for concurrent use.
type room struct {
	total int64 // in bytes; also the limit of one share
	ofOne int64 // maximum number of bytes that one owner's shares together hold or wait for

	// mu guards the fields below and the fields of all shares and waiters. No other lock is taken
	// under it.
	mu      sync.Mutex
	free    int64
	shares  uint64           // number of shares that have a number
	waiting []*waiter        // the oldest share first
	stuck   int64            // bytes that waiting shares hold
	of      map[string]int64 // number of bytes that the shares of an owner hold or wait for
}

// newRoom returns a room with a budget of total bytes. One owner gets at most half of them, or
// bodyMax bytes if that is more.
func newRoom(total, bodyMax int64) *room {
	return &room{total: total, ofOne: max(total/2, bodyMax), free: total, of: make(map[string]int64)}
}

// share is the part of a room that one request holds.
type share struct {
	number uint64 // rank by the time of its first take; 0 before that
	held   int64  // bytes
	owner  string // the caller of the request; empty if callers are not distinguished
}

// waiter is a share that waits for further bytes.
type waiter struct {
	share *share
	bytes int64
	over  chan struct{} // closed when the wait is over
	given bool          // the share got its bytes before over was closed
}

// take adds bytes to s. It waits for free room until ctx ends, and reports whether it got the
// bytes. It gives up at once if waiting shares hold the whole room and s is the youngest of them:
// one share must then give up, and older shares have made more progress. It also gives up at once
// if the owner of s would exceed its limit.
func (r *room) take(ctx context.Context, s *share, bytes int64) bool {
	r.mu.Lock()
	if s.owner != "" {
		if r.of[s.owner]+bytes > r.ofOne {
			r.mu.Unlock()
			return false
		}
		r.of[s.owner] += bytes
	}
	if s.number == 0 {
		r.shares++
		s.number = r.shares
	}
	if bytes <= r.free {
		r.giveLocked(s, bytes)
		r.mu.Unlock()
		return true
	}
	w := &waiter{share: s, bytes: bytes, over: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(r.waiting, s.number, func(other *waiter, number uint64) int {
		if other.share.number < number {
			return -1
		}
		return 1
	})
	r.waiting = slices.Insert(r.waiting, at, w)
	r.stuck += s.held
	r.settleLocked()
	r.mu.Unlock()

	select {
	case <-w.over:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.waiting, w); at >= 0 {
		r.endLocked(at)
	}
	if !w.given {
		r.leaveLocked(s.owner, bytes)
	}
	return w.given
}

// force adds bytes to s, even if there is no room for them. Other shares then wait longer.
func (r *room) force(s *share, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.owner != "" {
		r.of[s.owner] += bytes
	}
	r.shares++
	s.number = r.shares
	r.giveLocked(s, bytes)
}

// leaveLocked subtracts bytes from the bytes that an owner's shares hold or wait for. mu must be
// held.
func (r *room) leaveLocked(owner string, bytes int64) {
	if owner == "" {
		return
	}
	if r.of[owner] -= bytes; r.of[owner] == 0 {
		delete(r.of, owner)
	}
}

// giveBack ends s and frees its bytes for others. s may be used again.
func (r *room) giveBack(s *share) {
	if s.number == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += s.held
	r.leaveLocked(s.owner, s.held)
	*s = share{}
	r.settleLocked()
}

// settleLocked gives free room to waiting shares. If no waiting share could ever continue, it ends
// the wait of the youngest share. mu must be held.
func (r *room) settleLocked() {
	for at := 0; at < len(r.waiting); {
		if w := r.waiting[at]; w.bytes <= r.free {
			r.endLocked(at)
			r.giveLocked(w.share, w.bytes)
			w.given = true
		} else {
			at++
		}
	}
	if len(r.waiting) > 0 && r.stuck == r.total-r.free {
		r.endLocked(len(r.waiting) - 1)
	}
}

// endLocked ends the wait of one waiter. mu must be held.
func (r *room) endLocked(at int) {
	w := r.waiting[at]
	r.waiting = slices.Delete(r.waiting, at, at+1)
	r.stuck -= w.share.held
	close(w.over)
}

func (r *room) giveLocked(s *share, bytes int64) {
	r.free -= bytes
	s.held += bytes
}
