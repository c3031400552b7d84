package catalog

import (
	"container/list"
	"context"
	"sync"
	"time"

	"moorage/registry"
)

// turnMax is how long a turn lasts at most: a commit that hangs on its storage must not hold up
// those behind it for longer. After that its own compare-and-set decides, as it does between nodes.
const turnMax = 5 * time.Second

// turns puts the commits to one pointer on this node in a queue, in the order in which they came.
// So they do not race each other in vain, and fast ones do not overtake slow ones for ever. turns
// orders and protects nothing: once a turn has lasted turnMax two commits may work at once, and
// only the store decides between them. A pointer without commits costs no memory. turns is safe for
// concurrent use.
type turns struct {
	// mu guards the fields below and everything they lead to; leaf; never held over a wait.
	mu     sync.Mutex
	queues map[registry.ID]*list.List // of *turn in the order of arrival; the first is under way
}

// turn is one call of take.
type turn struct {
	pointer registry.ID
	place   *list.Element // nil when the turn has ended
	begun   chan struct{} // closed when the turn begins
	timer   *time.Timer   // ends the turn after turnMax; nil until it begins
}

func newTurns() *turns { return &turns{queues: make(map[registry.ID]*list.List)} }

// take waits for a turn at the pointer id and returns a function that ends it, which may be called
// again. If the context ends first, take returns its error, and there is nothing to release.
func (t *turns) take(ctx context.Context, id registry.ID) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := t.join(id)
	select {
	case <-mine.begun:
		return func() { t.end(mine) }, nil
	case <-ctx.Done():
		t.end(mine)
		return nil, ctx.Err()
	}
}

// takeIfFree begins a turn at the pointer id if nobody is in front, and else does nothing. It
// returns a function that ends the turn, which may be called again.
func (t *turns) takeIfFree(id registry.ID) (release func(), taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queues[id] != nil {
		return func() {}, false
	}
	mine := t.joinLocked(id)
	return func() { t.end(mine) }, true
}

// join puts a turn at the end of the queue, and begins it if nobody is in front.
func (t *turns) join(id registry.ID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.joinLocked(id)
}

// joinLocked is join. The caller holds mu.
func (t *turns) joinLocked(id registry.ID) *turn {
	queue := t.queues[id]
	if queue == nil {
		queue = list.New()
		t.queues[id] = queue
	}
	mine := &turn{pointer: id, begun: make(chan struct{})}
	mine.place = queue.PushBack(mine)
	if queue.Front() == mine.place {
		t.beginLocked(mine)
	}
	return mine
}

// end takes a turn out of the queue. If the turn had begun, the next one begins.
func (t *turns) end(ended *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ended.place == nil {
		return
	}
	queue := t.queues[ended.pointer]
	queue.Remove(ended.place)
	ended.place = nil
	if ended.timer == nil {
		return // it had not begun, so somebody else is in front
	}
	ended.timer.Stop()
	if next := queue.Front(); next != nil {
		t.beginLocked(next.Value.(*turn))
		return
	}
	delete(t.queues, ended.pointer)
}

// beginLocked begins the turn in front of a queue. The caller holds mu.
func (t *turns) beginLocked(next *turn) {
	next.timer = time.AfterFunc(turnMax, func() { t.end(next) })
	close(next.begun)
}
