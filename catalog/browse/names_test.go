package browse

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

// slowStore lists keys only after it was let go on.
type slowStore struct {
	registry.Store
	goOn chan struct{}
}

func (s *slowStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	select {
	case <-s.goOn:
		return s.Store.ListKeys(ctx, table, prefix, after, limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func nothing(*index) {}

// The index goes some time after the last search, and not before.
func TestIndexGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		n := newNames(registrytest.Ledger(store), store)
		is := func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.index != nil
		}
		testkit.Must(t, n.use(t.Context(), nothing))
		for range 2 {
			time.Sleep(indexLife - time.Second)
			if !is() {
				t.Error("the index went too early")
			}
			testkit.Must(t, n.use(t.Context(), nothing))
		}
		time.Sleep(indexLife + time.Second)
		if is() {
			t.Error("the index stays")
		}
		testkit.Must(t, n.use(t.Context(), nothing))
	})
}

// A search waits some seconds for the index, and is then answered that it is being made. The index
// is made once.
func TestIndexThatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{memory.New(rand.Reader), make(chan struct{})}
		n := newNames(registrytest.Ledger(store), store)
		began := time.Now()
		err := n.use(t.Context(), nothing)
		if moorage.KindOf(err) != moorage.KindUnavailable || err == nil || time.Since(began) != buildPatience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.use(ctx, nothing); moorage.KindOf(err) != moorage.KindUnavailable || err == nil {
			t.Errorf("with a client that has gone: %v", err)
		}
		close(store.goOn)
		testkit.Must(t, n.use(t.Context(), nothing))
	})
}

// If changes were deleted that the index has not seen, another one is made.
func TestIndexAfterForgottenChanges(t *testing.T) {
	t.Parallel()
	store := memory.New(rand.Reader)
	n := newNames(registrytest.Ledger(store), store)
	testkit.Must(t, n.use(t.Context(), nothing))
	before := n.index
	value, err := registry.Encode(registry.Horizon{Position: 1000})
	testkit.Must(t, err)
	_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.HorizonKey(), registry.StateNone, value)}})
	testkit.Must(t, err)
	testkit.Must(t, n.use(t.Context(), nothing))
	if n.index == before || n.position != 1000 {
		t.Errorf("the index is at position %d", n.position)
	}
}
