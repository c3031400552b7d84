package locks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is how long one Acquire is ready to wait, for all its waits together. It belongs to one
// goroutine.
type patience struct {
	options Options
	now     func() time.Time
	began   time.Time
	expired <-chan time.Time // nil before the first wait
}

func newPatience(options Options, now func() time.Time) *patience {
	return &patience{options: options, now: now, began: now()}
}

// wait returns nil when granted is closed or another has come, ErrTimeout, or the context's error.
// Only an operation that waits may call it. A nil channel never comes.
func (p *patience) wait(ctx context.Context, granted <-chan struct{}, another <-chan time.Time) error {
	if p.expired == nil {
		p.expired = time.After(p.options.Limit())
	}
	select {
	case <-granted:
		return nil
	case <-another:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.expired:
		return ErrTimeout
	}
}

// ended teaches the Timeout how the Acquire went. An Acquire that did not wait, or was cancelled,
// says nothing about how long waiting takes.
func (p *patience) ended(err error) {
	switch {
	case p.expired == nil || p.options.Timeout == nil:
	case err == nil:
		p.options.Timeout.Succeeded(p.now().Sub(p.began))
	case errors.Is(err, ErrTimeout):
		p.options.Timeout.TimedOut()
	}
}

// errWait names the lock that was waited for in vain.
func errWait(blocked Grant, err error) error { return fmt.Errorf("%w: wait for %s", err, blocked) }
