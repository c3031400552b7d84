package documents

import (
	"context"
	"slices"
	"sync"
	"time"

	"moorage"
)

// Bounds of the metadata that requests hold in memory. The cache of documents has its own bound.
const (
	// RoomBytes is the room for metadata of all requests together: long files while they are read
	// and parsed, and the metadata of running commits and transactions. One warehouse takes at most
	// half of it, which is enough for the largest transaction.
	RoomBytes = 2 << 30
	// RoomFreeBytes is how much each request may hold without taking room. Nearly all requests hold
	// less. A thousand requests together may hold a quarter of a gigabyte in this way.
	RoomFreeBytes = 256 << 10
	// roomReserve is additional room. It is given to one request at a time, which already holds
	// room and needs more. Without it, several requests that wait for each other would all be
	// refused. It is enough for the longest file.
	roomReserve = BytesMax
	// RoomWait is the maximum time that a request waits for room.
	RoomWait = 10 * time.Second
)

// Room is memory that requests share, fairly between warehouses. It is safe for concurrent use.
type Room struct {
	bytes, bytesOfOne, reserve int64

	// mu guards the fields below, and the fields of all shares. No lock is taken under it.
	mu       sync.Mutex
	taken    int64            // without the reserve
	of       map[string]int64 // without the reserve, by warehouse
	waiting  []*wanted        // requests that hold room come before the others; each group in order of arrival
	borrower *Share           // the share that has the reserve; nil if it is free
}

// IsIdle reports whether no request holds room or waits for it.
func (r *Room) IsIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken == 0 && len(r.of) == 0 && r.borrower == nil && len(r.waiting) == 0
}

// Share is the part of a room that one request holds. It is safe for concurrent use.
type Share struct {
	room      *Room
	warehouse string
	free      int64 // the part of RoomFreeBytes that is left
	bytes     int64 // the part of room.taken that s holds
	borrowed  int64 // the part of the reserve that s holds
}

// wanted is a waiting request for room.
type wanted struct {
	share *Share
	bytes int64
	given chan struct{} // closed when the request is granted
}

// HeldBytes returns the memory of a commit on metadata of the given length: twice that, for the
// current and the next version.
func HeldBytes(size int) int64 { return 2 * int64(size) }

func newRoom() *Room {
	return &Room{bytes: RoomBytes, bytesOfOne: RoomBytes / 2, reserve: roomReserve, of: make(map[string]int64)}
}

// Enter returns an empty share for a request in a warehouse. The caller must call GiveBack.
func (r *Room) Enter(warehouse string) *Share {
	return &Share{room: r, warehouse: warehouse, free: RoomFreeBytes}
}

// Take takes further bytes. It waits for room until ctx ends, or for at most RoomWait, after which
// it returns KindTooManyRequests.
func (s *Share) Take(ctx context.Context, bytes int64) error {
	w := s.want(bytes)
	if w == nil {
		return nil
	}
	timer := time.NewTimer(RoomWait)
	defer timer.Stop()
	select {
	case <-w.given:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !s.room.withdraw(w) {
		return nil // the request has just been granted
	}
	if err := ctx.Err(); err != nil { // no work has begun
		return moorage.E("documents.Take", "", moorage.KindUnavailable, err)
	}
	return moorage.Errorf(moorage.KindTooManyRequests,
		"Too much metadata is being worked on; nothing was changed, try again later")
}

// TryTake is like Take, but does not wait. It reports whether there was room.
func (s *Share) TryTake(bytes int64) bool {
	w := s.want(bytes)
	return w == nil || !s.room.withdraw(w)
}

// want takes bytes if there is room. Otherwise it returns the waiting request.
func (s *Share) want(bytes int64) *wanted {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	free := min(bytes, s.free)
	s.free -= free
	if bytes -= free; bytes == 0 || r.grantLocked(s, bytes) {
		return nil
	}
	w := &wanted{s, bytes, make(chan struct{})}
	at := len(r.waiting)
	if s.bytes > 0 {
		at = slices.IndexFunc(r.waiting, func(other *wanted) bool { return other.share.bytes == 0 })
		if at < 0 {
			at = len(r.waiting)
		}
	}
	r.waiting = slices.Insert(r.waiting, at, w)
	return w
}

// grantLocked gives bytes to s if there is room. r.mu must be held.
func (r *Room) grantLocked(s *Share, bytes int64) bool {
	switch {
	case r.taken+bytes <= r.bytes && r.of[s.warehouse]+bytes <= r.bytesOfOne:
		r.taken += bytes
		r.of[s.warehouse] += bytes
		s.bytes += bytes
		return true
	case s.bytes > 0 && (r.borrower == nil || r.borrower == s) && s.borrowed+bytes <= r.reserve:
		r.borrower = s
		s.borrowed += bytes
		return true
	}
	return false
}

// withdraw stops the wait of w, and reports whether w was waiting.
func (r *Room) withdraw(w *wanted) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, w)
	if at < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, at, at+1)
	return true
}

// GiveBack returns everything that s holds. s may take room again.
func (s *Share) GiveBack() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= s.bytes
	if r.of[s.warehouse] -= s.bytes; r.of[s.warehouse] == 0 {
		delete(r.of, s.warehouse)
	}
	if r.borrower == s {
		r.borrower = nil
	}
	s.free, s.bytes, s.borrowed = RoomFreeBytes, 0, 0
	// A request that does not fit does not delay later requests, so a warehouse that has used its
	// half delays no other warehouse.
	r.waiting = slices.DeleteFunc(r.waiting, func(w *wanted) bool {
		granted := r.grantLocked(w.share, w.bytes)
		if granted {
			close(w.given)
		}
		return granted
	})
}
