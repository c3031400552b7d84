package locks

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// If the map of a Local has had more than nodesKeptMax paths, the Local replaces it when idle. A Go
// map keeps the memory of its largest size.
const nodesKeptMax = 1024

// nodesSpareMax is the number of unused nodes that a Local keeps for reuse. Most transactions need
// fewer.
const nodesSpareMax = 64

// Local is a Manager for one process. The cost of an Acquire grows with the depth of its paths, not
// with the number of held locks. A path without holders and waiters costs no memory, except that up
// to nodesSpareMax unused nodes are kept. Local never loses a lock. It is safe for concurrent use.
type Local struct {
	now      func() time.Time
	observer Observer

	mu    sync.Mutex // guards the fields below and their nodes; never held during a wait or with another lock
	nodes map[Path]*node
	spare []*node // unused nodes, kept for other paths
	peak  int     // maximum number of nodes since the map was made
	steps int64   // nodes and waiters visited: the work done, for the tests
}

// LocalConfig configures a Local. The zero value is usable.
type LocalConfig struct {
	Now      func() time.Time // default time.Now; measures the Observer's times
	Observer Observer         // default: none
}

// NewLocal returns a Local without locks.
func NewLocal(config LocalConfig) *Local {
	l := &Local{now: config.Now, observer: config.Observer, nodes: make(map[Path]*node)}
	if l.now == nil {
		l.now = time.Now
	}
	if l.observer == nil {
		l.observer = noObserver{}
	}
	return l
}

// node is the state of one path. It is in the map nodes while the path has holders or waiters.
type node struct {
	held  [W + 1]int // number of operations that hold the path, by mode
	wants [W + 1]int // number of waiters in queue, by mode
	queue list.List  // of *waiter, in the order of arrival
}

// waiter is one Acquire that waits for one lock.
type waiter struct {
	mode    Mode
	element *list.Element // its place in the queue; nil after the grant
	granted chan struct{} // closed by the grant
}

// Stats holds the sizes of a manager's state in memory.
type Stats struct {
	Paths   int // paths that are held or waited for
	Waiters int // Acquires that wait for others in the process
	Leases  int // leases that are held in a store of leases
}

// Stats returns the present state.
func (l *Local) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := Stats{Paths: len(l.nodes)}
	for _, n := range l.nodes {
		stats.Waiters += n.queue.Len()
	}
	return stats
}

// Acquire implements Manager. It takes free locks in one pass, and waits for the others in the
// order of arrival.
func (l *Local) Acquire(ctx context.Context, request Request, options Options) (Hold, error) {
	plan := Plan(request)
	patience := newPatience(options, l.now)
	err := l.acquire(ctx, plan, patience)
	patience.reportResult(err)
	if err != nil {
		return nil, err
	}
	granted := l.now()
	hold, _ := NewHold(ctx, func() {
		l.release(plan)
		reportHeld(l.observer, plan, l.now().Sub(granted))
	})
	return hold, nil
}

// acquire takes all of plan, or nothing.
func (l *Local) acquire(ctx context.Context, plan []Grant, patience *patience) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("locks: acquire: %w", err)
	}
	nonBlocking := patience.options.NonBlocking
	for taken := 0; ; taken++ {
		free, turn := l.take(plan[taken:], nonBlocking)
		if taken += free; taken == len(plan) {
			return nil
		}
		blocked := plan[taken]
		l.observer.LockConflicted(blocked.Path.Level())
		if nonBlocking {
			l.release(plan[:taken])
			return &ConflictError{blocked}
		}
		if err := l.wait(ctx, blocked, turn, patience); err != nil {
			l.release(plan[:taken])
			return errWait(blocked, err)
		}
	}
}

