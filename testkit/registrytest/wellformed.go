package registrytest

import (
	"context"
	"errors"
	"testing"

	"moorage/registry"
)

// WellFormed wraps a store so that a test fails when the store refuses a call as malformed
// (registry.ErrBadBatch). Such a refusal means that the code that made the call has a fault. The
// client would get an internal error, which a test easily mistakes for an expected failure.
//
// The store has only the methods of registry.Store. It is safe for concurrent use.
func WellFormed(tb testing.TB, store registry.Store) registry.Store { return wellFormed{store, tb} }

type wellFormed struct {
	registry.Store
	tb testing.TB
}

func (s wellFormed) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := s.Store.Apply(ctx, batch)
	if errors.Is(err, registry.ErrBadBatch) {
		s.tb.Errorf("the code planned a malformed batch: %v", err)
	}
	return etags, err
}
