package browse_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog/browse"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit"
)

// endingStore cancels the request when it reads entries, if end is set.
type endingStore struct {
	registry.Store
	end atomic.Pointer[context.CancelFunc]
}

func (s *endingStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if end := s.end.Load(); end != nil && keys[0].Table == registry.TableEntry {
		(*end)()
		return nil, ctx.Err()
	}
	return s.Store.Get(ctx, keys...)
}

// If a search ends while it reads the latest changes, later searches still get these changes.
func TestSearchThatEnds(t *testing.T) {
	t.Parallel()
	store := &endingStore{Store: memoryregistry.New(rand.Reader)}
	w := newWorld(t, store)
	w.namespace("w/a")
	w.table("w/a/t1")
	w.wantFound("t", "")
	w.table("w/a/t2")
	ctx, cancel := context.WithCancel(t.Context())
	store.end.Store(&cancel)
	if _, _, err := w.Browse().Search(ctx, browse.Search{Words: "t", Limit: 10}); err == nil {
		t.Error("the search did not end")
	}
	store.end.Store(nil)
	w.wantFound("t", "")
}

// A search has at most 16 different words.
func TestWordsOfASearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memoryregistry.New(rand.Reader))
	w.namespace("w/a")
	w.wantFound(strings.Repeat("a ", 50), "")
	var words []string
	for i := range 17 {
		words = append(words, fmt.Sprint(i))
	}
	_, _, err := w.Browse().Search(w.ctx, browse.Search{Words: strings.Join(words, " "), Limit: 10})
	if moorage.KindOf(err) != moorage.KindBadRequest || err == nil {
		t.Errorf("17 words: %v", err)
	}
}

// Objects whose records cannot be read are listed without details. They hide no other object from
// a list or a search.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	store := memoryregistry.New(rand.Reader)
	w := newWorld(t, store)
	for _, name := range []string{"w/a", "w/bad", "other/a"} {
		w.namespace(name)
		w.table(name + "/t")
	}
	damage := func(key registry.Key) {
		t.Helper()
		records, err := store.Get(w.ctx, key)
		testkit.Must(t, err)
		_, err = store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(key, records[0].State, []byte("{"))}})
		testkit.Must(t, err)
	}
	ids := make(map[string]registry.ID)
	for _, row := range append(w.all(browse.Listing{Warehouse: "w", Recursive: true}, 10), w.all(browse.Listing{Warehouse: "other"}, 10)...) {
		ids[nameOf(row)] = row.Details.ID
	}
	path, err := store.Get(w.ctx, registry.WarehouseKey("w"))
	testkit.Must(t, err)
	warehouse, err := registry.DecodePart[registry.Warehouse](path[0])
	testkit.Must(t, err)
	damage(registry.NamespaceKey(warehouse.ID, warehouse.ID, "bad"))
	damage(registry.PointerKey(ids["w/a/t"]))
	damage(registry.WarehouseKey("other"))
	var got []string
	for _, row := range w.all(browse.Listing{Warehouse: "w", Recursive: true}, 10) {
		got = append(got, fmt.Sprintf("%s %v", nameOf(row), row.Details != nil))
	}
	if want := "[w/a true w/a/t false w/bad false]"; fmt.Sprint(got) != want {
		t.Errorf("the list is %q", got)
	}
	rows, _, err := w.Browse().Search(w.ctx, browse.Search{Words: "t", Limit: 10})
	testkit.Must(t, err)
	if len(rows) != 1 || nameOf(rows[0]) != "w/a/t" || rows[0].Details != nil {
		t.Errorf("found are %+v", rows)
	}
}
