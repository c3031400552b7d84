package access

import (
	"slices"
	"sync"

	"moorage"
)

// callersMax bounds the callers that one snapshot remembers.
const callersMax = 10_000

// Who is a caller as seen by one snapshot. It is safe for concurrent use.
type Who struct {
	snapshot *Snapshot
	caller   Caller
	direct   []number // the caller's own: its name, everyone, its token roles
	numbers  []number // direct, and all roles that direct are members of, sorted
	granted  []number // the numbers that have a grant on an object, or own a handed-over object
	mask     uint64   // has a bit set for each number, modulo 64
	owns     string   // the identity that makes the caller a creator; empty if the caller is narrowed to roles
	disabled bool
}

// Who returns the caller with its roles, as s records them. It caches callers, so most calls cost
// one map lookup. A disabled principal sees nothing.
func (s *Snapshot) Who(caller Caller) *Who { return s.callers.get(s, caller) }

// callers caches the callers of one snapshot.
type callers struct {
	// mu guards the fields below; leaf; never held over I/O.
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
		who.direct = append(who.direct, everyoneNumber, s.names.named(caller.Name))
		who.direct = append(who.direct, s.names.numbered(moorage.AnyIdentityOf(caller.Name)))
		who.owns = s.names.present(caller.Name)
	}
	for _, role := range caller.Roles {
		if GranteeOf(role) == IsTokenRole {
			who.direct = append(who.direct, s.names.named(role))
		}
	}
	who.numbers = s.names.closure(who.direct)
	if caller.Only != nil {
		who.narrow(caller.Only)
	}
	who.index()
	return who
}

// index prepares the lookups of the caller's grants.
func (w *Who) index() {
	anything, _ := w.snapshot.below.get(ServerID)
	for _, each := range w.numbers {
		w.mask |= 1 << (each % 64)
		if _, found := anything.grantees[each]; found {
			w.granted = append(w.granted, each)
		}
	}
}

// narrow takes all numbers from the caller except everyone, the given roles that the caller has,
// and the roles that these are members of.
func (w *Who) narrow(roles []string) {
	held := w.numbers
	w.owns, w.direct = "", nil
	if slices.Contains(held, everyoneNumber) {
		w.direct = append(w.direct, everyoneNumber)
	}
	for _, role := range roles {
		given := w.snapshot.names.named(role)
		if GranteeOf(role) != IsPrincipal && slices.Contains(held, given) {
			w.direct = append(w.direct, given)
		}
	}
	w.numbers = w.snapshot.names.closure(w.direct)
}

// is reports whether n is the caller, or a role that the caller is a member of.
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

// Is reports whether the caller is the principal, or has the role, with an identity. If so, the
// caller owns the objects of that identity.
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
