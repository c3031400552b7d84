package commit

import (
	"bytes"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"moorage/registry"
)

// turnMax is the longest duration of a turn: a commit that hangs on its storage must not delay the
// commits behind it for longer. After its turn, the commit continues and its compare-and-set
// decides, as it does between nodes.
const turnMax = 5 * time.Second

// queue orders the commits to one pointer on this node by arrival. So commits do not waste work in
// races with each other, and fast commits do not starve slow ones. The commit whose turn it is may
// carry out waiting commits together with itself. Correctness does not depend on the queue: after
// turnMax two commits may run at once, and only the store decides between them. A pointer without
// commits uses no memory. queue is safe for concurrent use.
type queue struct {
	// mu guards the fields below and everything reachable from them. No lock is taken under it, and
	// it is never held over a wait.
	mu    sync.Mutex
	lines map[registry.ID]*line
}

// line is the queue of one pointer.
type line struct {
	turns   *list.List // of *turn in the order of arrival
	leading *turn      // nil between two turns
}

// turn is the place of one commit in a queue.
type turn struct {
	edition *edition // nil for a commit that no other commit can carry out
	pointer registry.ID
	place   *list.Element // nil when the turn has ended
	begun   chan struct{} // closed when the turn begins
	done    chan struct{} // closed when another commit did this one, or gave it back unwanted
	taken   bool          // another commit is carrying this one out
	waited  bool          // other turns were in front when it joined
	left    bool          // its caller stops waiting once the turn is given back
	timer   *time.Timer   // ends the turn after turnMax; nil until the turn begins
}

func newQueue() *queue { return &queue{lines: make(map[registry.ID]*line)} }

// waiting reports whether a commit waits for a turn at the pointer id.
func (q *queue) waiting(id registry.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[id]
	return line != nil && line.turns.Len() > 1
}

// take waits for a turn of e at the pointer id, or until another commit has carried out e. In the
// second case the turn is nil. The caller ends the turn. If the context ends before e is carried
// out, take returns its error, and there is no turn to end. While another commit carries e out,
// take waits until it has finished.
func (q *queue) take(ctx context.Context, id registry.ID, e *edition) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := q.join(id, e)
	select {
	case <-mine.begun:
		return mine, nil
	case <-mine.done:
		return nil, nil
	case <-ctx.Done():
	}
	if q.leave(mine) {
		return nil, ctx.Err()
	}
	select {
	case <-mine.begun: // just now
		q.end(mine)
		return nil, ctx.Err()
	case <-mine.done:
	}
	if !e.ended {
		return nil, ctx.Err()
	}
	return nil, nil
}

// takeAhead waits for a turn at the pointer id in front of all turns that have not begun, except
// earlier takeAhead turns. No other commit carries out the work of this turn. It returns the same
// errors as take.
func (q *queue) takeAhead(ctx context.Context, id registry.ID) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	mine := q.joinLocked(id, nil)
	if ahead := q.lines[id].lastAhead(mine); ahead != nil {
		q.lines[id].turns.MoveAfter(mine.place, ahead)
	} else {
		q.lines[id].turns.MoveToFront(mine.place)
	}
	q.mu.Unlock()
	select {
	case <-mine.begun:
		return mine, nil
	case <-ctx.Done():
	}
	if q.leave(mine) {
		return nil, ctx.Err()
	}
	return mine, nil // it has just begun
}

// takeAll calls takeAhead for each of ids, one after another, in an order that is the same for all
// callers. So no two callers wait for each other. When ctx ends, it continues without the remaining
// turns. release ends the turns. waited is true if other turns were in front in any queue.
func (q *queue) takeAll(ctx context.Context, ids []registry.ID) (release func(), waited bool) {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b registry.ID) int { return bytes.Compare(a[:], b[:]) })
	var turns []*turn
	for _, id := range slices.Compact(ids) {
		mine, err := q.takeAhead(ctx, id)
		if err == nil {
			turns = append(turns, mine)
		}
		waited = waited || err != nil || mine.waited
	}
	return func() {
		for _, mine := range slices.Backward(turns) {
			q.end(mine)
		}
	}, waited
}

