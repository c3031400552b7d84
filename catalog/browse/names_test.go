package browse

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/access"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

// slowStore blocks a list of keys until the test lets it continue.
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

// The index is dropped some time after the last search, and not earlier.
func TestIndexGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		n := newNames(registrytest.Ledger(store), store)
		is := func() bool {
			unlock, err := n.lock(t.Context())
			testkit.Must(t, err)
			defer unlock()
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

// A search waits some seconds for the index, and then returns an error because the index is still
// being made. The index is made only once.
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

// A search that waits for its turn ends with its context. A new index lives as long as one that a
// search has just used.
func TestTurnOfTheIndex(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		n := newNames(registrytest.Ledger(store), store)
		testkit.Must(t, n.make(t.Context()))
		time.Sleep(indexLife - time.Second)
		testkit.Must(t, n.make(t.Context()))
		time.Sleep(2 * time.Second)
		unlock, err := n.lock(t.Context())
		testkit.Must(t, err)
		if n.index == nil {
			t.Error("the second index went with the first")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.use(ctx, nothing); moorage.KindOf(err) != moorage.KindUnavailable || err == nil {
			t.Errorf("a search that waits: %v", err)
		}
		unlock()
		testkit.Must(t, n.use(t.Context(), nothing))
		time.Sleep(indexLife + time.Second)
	})
}

// A caller that sees everything only needs the namespaces that are hits.
func TestHitsIn(t *testing.T) {
	t.Parallel()
	var hits []hit
	for range 3 {
		in := &space{}
		hits = append(hits, hit{in: in, kind: access.Table}, hit{in: in, kind: access.Namespace})
	}
	for _, tt := range []struct {
		spaces  int
		seesAll bool
		want    int
	}{{2, false, 4}, {2, true, 5}, {3, false, 6}} {
		if got := len(hitsIn(hits, tt.spaces, tt.seesAll)); got != tt.want {
			t.Errorf("%+v: %d hits", tt, got)
		}
	}
}

// If changes that the index has not seen were deleted, a new index is made.
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
