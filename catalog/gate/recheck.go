package gate

import (
	"context"
	"time"

	"moorage/internal/worker"
)

// RecheckInterval is how long a decision remains valid. For a longer request, the decision is
// repeated.
const RecheckInterval = 10 * time.Second

// Recheck calls do, for an admitted request that may take long. The parameter again is a function
// that repeats the decision. Recheck calls this function every RecheckInterval. When the function
// refuses, Recheck ends the context of do. If do then fails, Recheck returns the refusal. The
// effects of do are not undone. So use Recheck for requests that only read, or that the caller can
// repeat.
func Recheck(ctx context.Context, again, do func(context.Context) error) error {
	checked, end := context.WithCancelCause(ctx)
	deciding := make(chan struct{}) // closed when no decision is running and none will start
	timer := time.AfterFunc(RecheckInterval, func() {
		defer close(deciding)
		ticker := time.NewTicker(RecheckInterval)
		defer ticker.Stop()
		for {
			if err := worker.Safely(checked, again); err != nil {
				end(&refusal{err})
				return
			}
			select {
			case <-ticker.C:
			case <-checked.Done():
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
	err := do(checked)
	if refused, ok := context.Cause(checked).(*refusal); ok && err != nil && ctx.Err() == nil {
		return refused.err
	}
	return err
}

// refusal is the cause of a context that Recheck ended because the request is no longer allowed.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
