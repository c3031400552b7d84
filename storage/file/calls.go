package file

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"moorage/internal/worker"
	"moorage/storage"
)

// Bounds of calls into the operating system. A call on a mount that hangs never returns, and holds
// its thread forever.
const (
	// callsMax is the maximum number of threads that a Store may hold inside the operating system.
	// A disk serves fewer calls at a time. A Go process with more than 10,000 threads dies.
	callsMax = 128
	// openerCallsMax is the maximum number of threads that all Stores of an Opener may hold
	// together, because many warehouses may be on one mount. Each Store may hold callsFew more.
	openerCallsMax = 2048
	callsFew       = 16
	// bytesMax is the maximum total size of the large bodies in a Store's calls, including
	// abandoned calls. A body of at least bytesOfCall is large. callsMax limits smaller bodies to
	// the same total.
	bytesMax    = callsMax * bytesOfCall
	bytesOfCall = 4 << 20
	// stuckAfter is the longest wait of a caller while all slots are taken and no call ends. After
	// that, further callers are refused at once.
	stuckAfter = 2 * time.Second
	// queueMax is the maximum wait for a slot, and for the bytes of bodies, in multiples of
	// stuckAfter.
	queueMax = 5
	// answerMax is the maximum wait for one lookup of a file, or for one piece of its content. The
	// wait for a write ends only with the write's context.
	answerMax = 10 * time.Second
	// writeGrace is the time for which the caller of a write still waits after the context has
	// ended. Unless it hangs, the write ends after its current step, and its caller learns the
	// result.
	writeGrace = time.Second
	// closeMax is the maximum wait for a file or folder to be closed.
	closeMax = time.Second
)

// calls limits the number of a Store's calls inside the operating system, and lets callers abandon
// calls that do not return. It is safe for concurrent use.
type calls struct {
	bytes  *semaphore.Weighted // for large bodies; separate, so that small calls do not queue behind them
	slots  *semaphore.Weighted
	shared *semaphore.Weighted // shared with other Stores
	few    *semaphore.Weighted // own slots, used when shared has none

	lookers *lookers

	inside atomic.Int64 // number of slots taken
	ended  atomic.Int64 // number of calls that have ended
	stuck  atomic.Bool  // no call ended for stuckAfter while a caller waited for a slot
}

func newCalls(shared *semaphore.Weighted) *calls {
	return &calls{
		bytes: semaphore.NewWeighted(bytesMax), slots: semaphore.NewWeighted(callsMax),
		shared: shared, few: semaphore.NewWeighted(callsFew),
		lookers: newLookers(),
	}
}

// enter takes the slots and bytes of t. It returns storage.ErrUnavailable if they do not become
// free in time, or if ctx ends.
func (c *calls) enter(ctx context.Context, t *terms) error {
	if c.enterBy(t, (*semaphore.Weighted).TryAcquire) {
		return nil
	}
	for range queueMax {
		if c.stuck.Load() {
			break
		}
		seen := c.ended.Load()
		waiting, cancel := context.WithTimeout(ctx, stuckAfter)
		entered := c.enterBy(t, func(s *semaphore.Weighted, n int64) bool { return s.Acquire(waiting, n) == nil })
		cancel()
		switch {
		case entered:
			return nil
		case ctx.Err() != nil:
			return unanswered(ctx)
		case c.ended.Load() == seen && t.from == nil: // calls with large bodies hang, but perhaps no others
			return c.refused()
		case c.ended.Load() == seen:
			c.stuck.Store(true)
		}
	}
	return c.refused()
}

func (c *calls) refused() error {
	return fmt.Errorf("%w: %d calls are waiting for the operating system", storage.ErrUnavailable, c.inside.Load())
}

// enterBy takes the slots and bytes of t with take, all or nothing. It reports whether it
// succeeded.
func (c *calls) enterBy(t *terms, take func(s *semaphore.Weighted, n int64) bool) bool {
	if t.from = nil; t.bytes > 0 && !take(c.bytes, t.bytes) { // a call without large bodies does not queue for bytes
		return false
	}
	t.from = c.shared
	if take(c.slots, t.slots) {
		if c.shared.TryAcquire(t.slots) {
			c.inside.Add(t.slots)
			return true
		}
		if t.from = c.few; take(c.few, t.slots) {
			c.inside.Add(t.slots)
			return true
		}
		c.slots.Release(t.slots)
	}
	c.bytes.Release(t.bytes)
	return false
}

