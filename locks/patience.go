package locks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is how long one Acquire may wait, for all its waits together. It belongs to one
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

// wait returns nil when the channel granted or the channel another is ready. Otherwise it returns
// ErrTimeout or the context's error. A NonBlocking operation must not call it. A nil channel is
// never ready.
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

// reportResult reports the result of the Acquire to the Timeout. It leaves out an Acquire that did
// not wait or was cancelled, because that does not show how long waiting takes.
func (p *patience) reportResult(err error) {
	switch {
	case p.expired == nil || p.options.Timeout == nil:
	case err == nil:
		p.options.Timeout.Succeeded(p.now().Sub(p.began))
	case errors.Is(err, ErrTimeout):
		p.options.Timeout.TimedOut()
	}
}

// errWait adds to err the lock for which the wait failed.
func errWait(blocked Grant, err error) error { return fmt.Errorf("%w: wait for %s", err, blocked) }
