package locks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience limits the total of all waits of one Acquire. It belongs to one goroutine.
type patience struct {
	options Options
	now     func() time.Time
	began   time.Time
	expired <-chan time.Time // nil before the first wait
}

func newPatience(options Options, now func() time.Time) *patience {
	return &patience{options: options, now: now, began: now()}
}

// wait returns nil when one of the two channels is ready. Otherwise it returns ErrTimeout or the
// context's error. A NonBlocking operation must not call it. A nil channel is never ready.
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

// errWait adds the lock to err, the error of a failed wait.
func errWait(blocked Grant, err error) error { return fmt.Errorf("%w: wait for %s", err, blocked) }
