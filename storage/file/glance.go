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
	// glanceMax is the maximum wait for a look, which is optional.
	glanceMax = time.Second
	// lookersMax is the maximum number of a Store's idle lookers. As long as the operating system
	// answers at once, there is no use for more lookers than processors.
	lookersMax = 4
)

// look is a check whether a file is visible, with room for the answer.
type look struct {
	root    *root
	name    string
	terms   terms
	answers chan answer[bool] // has a buffer of one
	timer   *time.Timer
}

// lookers is a pool of goroutines that perform looks. Each load of a table requests a look. A new
// goroutine for each look would cost several times as much as the system call, because the
// goroutine's stack has to grow. So a goroutine that has performed a look waits for the next.
type lookers struct {
	asked   chan *look // new looks, for the waiting lookers
	waiting atomic.Int64
	closed  chan struct{} // ends the waiting lookers
	close   func()
	free    sync.Pool // answered *look values, for reuse
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

// glance reports whether the file called name in root is visible. Unlike ask, glance does not wait
// for a slot, and waits at most glanceMax for the answer. answered is false if there was no answer.
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
		go c.takeLooks(l) // as in run, nothing waits for the goroutine to end
	}
	select {
	case given := <-l.answers:
		l.timer.Stop()
		l.root = nil
		c.lookers.free.Put(l)
		seen, err := given.result()
		return seen, err == nil
	case <-l.timer.C:
		return false, false // l is not reused: the looker may still send to it
	}
}

// takeLooks performs l, then waits for further looks and performs them.
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
