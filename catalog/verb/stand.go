package verb

import (
	"context"
	"time"

	"moorage/internal/worker"
)

// StandMax is how long a decision stands: a request that lasts longer is decided again.
const StandMax = 10 * time.Second

// Stand calls do, for a request that was let in and may last long. Each StandMax it calls again,
// which decides once more. When that refuses, the context of do ends, and Stand returns the refusal
// if do fails then. It is for requests that only read, or whose effect the caller can repeat: what
// do achieved is not taken back.
func Stand(ctx context.Context, again, do func(context.Context) error) error {
	standing, end := context.WithCancelCause(ctx)
	deciding := make(chan struct{}) // closed when nobody decides any more
	timer := time.AfterFunc(StandMax, func() {
		defer close(deciding)
		ticker := time.NewTicker(StandMax)
		defer ticker.Stop()
		for {
			if err := worker.Safely(standing, again); err != nil {
				end(&refusal{err})
				return
			}
			select {
			case <-ticker.C:
			case <-standing.Done():
				return
			}
		}
	})
	defer func() {
		end(nil)
		if !timer.Stop() {
			<-deciding
		}
	}()
	err := do(standing)
	if refused, ok := context.Cause(standing).(*refusal); ok && err != nil && ctx.Err() == nil {
		return refused.err
	}
	return err
}

// refusal is why a context ended whose request is not allowed any longer.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
