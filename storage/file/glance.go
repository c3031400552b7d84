package file

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"moorage/internal/worker"
)

const (
	// glanceMax bounds the wait for a look that may be left out.
	glanceMax = time.Second
	// lookersMax is how many lookers of a Store wait for a look. While the operating system answers
	// at once, more than there are processors are of no use.
	lookersMax = 4
)

// look is a question whether a file can be seen, and the place for its answer.
type look struct {
	root    *root
	name    string
	terms   terms
	answers chan answer[bool] // has room for one
	timer   *time.Timer
}

// lookers are goroutines that take looks. Each load of a table takes one. A goroutine for each look
// would cost several times what the system call costs, because its stack has to grow. So one that
// has taken a look waits for the next.
type lookers struct {
	asked   chan *look // to those that wait
	waiting atomic.Int64
	closed  chan struct{} // ends those that wait
	close   func()
	free    sync.Pool // of *look that were answered
}

func newLookers() *lookers {
	l := &lookers{asked: make(chan *look), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	l.free.New = func() any {
		timer := time.NewTimer(glanceMax)
		timer.Stop()
		return &look{answers: make(chan answer[bool], 1), timer: timer}
	}
	return l
}

// glance reports whether the file of root called name can be seen. Unlike ask, it waits for no
// slot, and not for long. answered is false if nothing is known.
func (c *calls) glance(root *root, name string) (seen, answered bool) {
	t := aLook()
	if c.stuck.Load() || !c.enterBy(&t, (*semaphore.Weighted).TryAcquire) {
		return false, false
	}
	l := c.lookers.free.Get().(*look)
	l.root, l.name, l.terms = root, name, t
	l.timer.Reset(glanceMax)
	select {
	case c.lookers.asked <- l:
	default:
		go c.takeLooks(l) // nobody waits for it, as in run
	}
	select {
	case given := <-l.answers:
		l.timer.Stop()
		l.root = nil
		c.lookers.free.Put(l)
		seen, err := given.taken()
		return seen, err == nil
	case <-l.timer.C:
		return false, false // and l stays with who looks
	}
}

// takeLooks takes l, and then the looks that come while it waits.
func (c *calls) takeLooks(l *look) {
	for {
		c.take(l)
		if c.lookers.waiting.Add(1) > lookersMax {
			c.lookers.waiting.Add(-1)
			return
		}
		select {
		case l = <-c.lookers.asked:
			c.lookers.waiting.Add(-1)
		case <-c.lookers.closed:
			return
		}
	}
}

func (c *calls) take(l *look) {
	given := answer[bool]{err: errGone}
	defer func() {
		c.leave(l.terms)
		l.answers <- given
	}()
	given.err = worker.Safely(context.Background(), func(context.Context) error {
		given.value = l.root.files.Seen(l.name) && !l.root.isHidden(l.name)
		return nil
	})
}
