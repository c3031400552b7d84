package memory_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit"
)

// TestStoreGoesByItsClock: the store's time is that of its clock. A closed store and an ended
// context are errors.
func TestStoreGoesByItsClock(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	store := memory.NewWithClock(rand.Reader, clock.Now)
	before, err := store.Time(t.Context())
	if err != nil || !before.Equal(clock.Now()) {
		t.Errorf("the time is %v, %v", before, err)
	}
	clock.Advance(-time.Hour)
	if after, err := store.Time(t.Context()); err != nil || !after.Before(before) {
		t.Errorf("the time is %v after the clock was set back, %v", after, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := store.Time(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("for a request that has ended: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := store.Time(t.Context()); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
}
