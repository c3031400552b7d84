package guard

import (
	"context"
	"slices"

	"moorage/registry"
)

// Watch returns store, for all parts of this process that write to it: g hears of each change of
// policy before its caller does, and reads it.
func (g *Guard) Watch(store registry.Store) registry.Store { return &watched{store, g} }

// watched is a store whose changes of policy a guard hears of.
type watched struct {
	registry.Store
	guard *Guard
}

// Unwrap implements registry.Wrapper.
func (w *watched) Unwrap() registry.Store { return w.Store }

// Apply implements registry.Store. A request that begins when it has returned is decided by the
// policy that it wrote: also if its answer was lost, and it happened or may yet.
func (w *watched) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	at := slices.IndexFunc(batch.Writes, func(write registry.Write) bool { return write.Key == registry.EpochKey() })
	if at < 0 {
		return w.Store.Apply(ctx, batch)
	}
	etags, err := w.Store.Apply(ctx, batch)
	if _, failed := registry.FailedCondition(err); failed {
		return nil, err
	}
	write := batch.Writes[at]
	w.guard.Saw(registry.Record{Key: write.Key, ETag: registry.ETag{1}, Value: write.Value})
	if err == nil {
		_, _ = w.guard.current(ctx) // else the next request reads it, or is refused
	}
	return etags, err
}
