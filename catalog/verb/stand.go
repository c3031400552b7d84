package verb

import (
	"context"
	"time"

	"moorage/internal/worker"
)

// StandMax is how long a decision remains valid: a longer request is decided again.
const StandMax = 10 * time.Second

// Stand calls do, for an admitted request that may take long. Every StandMax it repeats the
// decision by calling again. When again refuses, the context of do ends, and Stand returns the
// refusal if do fails then. Use it for requests that only read, or whose effect the caller can
// repeat: the effects of do are not undone.
func Stand(ctx context.Context, again, do func(context.Context) error) error {
	standing, end := context.WithCancelCause(ctx)
	deciding := make(chan struct{}) // closed when no decision is running or will start
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

// refusal is the cause of a context that ended because its request is no longer allowed.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
