package locks

import (
	"context"
	"sync"
)

// NewHold returns a Hold for managers. Its Release ends the context and calls release, once; a
// second caller returns when that is done. lose ends the context with ErrLost; it may be called at
// any time, also again.
func NewHold(ctx context.Context, release func()) (held Hold, lose func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hold{ctx: ctx}
	h.release = sync.OnceFunc(func() {
		// First the context, so that work under the hold ends before somebody else begins.
		cancel(context.Canceled)
		release()
	})
	return h, func() { cancel(ErrLost) }
}

// hold keeps a context, which nothing else here does: handing it out is its purpose.
type hold struct {
	ctx     context.Context
	release func()
}

func (h *hold) Context() context.Context { return h.ctx }
func (h *hold) Release()                 { h.release() }
