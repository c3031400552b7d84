package locks

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// session is a node's view of its session in the store of leases: the session's leases, and the
// operations that use them. It makes no calls.
type session struct {
	name string

	mu       sync.Mutex // guards the fields below and fields that refer to it; no lock or call under it
	lastID   int64
	held     map[int64]*lease
	tickets  map[int64]struct{} // the tickets of waiting operations
	shares   map[Grant]*share   // leases for all operations: see Coalesced
	unneeded []int64            // leases and tickets that must still be released
	expiry   *time.Timer        // ends the session by this node's clock
	ended    bool
}

// lease is one row in the store, held or requested.
type lease struct {
	id    int64
	grant Grant
	share *share // nil for the lease of one operation

	users     map[*acquisition]struct{} // guarded by session.mu: operations that lose a lock if this lease is lost
	idleSince time.Time                 // guarded by session.mu: when a share lost its last user
}

// share is a lease that all operations of a node use together. Either the node holds the share, or
// an operation tries to take it.
type share struct {
	grant   Grant
	leader  *acquisition  // guarded by session.mu: the operation that tries to take it; nil when held
	lease   *lease        // guarded by session.mu: nil while an operation tries
	settled chan struct{} // closed when it is held, or when the attempt has ended
	retired bool          // guarded by session.mu: wanted by another node; cannot be joined; released by its last user
}

func newSession(name string) *session {
	return &session{name: name, held: make(map[int64]*lease), tickets: make(map[int64]struct{}),
		shares: make(map[Grant]*share)}
}

// isEnded reports whether the session has ended, so that all its leases are lost.
func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// drawTicket returns a new ticket, which the session knows until it is returned.
func (s *session) drawTicket() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	s.tickets[s.lastID] = struct{}{}
	return s.lastID
}

// returnTicket forgets a ticket whose wants ended with a grant.
func (s *session) returnTicket(ticket int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tickets, ticket)
}

// withdrawTicket forgets a ticket that may have left wants.
func (s *session) withdrawTicket(ticket int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tickets, ticket)
	s.unneeded = append(s.unneeded, ticket)
}

// newLeaseLocked returns a new lease to be requested; mu must be held.
func (s *session) newLeaseLocked(grant Grant, of *share) *lease {
	s.lastID++
	return &lease{id: s.lastID, grant: grant, share: of, users: make(map[*acquisition]struct{})}
}

// wish returns a new lease for each lock of plan.
func (s *session) wish(plan []Grant) []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	leases := make([]*lease, 0, len(plan))
	for _, grant := range plan {
		leases = append(leases, s.newLeaseLocked(grant, nil))
	}
	return leases
}

// granted records that leases were taken for op. It reports whether the session still has these
// leases.
func (s *session) granted(op *acquisition, leases []*lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	for _, l := range leases {
		s.held[l.id] = l
		l.users[op] = struct{}{}
		if l.share != nil {
			l.share.lease, l.share.leader = l, nil
			close(l.share.settled)
		}
	}
	op.leases = append(op.leases, leases...)
	return true
}

// detach removes op from all leases that it uses. It then marks leases without users for release,
// the most recently taken first. If a share is not retired, the session keeps it until shareIdleMax
// after now, for its next user. After detach, op leads no share, except the one for the lock kept.
func (s *session) detach(op *acquisition, now time.Time, kept Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range slices.Backward(op.leases) {
		delete(l.users, op)
		switch {
		case len(l.users) > 0 || s.held[l.id] == nil:
		case l.share == nil || l.share.retired:
			s.dropLocked(l)
		default:
			l.idleSince = now
		}
	}
	op.leases = nil
	op.leads = slices.DeleteFunc(op.leads, func(sh *share) bool {
		if sh.leader == op && sh.grant != kept {
			s.abandonLocked(sh)
		}
		return sh.leader != op
	})
}

// dropLocked makes a lease unneeded; mu must be held.
func (s *session) dropLocked(l *lease) {
	delete(s.held, l.id)
	s.unneeded = append(s.unneeded, l.id)
}

// abandonLocked lets other operations try to take a share; mu must be held.
func (s *session) abandonLocked(sh *share) {
	sh.leader = nil
	delete(s.shares, sh.grant)
	close(sh.settled)
}

// discard makes leases unneeded without knowing whether the store has them.
func (s *session) discard(leases []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		s.unneeded = append(s.unneeded, l.id)
	}
}

// takeUnneeded returns the ids to be released, and forgets them. An ended session has none.
func (s *session) takeUnneeded() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.unneeded
	s.unneeded = nil
	if s.ended {
		return nil
	}
	return ids
}

// hasUnneeded reports whether there are any ids to release.
func (s *session) hasUnneeded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended && len(s.unneeded) > 0
}

// keepUnneeded takes back ids that could not be released.
func (s *session) keepUnneeded(ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unneeded = append(s.unneeded, ids...)
}

// known returns every id that the session knows, sorted.
func (s *session) known() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(func(yield func(int64) bool) {
		for id := range s.held {
			if !yield(id) {
				return
			}
		}
		for id := range s.tickets {
			if !yield(id) {
				return
			}
		}
	}, cmp.Compare)
}

// expires calls lose after d, unless the session is renewed or ends earlier.
func (s *session) expires(d time.Duration, lose func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = time.AfterFunc(d, lose)
}

// renewed postpones the end of the session: it now ends after d.
func (s *session) renewed(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.expiry.Reset(d)
	}
}

// dropLost forgets the leases with these ids and returns the operations that used them.
func (s *session) dropLost(ids []int64) []*acquisition {
	s.mu.Lock()
	defer s.mu.Unlock()
	victims := make(map[*acquisition]struct{})
	for _, id := range ids {
		l, ok := s.held[id]
		if !ok {
			continue
		}
		delete(s.held, id)
		maps.Copy(victims, l.users)
		if l.share != nil && s.shares[l.grant] == l.share {
			delete(s.shares, l.grant)
		}
	}
	return slices.Collect(maps.Keys(victims))
}

// end ends the session for this node, and returns the operations that used its leases. Only the
// first call returns true.
func (s *session) end() (victims []*acquisition, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.ended = true
	s.expiry.Stop()
	users := make(map[*acquisition]struct{})
	for _, l := range s.held {
		maps.Copy(users, l.users)
	}
	for _, sh := range s.shares {
		if sh.leader != nil {
			sh.leader = nil
			close(sh.settled)
		}
	}
	clear(s.held)
	clear(s.shares)
	return slices.Collect(maps.Keys(users)), true
}
