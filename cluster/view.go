package cluster

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Member is a session of a node that other nodes can reach. It is an alias of an unnamed type, so
// that a store can implement Sessions without importing this package.
type Member = struct {
	Session string
	Address string // HOST:PORT of the peer listener, not empty
	Version string // the build that the node runs
}

// Pointer is the id of the record of a table or view. A rename keeps it.
type Pointer = [16]byte

// View is the set of nodes at one moment. It is immutable.
type View struct {
	// Number increases with every join and leave. Of two views, the one with the greater number is
	// newer.
	Number int64
	// Members has one session for each address, sorted by address.
	Members []Member
}

// NewView returns the view of members, which may be in any order. Two sessions with one address are
// one node that was restarted before its former session ended.
func NewView(number int64, members []Member) View {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int {
		if order := strings.Compare(a.Address, b.Address); order != 0 {
			return order
		}
		return strings.Compare(a.Session, b.Session)
	})
	members = slices.CompactFunc(members, func(a, b Member) bool { return a.Address == b.Address })
	return View{Number: number, Members: members}
}

// Owner returns the member that should receive commits of pointer. It is the member with the
// greatest xxhash64 of its address and pointer. found is false if there is no member.
func (v View) Owner(pointer Pointer) (owner Member, found bool) {
	var greatest uint64
	var room [128]byte
	for _, member := range v.Members {
		key := append(append(room[:0], member.Address...), pointer[:]...)
		if hash := xxhash.Sum64(key); !found || hash > greatest {
			owner, greatest, found = member, hash, true
		}
	}
	return owner, found
}

// viewsKept is the number of views that a node remembers, for operators.
const viewsKept = 8

// Seen is a view, with the time at which this node first read it.
type Seen struct {
	View
	Since time.Time
}

// views holds the views that a node has read. It is safe for concurrent use.
type views struct {
	present atomic.Pointer[View] // nil before the first view

	mu   sync.Mutex // guards the field below and writes of present; no lock is taken under it
	last []Seen     // oldest first, at most viewsKept
}

// learn makes view the present one and returns true. If view is not newer than the present one,
// learn does nothing and returns false.
func (v *views) learn(view View, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if present := v.present.Load(); present != nil && view.Number <= present.Number {
		return false
	}
	v.present.Store(&view)
	v.last = append(v.last, Seen{view, now})
	if len(v.last) > viewsKept {
		v.last = slices.Delete(v.last, 0, len(v.last)-viewsKept)
	}
	return true
}

// now returns the present view. Before the first view, it returns a view without members.
func (v *views) now() View {
	if present := v.present.Load(); present != nil {
		return *present
	}
	return View{}
}

// history returns the last views, oldest first.
func (v *views) history() []Seen {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.last)
}
