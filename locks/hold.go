package locks

import (
	"context"
	"sync"
)

// NewHold returns a Hold for managers. Its Release ends the context and calls release once. If
// Release is called again, it returns when the first call is done. lose ends the context with
// ErrLost. It may be called at any time, and repeatedly.
func NewHold(ctx context.Context, release func()) (held Hold, lose func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hold{ctx: ctx}
	h.release = sync.OnceFunc(func() {
		// End the context first, so that work under the hold ends before the next operation begins.
		cancel(context.Canceled)
		release()
	})
	return h, func() { cancel(ErrLost) }
}

// hold keeps a context. No other type of this package keeps a context; a Hold must, because its
// purpose is to provide one.
type hold struct {
	ctx     context.Context
	release func()
}

func (h *hold) Context() context.Context { return h.ctx }
func (h *hold) Release()                 { h.release() }
