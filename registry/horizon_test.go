package registry_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"moorage/registry"
	"moorage/registry/memory"
)

// countingStore counts the changes that are read.
type countingStore struct {
	registry.Store
	read  int
	calls int
}

func (s *countingStore) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	page, err := s.Store.Changes(ctx, after, limit)
	s.read += len(page)
	s.calls++
	return page, err
}

// Head finds the last position from any start and despite any gaps, and reads few changes.
func TestHead(t *testing.T) {
	t.Parallel()
	const count, callsMax = 1000, 40
	store := &countingStore{Store: memory.New(rand.Reader)}
	wantHead := func(from, want registry.Position) {
		t.Helper()
		store.calls = 0
		if got, err := registry.Head(t.Context(), store, from); err != nil || got != want || store.calls > callsMax {
			t.Errorf("the head behind %d is %d after %d calls, want %d (%v)", from, got, store.calls, want, err)
		}
	}
	wantHead(0, 0)
	for n := range count {
		change := registry.Change{ID: registry.ID{1, byte(n >> 8), byte(n)}}
		if _, err := store.Apply(t.Context(), registry.Batch{Change: &change}); err != nil {
			t.Fatal(err)
		}
		if n < 20 {
			wantHead(0, registry.Position(n+1))
		}
	}
	for _, from := range []registry.Position{0, 1, 2, 499, count - 1, count} {
		wantHead(from, count)
	}
	for n := 1; n < count-1; n++ { // keeps the first and the last
		remove := registry.Delete(registry.ChangeKey(registry.ID{1, byte(n >> 8), byte(n)}))
		if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{remove}}); err != nil {
			t.Fatal(err)
		}
	}
	wantHead(0, count)
	wantHead(500, count)
}

// A reader that is behind the horizon gets an error. Other readers get their page, even if they
// have read nothing and nothing was deleted.
func TestFollow(t *testing.T) {
	t.Parallel()
	store := memory.New(rand.Reader)
	for n := range 3 {
		if _, err := store.Apply(t.Context(), registry.Batch{Change: &registry.Change{ID: registry.ID{1, byte(n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := registry.Follow(t.Context(), store, 0, 10); err != nil || len(page) != 3 {
		t.Errorf("%d changes, %v", len(page), err)
	}
	value, err := registry.Encode(registry.Horizon{Position: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{
		registry.Delete(registry.ChangeKey(registry.ID{1, 0})), registry.Delete(registry.ChangeKey(registry.ID{1, 1})),
		registry.Put(registry.HorizonKey(), registry.StateNone, value),
	}}); err != nil {
		t.Fatal(err)
	}
	for after, want := range []error{registry.ErrForgotten, registry.ErrForgotten, nil, nil} {
		if _, err := registry.Follow(t.Context(), store, registry.Position(after), 10); !errors.Is(err, want) {
			t.Errorf("a reader at %d is answered %v, want %v", after, err, want)
		}
	}
}
