package locks

import (
	"context"
	"sync"
	"time"
)

// acquisition is one Acquire at a node of a cluster, and its hold.
type acquisition struct {
	node *Distributed
	plan []Grant
	hold Hold
	lose func() // ends the context of hold

	wants  bool     // its ticket is in the store's queue; used only by Acquire's goroutine
	leases []*lease // guarded by session.mu: the leases in use
	leads  []*share // guarded by session.mu: shares to take for all operations

	mu        sync.Mutex // guards the fields below; no other lock is taken under it
	session   *session   // nil before the operation enters one; only the goroutine of the Acquire changes it
	missed    bool       // a lease was lost before all were taken
	granted   bool
	grantedAt time.Time
	over      bool
}

// newAcquisition returns an acquisition that holds the locks of the node's Local, and no lease yet.
func newAcquisition(ctx context.Context, node *Distributed, plan []Grant) *acquisition {
	op := &acquisition{node: node, plan: plan}
	op.hold, op.lose = NewHold(ctx, op.giveBack)
	return op
}

// enter makes s the session of op, which must not use any lease at that time.
func (op *acquisition) enter(s *session) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.session, op.missed, op.wants = s, false, false
}

// complete makes op's hold. It returns false if op has lost a lease.
func (op *acquisition) complete() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.missed {
		op.missed = false
		return false
	}
	op.granted, op.grantedAt = true, op.node.now()
	return true
}

// endHold ends the hold of op after the loss of a lease of session s.
func (op *acquisition) endHold(s *session) {
	op.mu.Lock()
	losing := op.session == s && op.granted && !op.over
	if op.session == s && !op.granted {
		op.missed = true
	}
	op.mu.Unlock()
	if !losing {
		return
	}
	op.lose()
	for _, grant := range op.plan {
		if grant.Mode.coversSubtree() {
			op.node.observer.LockLost(grant.Path.Level())
		}
	}
	op.hold.Release()
}

// giveBack releases op's leases, and then its locks in the node's Local. The hold's Release calls
// it. If op has no leases, giveBack does not wait for the store.
func (op *acquisition) giveBack() {
	op.mu.Lock()
	op.over = true
	s, granted, grantedAt := op.session, op.granted, op.grantedAt
	op.mu.Unlock()

	if s != nil {
		s.detach(op, op.node.now(), Grant{})
		if granted {
			op.node.releaseUnneeded(s)
		} else {
			op.node.releaseInBackground(s)
		}
	}
	op.node.local.release(op.plan)
	if granted {
		reportHeld(op.node.observer, op.plan, op.node.now().Sub(grantedAt))
	}
}
