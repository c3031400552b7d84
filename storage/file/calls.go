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
// a thread as long.
const (
	// callsMax is how many threads a Store may hold inside the operating system. A disk serves
	// fewer at a time, and the process dies at 10,000 threads.
	callsMax = 128
	// openerCallsMax is how many threads the Stores of an Opener may hold together before each is
	// bound to callsFew: many warehouses may be on one mount.
	openerCallsMax = 2048
	callsFew       = 16
	// bytesOfCall is for how many bytes of bodies a call takes one more slot of callsMax. So files
	// that are being made hold at most half a gigabyte, also when nobody waits for them any more.
	bytesOfCall = 4 << 20
	// stuckAfter is for how long no call may end while all of callsMax are taken. After that
	// callers are refused at once.
	stuckAfter = 2 * time.Second
	// queueMax bounds the wait for one of callsMax, in times of stuckAfter.
	queueMax = 5
	// answerMax bounds the wait for one look at a file, or one piece of it. Writes end with their
	// contexts only.
	answerMax = 10 * time.Second
	// glanceMax bounds the wait for a look that may be left out.
	glanceMax = time.Second
	// writeGrace is how long a write may take to end after its context has ended. A write that does
	// not hang takes no further step, and then its caller knows what became of it.
	writeGrace = time.Second
	// closeMax bounds the wait for a file or folder to be closed.
	closeMax = time.Second
)

// calls bounds how many calls of a Store are inside the operating system, and lets callers go on
// without those that do not return. It is safe for concurrent use.
type calls struct {
	slots *semaphore.Weighted

	shared *sharedCalls // with other Stores

	inside atomic.Int64 // slots that are taken
	ended  atomic.Int64 // how many calls have ended
	stuck  atomic.Bool  // no call ended for stuckAfter while somebody waited for a slot
}

// sharedCalls are the calls of several Stores.
type sharedCalls struct {
	max    int64
	inside atomic.Int64
}

func newCalls(shared *sharedCalls) *calls {
	return &calls{slots: semaphore.NewWeighted(callsMax), shared: shared}
}

// enter takes so many slots, or is storage.ErrUnavailable if none comes free in time. It ends with
// ctx.
func (c *calls) enter(ctx context.Context, slots int64) error {
	if c.tryEnter(slots) {
		return nil
	}
	for range queueMax {
		if c.stuck.Load() || c.isBound() {
			break
		}
		seen := c.ended.Load()
		waiting, cancel := context.WithTimeout(ctx, stuckAfter)
		err := c.slots.Acquire(waiting, slots)
		cancel()
		switch {
		case err == nil:
			c.count(slots)
			return nil
		case ctx.Err() != nil:
			return unanswered(ctx)
		case c.ended.Load() == seen:
			c.stuck.Store(true)
		}
	}
	return fmt.Errorf("%w: %d calls are waiting for the operating system", storage.ErrUnavailable, c.inside.Load())
}

// tryEnter takes so many slots if they are free.
func (c *calls) tryEnter(slots int64) bool {
	if c.isBound() || !c.slots.TryAcquire(slots) {
		return false
	}
	c.count(slots)
	return true
}

// isBound reports whether c may take no more slots because of the bound that all stores share.
func (c *calls) isBound() bool {
	return c.shared.inside.Load() >= c.shared.max && c.inside.Load() >= callsFew
}

func (c *calls) count(slots int64) {
	c.inside.Add(slots)
	c.shared.inside.Add(slots)
}

// leave gives back what enter took.
func (c *calls) leave(slots int64) {
	c.count(-slots)
	c.ended.Add(1)
	c.stuck.Store(false)
	c.slots.Release(slots)
}

// unanswered is the error of a call that was left behind because ctx has ended.
func unanswered(ctx context.Context) error {
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, context.Cause(ctx))
}

// terms are the slots that a call takes, and how long its caller waits for it.
type terms struct {
	slots int64
	grace time.Duration // after the end of its context
}

// aLook returns the terms of a call that changes nothing: nobody needs its answer later.
func aLook() terms { return terms{slots: 1} }

// aWrite returns the terms of a call that works on so many files at a time, with bodies of so many
// bytes.
func aWrite(files int, bytes int64) terms {
	return terms{min(int64(max(files, 1))+bytes/bytesOfCall, callsMax), writeGrace}
}

// answer is what a call returned.
type answer[T any] struct {
	value T
	err   error
}

// errGone is the answer of a call whose goroutine ended without one.
var errGone = errors.New("the goroutine of a call ended")

// run calls call in a goroutine of its own and returns what it returns. If ctx has ended and the
// grace is over, run returns storage.ErrUnavailable. The caller has entered; the goroutine leaves
// when call returns. A panic of call becomes a panic of run. If call returns without an error after
// run has returned, late gets its result. late may be nil.
//
// The goroutine has no owner that waits for it: nobody can end a system call.
func run[T any](ctx context.Context, c *calls, t terms, call func() (T, error), late func(T)) (T, error) {
	answers := make(chan answer[T], 1)
	var taken atomic.Bool // by the caller, which returns, or by the goroutine, whose answer counts
	go func() {
		given := answer[T]{err: errGone}
		defer func() {
			if !taken.CompareAndSwap(false, true) && given.err == nil && late != nil {
				late(given.value)
			}
			c.leave(t.slots)
			answers <- given
		}()
		given.err = worker.Safely(ctx, func(context.Context) (err error) {
			given.value, err = call()
			return err
		})
	}()
	select {
	case given := <-answers:
		return given.taken()
	case <-ctx.Done():
	}
	if t.grace > 0 {
		timer := time.NewTimer(t.grace)
		defer timer.Stop()
		select {
		case given := <-answers:
			return given.taken()
		case <-timer.C:
		}
	}
	if taken.CompareAndSwap(false, true) {
		var none T
		return none, unanswered(ctx)
	}
	given := <-answers // it is on its way
	return given.taken()
}

// taken returns the answer to the caller.
func (a answer[T]) taken() (T, error) {
	if panicked, ok := errors.AsType[*worker.PanicError](a.err); ok {
		panic(panicked)
	}
	return a.value, a.err
}

// ask enters, and runs call.
func ask[T any](ctx context.Context, c *calls, t terms, call func() (T, error), late func(T)) (T, error) {
	if err := c.enter(ctx, t.slots); err != nil {
		var none T
		return none, err
	}
	return run(ctx, c, t, call, late)
}

// glance is ask for a look that may be left out, at half the cost: it waits for no slot, and not
// for long. answered is false if nothing is known.
func (c *calls) glance(look func() bool) (seen, answered bool) {
	if c.stuck.Load() || !c.tryEnter(1) {
		return false, false
	}
	answers := make(chan answer[bool], 1)
	go func() { // as in run
		given := answer[bool]{err: errGone}
		defer func() {
			c.leave(1)
			answers <- given
		}()
		given.err = worker.Safely(context.Background(), func(context.Context) error {
			given.value = look()
			return nil
		})
	}()
	timer := time.NewTimer(glanceMax)
	defer timer.Stop()
	select {
	case given := <-answers:
		seen, err := given.taken()
		return seen, err == nil
	case <-timer.C:
		return false, false
	}
}

// close closes what a call has opened and waits for that for a bounded time. It closes also when
// there is no slot.
func (c *calls) close(closeIt func() error) error {
	closed := make(chan error, 1)
	go func() { // as in run
		if c.slots.Acquire(context.Background(), 1) == nil { // waits as a goroutine, without a thread
			c.count(1)
			defer c.leave(1)
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