// leave gives back the slots and bytes that enter took.
func (c *calls) leave(t terms) {
	c.inside.Add(-t.slots)
	c.ended.Add(1)
	c.stuck.Store(false)
	t.from.Release(t.slots)
	c.slots.Release(t.slots)
	if t.bytes > 0 {
		c.bytes.Release(t.bytes)
	}
}

// unanswered returns the error for a call that was abandoned because ctx has ended.
func unanswered(ctx context.Context) error {
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, context.Cause(ctx))
}

// terms holds the slots and bytes that a call takes, and how long its caller waits for the call.
type terms struct {
	slots int64
	bytes int64               // total size of large bodies
	grace time.Duration       // how long to wait after the end of the context
	from  *semaphore.Weighted // set by enter: the owner of its slots; nil without bytes
}

// aLook returns the terms of a call that changes nothing. Its caller can leave without waiting for
// the answer.
func aLook() terms { return terms{slots: 1} }

// aWrite returns the terms of a call that works on several files or folders at a time, up to
// batchAtOnce. bytes is the total size of the files' bodies.
func aWrite(files int, bytes int64) terms {
	if bytes < bytesOfCall {
		bytes = 0
	}
	return terms{slots: int64(max(files, 1)), bytes: min(bytes, bytesMax), grace: writeGrace}
}

// answer is the result of a call.
type answer[T any] struct {
	value T
	err   error
}

// errGone is the answer of a call whose goroutine ended without an answer.
var errGone = errors.New("the goroutine of a call ended")

// run runs call in its own goroutine and returns its result. If ctx has ended and the grace is
// over, run returns storage.ErrUnavailable. The caller must have called enter; the goroutine calls
// leave when call returns. If call panics, run panics. If call succeeds after run has returned, the
// goroutine passes the result to late, which may be nil.
//
// Nothing waits for the goroutine to end, because a system call cannot be ended.
func run[T any](ctx context.Context, c *calls, t terms, call func() (T, error), late func(T)) (T, error) {
	answers := make(chan answer[T], 1)
	var taken atomic.Bool // set by whichever comes first: the caller leaves, or the goroutine ends
	go func() {
		given := answer[T]{err: errGone}
		defer func() {
			if !taken.CompareAndSwap(false, true) && given.err == nil && late != nil {
				late(given.value)
			}
			c.leave(t)
			answers <- given
		}()
		given.err = worker.Safely(ctx, func(context.Context) (err error) {
			given.value, err = call()
			return err
		})
	}()
	select {
	case given := <-answers:
		return given.result()
	case <-ctx.Done():
	}
	if t.grace > 0 {
		timer := time.NewTimer(t.grace)
		defer timer.Stop()
		select {
		case given := <-answers:
			return given.result()
		case <-timer.C:
		}
	}
	if taken.CompareAndSwap(false, true) {
		var none T
		return none, unanswered(ctx)
	}
	given := <-answers // the goroutine is about to send it
	return given.result()
}

// result returns the answer to the caller.
func (a answer[T]) result() (T, error) {
	if panicked, ok := errors.AsType[*worker.PanicError](a.err); ok {
		panic(panicked)
	}
	return a.value, a.err
}

// ask calls enter, and then runs call.
func ask[T any](ctx context.Context, c *calls, t terms, call func() (T, error), late func(T)) (T, error) {
	if err := c.enter(ctx, &t); err != nil {
		var none T
		return none, err
	}
	return run(ctx, c, t, call, late)
}

// close closes a handle, and waits at most closeMax for that. If there is no free slot, the handle
// is closed later.
func (c *calls) close(closeIt func() error) error {
	closed := make(chan error, 1)
	go func() { // as in run
		t := aLook() // while it waits for a slot, it holds no thread
		wait := func(s *semaphore.Weighted, n int64) bool { return s.Acquire(context.Background(), n) == nil }
		if c.enterBy(&t, wait) {
			defer c.leave(t)
		}
		closed <- closeIt()
	}()
	timer := time.NewTimer(closeMax)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: it is not closed yet", storage.ErrUnavailable)
	}
}
