package locks

import (
	"context"
	"time"

	"moorage/internal/worker"
)

// Times of shares.
const (
	// shareIdleMax is the time for which a node keeps an unused share.
	shareIdleMax = time.Second
	// wantsInterval is the mean pause between two checks whether other nodes want this node's
	// shares.
	wantsInterval = 150 * time.Millisecond
)

// Coalesced is a Distributed in which a node takes leases in the modes RA, WA and R once, for all
// of its operations. That is possible because each of these modes is compatible with itself. Such a
// lease is a share.
//
// The node keeps a share for a second after its last use, so that the next operation takes only its
// own leases. The node gives up the share when another node wants a lease that the share excludes.
// After that, operations can no longer join the share, and its last user releases it. Until the
// node gives up an unused share, non-blocking requests of other nodes may fail because of it.
//
// A Coalesced must be closed. It is safe for concurrent use.
type Coalesced struct {
	*Distributed
	give *worker.Worker
}

// NewCoalesced returns a Coalesced that takes its leases through inner. Close closes inner, which
// must have no other user.
func NewCoalesced(inner *Distributed) *Coalesced {
	c := &Coalesced{Distributed: inner}
	c.give = inner.worker("lock shares", wantsInterval, c.giveUp)
	c.give.Start()
	return c
}

// Acquire implements Manager. If all leases that it needs are already shared, it makes no call.
func (c *Coalesced) Acquire(ctx context.Context, request Request, options Options) (Hold, error) {
	return c.acquire(ctx, request, options, c.take)
}

// Close gives up all shares, and closes the Distributed.
func (c *Coalesced) Close() {
	c.give.Stop()
	c.Distributed.Close()
}

// shareable reports whether operations of one node may use one lease together.
func (m Mode) shareable() bool { return m.Compatible(m) }

// take joins the shares that op needs and tries to take the rest.
func (c *Coalesced) take(ctx context.Context, op *acquisition, ticket int64) (blocked Grant, settled <-chan struct{},
	err error) {
	leases, busy, alive := op.session.join(op, ticket > 0 && !op.wants)
	switch {
	case !alive:
		return Grant{}, nil, errSessionEnded
	case busy != nil:
		op.session.detach(op, c.now(), Grant{})
		return busy.grant, busy.settled, nil
	}
	blocked, err = c.try(ctx, op, ticket, leases)
	if err == nil && !blocked.Path.IsZero() {
		op.session.detach(op, c.now(), blocked)
	}
	return blocked, nil, err
}

// join makes op a user of the held shares that it needs. If a share is neither held nor has a
// leader, op becomes its leader, and tries to take it. join returns the leases that op must take,
// in the order of the plan.
//
// If mayFollow is true, join may instead return a share that another operation is trying to take.
// Then op must leave and wait until that operation has taken the share or failed. An operation that
// follows leads no share, so followers form no cycle. An operation in the store's queue must not
// follow either. The leader that it follows may be newer, and wait for operations that wait behind
// op in the queue.
func (s *session) join(op *acquisition, mayFollow bool) (leases []*lease, busy *share, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, false
	}
	for _, grant := range op.plan {
		if !grant.Mode.shareable() {
			leases = append(leases, s.newLeaseLocked(grant, nil))
			continue
		}
		sh := s.shares[grant]
		switch {
		case sh == nil:
			sh = &share{grant: grant, leader: op, settled: make(chan struct{})}
			s.shares[grant] = sh
			op.leads = append(op.leads, sh)
			leases = append(leases, s.newLeaseLocked(grant, sh))
		case sh.lease != nil:
			sh.lease.users[op] = struct{}{}
			op.leases = append(op.leases, sh.lease)
		case sh.leader == op: // op waited for this share
			leases = append(leases, s.newLeaseLocked(grant, sh))
		case mayFollow:
			return nil, sh, true
		default:
			leases = append(leases, s.newLeaseLocked(grant, nil))
		}
	}
	return leases, nil, true
}

// giveUp gives up shares that other nodes want, and shares that were unused for shareIdleMax.
func (c *Coalesced) giveUp(ctx context.Context) error {
	s := c.presentSession()
	if s == nil || !s.hasShares() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	wanted, err := c.leases.Wanted(ctx, s.name, SessionTTL)
	if err != nil {
		c.log.DebugContext(ctx, "ask who wants leases", "error", err) // the heartbeat warns of an absent store
	}
	s.retire(wanted, c.now().Add(-shareIdleMax))
	c.releaseUnneeded(s)
	return nil
}

// hasShares reports whether the node has any shares.
func (s *session) hasShares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shares) > 0
}

// retire closes shares to further users: each share whose id is in wanted, or whose last use was
// before the time idle. Shares without users become unneeded.
func (s *session) retire(wanted []int64, idle time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range wanted {
		if l := s.held[id]; l != nil && l.share != nil {
			s.retireLocked(l)
		}
	}
	for _, sh := range s.shares {
		if l := sh.lease; l != nil && len(l.users) == 0 && !l.idleSince.After(idle) {
			s.retireLocked(l)
		}
	}
}

// retireLocked closes a share to further users; mu must be held.
func (s *session) retireLocked(l *lease) {
	if l.share.retired {
		return
	}
	l.share.retired = true
	delete(s.shares, l.grant)
	if len(l.users) == 0 {
		s.dropLocked(l)
	}
}
