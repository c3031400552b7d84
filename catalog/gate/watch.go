package gate

import (
	"context"
	"errors"
	"slices"

	"moorage/registry"
)

// Watch wraps store. All parts of this process must write through the returned store. If an Apply
// changes the policy, it returns only after g has read the change.
func (g *Guard) Watch(store registry.Store) registry.Store { return &watched{store, g} }

// watched is a store that reports its changes of policy to a guard.
type watched struct {
	registry.Store
	guard *Guard
}

// Unwrap implements registry.Wrapper.
func (w *watched) Unwrap() registry.Store { return w.Store }

// Apply implements registry.Store. For a request that begins after Apply has returned, the decision
// uses the policy written by Apply. If the outcome of Apply is unknown, its change may still take
// effect later. So requests read the epoch until a later change of policy succeeds. Both changes
// require the same epoch, so the earlier one can no longer take effect.
func (w *watched) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	at := slices.IndexFunc(batch.Writes, func(write registry.Write) bool { return write.Key == registry.EpochKey() })
	if at < 0 {
		return w.Store.Apply(ctx, batch)
	}
	doubts := w.guard.doubts.Load()
	etags, err := w.Store.Apply(ctx, batch)
	if errors.Is(err, registry.ErrUnknown) {
		w.guard.doubts.Add(1)
		return nil, err
	}
	if err != nil {
		return nil, err // the change was not and will not be applied
	}
	w.guard.settle(doubts)
	write := batch.Writes[at]
	w.guard.Observe(registry.Record{Key: write.Key, ETag: etags[at], Value: write.Value})
	_, _ = w.guard.current(ctx) // if this fails, the next request reads the policy or is refused
	return etags, nil
}

// settle records that changes of policy with unknown outcomes, up to number doubts, can no longer
// take effect.
func (g *Guard) settle(doubts uint64) {
	for settled := g.settled.Load(); settled < doubts; settled = g.settled.Load() {
		if g.settled.CompareAndSwap(settled, doubts) {
			return
		}
	}
}
