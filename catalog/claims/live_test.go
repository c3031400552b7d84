package claims_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// counted is a store that counts the calls of Get, and the pointers read by them.
type counted struct {
	registry.Store
	gets, pointers int
}

func (c *counted) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	c.gets++
	for _, key := range keys {
		if key.Table == registry.TablePointer {
			c.pointers++
		}
	}
	return c.Store.Get(ctx, keys...)
}

// TestLive: Live reads the pointers of the wanted locations in pages, and visits the live ones in
// the order of their locations.
func TestLive(t *testing.T) {
	t.Parallel()
	const many, within = 1500, "file:///one/t"
	store := &counted{Store: memory.New(rand.NewChaCha8([32]byte{1}))}
	records := registrytest.Ledger(store)
	var puts []ledger.Write
	claim := func(n int, location string, state registry.State) {
		id := registry.ID{1, byte(n >> 8), byte(n)}
		puts = append(puts,
			ledger.Put(registry.PointerKey(id), state, registry.Pointer{ID: id, Name: fmt.Sprint(n)}),
			ledger.Put(registry.LocationKey(location), registry.StateOwner, registry.LocationClaim{Pointer: id}))
	}
	claim(0, "file:///one", registry.StateLive)
	for n := 1; n <= many; n++ {
		state := registry.StateLive
		if n%2 == 0 {
			state = registry.StateDropped
		}
		claim(n, fmt.Sprintf("%s%04d", within, n), state)
	}
	claim(many+1, "file:///one/other", registry.StateLive)
	claim(many+2, "file:///onetoo", registry.StateLive)
	writes, err := ledger.Encode(puts...)
	if err == nil {
		_, err = records.Step(t.Context(), registry.Batch{Writes: writes})
	}
	if err != nil {
		t.Fatal(err)
	}
	folder, err := storage.Parse("file:///one")
	if err != nil {
		t.Fatal(err)
	}
	store.gets, store.pointers = 0, 0
	visited, last := 0, ""
	err = claims.New(records).Live(t.Context(), folder, func(at storage.Location) bool { return at.Path != "/one/other" },
		func(at storage.Location, _ registry.Pointer) error {
			if at.String() <= last {
				t.Fatalf("visited %s after %s", at, last)
			}
			visited, last = visited+1, at.String()
			return nil
		})
	if err != nil || visited != 1+many/2 {
		t.Errorf("visited %d locations (%v), want %d", visited, err, 1+many/2)
	}
	if store.pointers != 1+many || store.gets > 4 {
		t.Errorf("read %d pointers in %d calls, want %d in at most 4", store.pointers, store.gets, 1+many)
	}
	stop := errors.New("stop")
	err = claims.New(records).Live(t.Context(), folder, func(storage.Location) bool { return true },
		func(storage.Location, registry.Pointer) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of visit", err)
	}
}