// lastAhead returns the place of the last takeAhead turn other than mine. It returns nil if there
// is no such turn.
func (w *line) lastAhead(mine *turn) (last *list.Element) {
	for at := w.turns.Front(); at != nil; at = at.Next() {
		if other := at.Value.(*turn); other != mine && other.edition == nil {
			last = at
		}
	}
	return last
}

// takeIfFree begins a turn of e at the pointer id if its queue is empty. Otherwise it does nothing
// and returns nil.
func (q *queue) takeIfFree(id registry.ID, e *edition) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines[id] != nil {
		return nil
	}
	return q.joinLocked(id, e)
}

// join puts a turn at the end of the queue, and begins it if the queue was empty.
func (q *queue) join(id registry.ID, e *edition) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.joinLocked(id, e)
}

// joinLocked is join; mu must be held.
func (q *queue) joinLocked(id registry.ID, e *edition) *turn {
	waiting := q.lines[id]
	if waiting == nil {
		waiting = &line{turns: list.New()}
		q.lines[id] = waiting
	}
	mine := &turn{edition: e, pointer: id, begun: make(chan struct{}), done: make(chan struct{})}
	mine.place = waiting.turns.PushBack(mine)
	waiting.nextLocked(q)
	mine.waited = waiting.leading != mine
	return mine
}

// gather takes the commits behind the turn mine for which fits returns true, in their order. Each
// taken commit must be answered or given back.
func (q *queue) gather(mine *turn, fits func(*edition) bool) (taken []*turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.lines[mine.pointer]
	if waiting == nil || waiting.leading != mine {
		return nil // this turn lasted longer than turnMax, so another turn leads
	}
	for at := waiting.turns.Front(); at != nil; at = at.Next() {
		other := at.Value.(*turn)
		if other != mine && !other.taken && other.timer == nil && other.edition != nil && fits(other.edition) {
			other.taken = true
			taken = append(taken, other)
		}
	}
	return taken
}

// answered removes a taken commit from the queue. Its edition holds its result.
func (q *queue) answered(other *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(other)
	close(other.done)
}

// giveBack lets a taken commit wait for its turn again, at its old place.
func (q *queue) giveBack(other *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other.left {
		q.removeLocked(other)
		close(other.done)
		return
	}
	other.taken = false
	q.lines[other.pointer].nextLocked(q)
}

// leave takes a turn that has not begun out of the queue. It returns false and leaves the turn in
// the queue in two cases: another commit carries out its commit, or the turn has just begun.
func (q *queue) leave(mine *turn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if mine.taken {
		mine.left = true
	}
	if mine.taken || mine.place == nil || mine.timer != nil {
		return false
	}
	q.removeLocked(mine)
	return true
}

// end ends a turn that has begun and begins the next one. Further calls do nothing.
func (q *queue) end(ended *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ended.place == nil {
		return
	}
	ended.timer.Stop()
	q.removeLocked(ended)
}

// removeLocked takes a turn out of its queue; mu must be held.
func (q *queue) removeLocked(gone *turn) {
	waiting := q.lines[gone.pointer]
	waiting.turns.Remove(gone.place)
	gone.place = nil
	if waiting.leading == gone {
		waiting.leading = nil
	}
	if waiting.turns.Len() == 0 {
		delete(q.lines, gone.pointer)
		return
	}
	waiting.nextLocked(q)
}

// nextLocked begins the first turn that no other commit carries out, if no turn is under way; q.mu
// must be held.
func (w *line) nextLocked(q *queue) {
	if w.leading != nil {
		return
	}
	for at := w.turns.Front(); at != nil; at = at.Next() {
		next := at.Value.(*turn)
		if !next.taken {
			w.leading = next
			next.timer = time.AfterFunc(turnMax, func() { q.end(next) })
			close(next.begun)
			return
		}
	}
}
