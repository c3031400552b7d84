package access

import (
	"slices"
	"sync"

	"moorage"
)

// callersMax is the maximum number of callers that one snapshot caches.
const callersMax = 10_000

// Who is a caller in one snapshot, with all its roles. It is safe for concurrent use.
type Who struct {
	snapshot *Snapshot
	caller   Caller
	direct   []number // the caller's name, everyone, and the caller's token roles
	numbers  []number // direct, and all roles that contain them, directly or through other roles; sorted
	granted  []number // the numbers that have a grant, or own a transferred object
	mask     uint64   // has bit n modulo 64 for each number n
	owns     string   // the caller's identity as a creator; empty if the caller is limited to roles
	disabled bool
}

// Who returns the caller with the roles that it has in s. It caches callers, so most calls cost one
// map lookup. A caller whose principal is disabled sees nothing.
func (s *Snapshot) Who(caller Caller) *Who { return s.callers.get(s, caller) }

// callers caches the callers of one snapshot.
type callers struct {
	// mu guards the fields below. No lock is taken under it, and it is never held during I/O.
	mu     sync.RWMutex
	byName map[string][]*Who
	count  int
}

func newCallers() *callers { return &callers{byName: make(map[string][]*Who)} }

func (c *callers) get(s *Snapshot, caller Caller) *Who {
	c.mu.RLock()
	for _, who := range c.byName[caller.Name] {
		if who.caller.equal(caller) {
			c.mu.RUnlock()
			return who
		}
	}
	c.mu.RUnlock()
	who := newWho(s, caller)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= callersMax {
		clear(c.byName)
		c.count = 0
	}
	c.byName[caller.Name] = append(slices.Clip(c.byName[caller.Name]), who)
	c.count++
	return who
}

func newWho(s *Snapshot, caller Caller) *Who {
	caller.Roles, caller.Only = slices.Clone(caller.Roles), slices.Clone(caller.Only)
	who := &Who{snapshot: s, caller: caller, disabled: s.names.principals[caller.Name].Disabled}
	if GranteeOf(caller.Name) == IsPrincipal {
		who.direct = append(who.direct, everyoneNumber, s.names.numberOf(caller.Name))
		who.direct = append(who.direct, s.names.numbered(moorage.AnyIdentityOf(caller.Name)))
		who.owns = s.names.present(caller.Name)
	}
	for _, role := range caller.Roles {
		if GranteeOf(role) == IsTokenRole {
			who.direct = append(who.direct, s.names.numberOf(role))
		}
	}
	who.numbers = s.names.closure(who.direct)
	if caller.Only != nil {
		who.narrow(caller.Only)
	}
	who.index()
	return who
}

// index prepares the search for the caller's grants.
func (w *Who) index() {
	anything, _ := w.snapshot.below.get(ServerID)
	for _, each := range w.numbers {
		w.mask |= 1 << (each % 64)
		if _, found := anything.grantees[each]; found {
			w.granted = append(w.granted, each)
		}
	}
}

// narrow limits the caller to everyone, the given roles that the caller has, and the roles that
// contain these.
func (w *Who) narrow(roles []string) {
	held := w.numbers
	w.owns, w.direct = "", nil
	if slices.Contains(held, everyoneNumber) {
		w.direct = append(w.direct, everyoneNumber)
	}
	for _, role := range roles {
		given := w.snapshot.names.numberOf(role)
		if GranteeOf(role) != IsPrincipal && slices.Contains(held, given) {
			w.direct = append(w.direct, given)
		}
	}
	w.numbers = w.snapshot.names.closure(w.direct)
}

// is reports whether n belongs to the caller, or to a role that the caller has.
func (w *Who) is(n number) bool {
	if w.mask&(1<<(n%64)) == 0 {
		return false
	}
	low, high := 0, len(w.numbers)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if w.numbers[middle] < n {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(w.numbers) && w.numbers[low] == n
}

// Is reports whether identity belongs to the caller, or to a role that the caller has. If so, the
// caller owns that identity's objects.
func (w *Who) Is(identity string) bool {
	if w.disabled || identity == "" {
		return false
	}
	return identity == w.owns || w.is(w.snapshot.names.numbered(identity))
}

// Roles returns the names of all roles that the caller has, sorted.
func (w *Who) Roles() (roles []string) {
	for _, each := range w.numbers {
		if role := w.snapshot.names.name(each); GranteeOf(role) != IsPrincipal {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}
