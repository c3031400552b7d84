package memory_test

import (
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(*testing.T) registry.Store { return memory.New(rand.Reader) })
}

func TestApplyChangesNothingWithoutRandomBytes(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	for drawn := range 3 {
		store := memory.New(io.MultiReader(io.LimitReader(rand.Reader, int64(16*drawn)), iotest.ErrReader(broken)))
		_, err := store.Apply(t.Context(), registry.Batch{
			Writes: []registry.Write{registry.Put(registry.LocationKey("a"), registry.StateOwner, nil), registry.Put(registry.LocationKey("b"), registry.StateOwner, nil)},
			Change: &registry.Change{ID: registry.ID{1}},
		})
		if !errors.Is(err, broken) {
			t.Errorf("apply with %d etags to draw: %v, want %v", drawn, err, broken)
		}
		for _, table := range registry.Tables() {
			records, err := store.List(t.Context(), table, "", "", 10)
			if table != registry.TableFormat && (err != nil || len(records) != 0) {
				t.Errorf("%s holds %d records after a failed Apply, %v", table, len(records), err)
			}
		}
	}
}
