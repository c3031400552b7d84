package commit

import (
	"context"
	"sync"
	"time"

	"moorage"
)

// refusalsMax is the maximum number of refusals of one caller that a node stores under keys in a
// minute. Each refusal is a record that lives for half an hour. Many writers that share one caller
// name and lose races cause a few thousand refusals a minute.
const refusalsMax = 6000

// refusals counts the refusals that were stored in the present minute. It is safe for concurrent
// use.
type refusals struct {
	mu     sync.Mutex // guards the fields below; no lock is taken under it
	minute time.Time
	of     map[string]int // by caller name
}

// admit reports whether one more refusal of a caller may be stored at now.
func (r *refusals) admit(caller string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(r.minute) {
		r.minute, r.of = minute, make(map[string]int)
	}
	if r.of[caller] >= refusalsMax {
		return false
	}
	r.of[caller]++
	return true
}

// concludeRefused stores the refusal of w, if its caller sees the warehouse. For other callers it
// stores nothing: they could fill the store, and they do not need the outcome of their key.
func (p *Pipeline) concludeRefused(ctx context.Context, w *work, refusal error) (Outcome, error) {
	isIn, err := p.directory.Sees(ctx, w.asker(), w.Key.Warehouse)
	switch {
	case err != nil:
		return Outcome{}, err
	case !isIn:
		return p.afterFailure(ctx, w.key, refusal)
	case !p.refusals.admit(w.Caller.Name, p.now()):
		return p.afterFailure(ctx, w.key, moorage.Errorf(moorage.KindTooManyRequests,
			"Over %d requests with an Idempotency-Key were refused within a minute; try again later", refusalsMax))
	}
	return p.conclude(ctx, w, Outcome{}, refusal)
}
