package catalogkit

import (
	"context"
	"time"

	"moorage/registry"
)

// OtherBy returns another catalog over store, for a node whose clock is ahead.
func (f *Fixture) OtherBy(store registry.Store, ahead time.Duration) *Instance {
	f.T.Helper()
	inner := *f
	inner.Config.Now = func() time.Time { return f.Clock.Now().Add(ahead) }
	return inner.Other(store)
}

// ClockedStore is a store that uses another clock.
type ClockedStore struct {
	registry.Store
	Now func() time.Time
}

// Time implements registry.Store.
func (s ClockedStore) Time(context.Context) (time.Time, error) { return s.Now(), nil }

// HangingStore is a store in which, while hangs is set, List and ListKeys do not return until the
// context ends.
type HangingStore struct {
	registry.Store
	Hangs bool
}

// List implements registry.Store.
func (s *HangingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) (
	[]registry.Record, error) {
	if s.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// ListKeys implements registry.Store.
func (s *HangingStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) (
	[]registry.Record, error) {
	if s.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

// Other returns another catalog over the same stores, as for another node.
func (f *Fixture) Other(store registry.Store) *Instance {
	f.T.Helper()
	config := f.Config
	config.Store = store
	c, err := NewInstance(config)
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

// Unlocked is like Other, for a node that takes no locks.
func (f *Fixture) Unlocked(store registry.Store) *Instance {
	f.T.Helper()
	node := *f
	node.Config.Locks = NoLocks()
	return node.Other(store)
}