// take takes the locks of plan until one is unavailable. It returns the number of locks taken and,
// unless nonBlocking, a place in the queue of the unavailable lock.
func (l *Local) take(plan []Grant, nonBlocking bool) (taken int, turn *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, grant := range plan {
		l.steps++
		n := l.nodes[grant.Path]
		if n == nil {
			n = l.newNodeLocked()
			l.nodes[grant.Path] = n
			l.peak = max(l.peak, len(l.nodes))
		}
		// An operation queues behind an earlier waiter if its lock would make that waiter wait
		// longer.
		if conflicts[grant.Mode]&(modesIn(&n.held)|modesIn(&n.wants)) == 0 {
			n.held[grant.Mode]++
			continue
		}
		if !nonBlocking {
			turn = &waiter{mode: grant.Mode, granted: make(chan struct{})}
			turn.element = n.queue.PushBack(turn)
			n.wants[grant.Mode]++
		}
		return i, turn
	}
	return len(plan), nil
}

// newNodeLocked returns the node of a path without holders and waiters. mu must be held.
func (l *Local) newNodeLocked() *node {
	last := len(l.spare) - 1
	if last < 0 {
		return new(node)
	}
	n := l.spare[last]
	l.spare = l.spare[:last]
	return n
}

// wait returns nil when turn is granted. On an error turn does not hold the lock, and is no longer
// in the queue.
func (l *Local) wait(ctx context.Context, grant Grant, turn *waiter, patience *patience) error {
	began := l.now()
	err := patience.wait(ctx, turn.granted, nil)
	if err != nil {
		l.abandon(grant.Path, turn)
	}
	l.observer.LockWaited(grant.Path.Level(), l.now().Sub(began), err)
	return err
}

// abandon removes turn from the queue, or releases the lock if turn was granted at the same moment.
func (l *Local) abandon(path Path, turn *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[path]
	if turn.element == nil {
		n.held[turn.mode]--
	} else {
		n.queue.Remove(turn.element)
		n.wants[turn.mode]--
	}
	l.settleLocked(path, n)
}

// release releases the locks of plan in reverse order.
func (l *Local) release(plan []Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(plan) - 1; i >= 0; i-- {
		n := l.nodes[plan[i].Path]
		n.held[plan[i].Mode]--
		l.settleLocked(plan[i].Path, n)
	}
}

// settleLocked grants free locks to waiters, in the order of their arrival, and drops an unused
// node. While a waiter cannot get its lock, the later waiters that it excludes must wait too. mu
// must be held.
func (l *Local) settleLocked(path Path, n *node) {
	l.steps++
	var passedOver modeSet
	for element := n.queue.Front(); element != nil && n.canGrant(passedOver); {
		l.steps++
		turn := element.Value.(*waiter)
		element = element.Next()
		if conflicts[turn.mode]&(modesIn(&n.held)|passedOver) != 0 {
			passedOver |= setOf(turn.mode)
			continue
		}
		n.queue.Remove(turn.element)
		turn.element = nil
		n.wants[turn.mode]--
		n.held[turn.mode]++
		close(turn.granted)
	}

	if modesIn(&n.held)|modesIn(&n.wants) != 0 {
		return
	}
	delete(l.nodes, path)
	if len(l.spare) < nodesSpareMax {
		l.spare = append(l.spare, n)
	}
	if len(l.nodes) == 0 && l.peak > nodesKeptMax {
		l.nodes, l.peak = make(map[Path]*node), 0
	}
}

// canGrant reports whether any mode could still be granted to a waiter behind waiters for the modes
// in passedOver. Without this check, a release would walk a long queue in vain.
func (n *node) canGrant(passedOver modeSet) bool {
	excluding := modesIn(&n.held) | passedOver
	for _, mode := range [...]Mode{RA, R, WA, W} {
		if n.wants[mode] > 0 && conflicts[mode]&excluding == 0 {
			return true
		}
	}
	return false
}

// modesIn returns the modes whose count is not zero.
func modesIn(counts *[W + 1]int) modeSet {
	var set modeSet
	for _, mode := range [...]Mode{RA, R, WA, W} {
		if counts[mode] > 0 {
			set |= setOf(mode)
		}
	}
	return set
}
