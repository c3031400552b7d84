package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"moorage"

	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// countingStore counts the calls that would be round trips for a store over a network.
type countingStore struct {
	registry.Store
	calls atomic.Int64
	keys  atomic.Int64 // the number of keys read one by one
}

func (s *countingStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.calls.Add(1)
	s.keys.Add(int64(len(keys)))
	return s.Store.Get(ctx, keys...)
}

func (s *countingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.calls.Add(1)
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *countingStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.calls.Add(1)
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (s *countingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.calls.Add(1)
	return s.Store.Apply(ctx, batch)
}

// TestRoundTrips bounds the calls of the store by an undisturbed operation, after the path to its
// namespace was cached. Its locks cost one more call to take, and one to release.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	var store *countingStore
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	f.Create("t")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	load := func(name string) func() {
		return func() {
			_, err := f.LoadTable(f.Ctx, ident(name))
			must(err)
		}
	}
	load("t")()
	for _, step := range []struct {
		name string
		max  int64
		do   func()
	}{
		{"load", 1, load("t")},
		{"commit", 2, func() {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "1"))
			must(err)
		}},
		{"load after a commit", 1, load("t")},
		{"create", 3, func() { f.Create("u") }},
		{"first load", 2, load("u")},
		{"exists", 1, func() { must(f.TableExists(f.Ctx, ident("u"))) }},
		{"list", 2, func() {
			_, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, ident("t").Namespace, moorage.Page{Limit: 10})
			must(err)
		}},
		{"transaction", 3, func() {
			must(f.Transact(catalogkit.On("t", catalogkit.SetProperty(t, "a", "2")), catalogkit.On("u", catalogkit.SetProperty(t, "a", "2"))))
		}},
		{"load after a transaction", 1, load("u")},
		{"transaction of tables that trim their metadata log", 4, func() {
			for range 2 {
				store.calls.Store(0)
				must(f.Transact(catalogkit.On("t", catalogkit.CommitRequest(t, `[]`, trimming)), catalogkit.On("u", catalogkit.CommitRequest(t, `[]`, trimming))))
			}
		}},
		{"commit to a table that trims its metadata log", 3, func() {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "3"))
			must(err)
		}},
		{"create a view", 3, func() { f.MakeView("v") }},
		{"first load of a view", 2, func() {
			_, err := f.LoadView(f.Ctx, ident("v"))
			must(err)
		}},
		{"replace", 2, func() {
			_, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, "a", "1"))
			must(err)
		}},
		{"load after a replace", 1, func() {
			_, err := f.LoadView(f.Ctx, ident("v"))
			must(err)
		}},
		{"list of views among many tables", 3, func() {
			for n := range 100 {
				f.Create(fmt.Sprintf("a%d", n))
			}
			store.calls.Store(0)
			names, _, err := f.ListViews(f.Ctx, catalogkit.Warehouse, ident("v").Namespace, moorage.Page{Limit: 1})
			if must(err); !slices.Equal(names, []string{"v"}) {
				t.Errorf("views are %q", names)
			}
		}},
		{"drop", 4, func() { must(f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{})) }},
	} {
		store.calls.Store(0)
		step.do()
		if took := store.calls.Load(); took > step.max {
			t.Errorf("%s: %d calls of the store, want at most %d", step.name, took, step.max)
		}
	}
}

// TestCreateReads counts the records that a create reads in addition to its conditions: the records
// on the path to its name, and the records about its location.
func TestCreateReads(t *testing.T) {
	t.Parallel()
	var store *countingStore
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	f.CreateAt("a", "file:///wh/long/way/down/a")
	f.CreateAt("b", "file:///wh/long/way/down/b") // from now on the folders are known
	store.keys.Store(0)
	f.CreateAt("c", "file:///wh/long/way/down/c")
	if read := store.keys.Load(); read != 4 {
		t.Errorf("%d records, want the warehouse, the namespace, the name and the location", read)
	}
}
