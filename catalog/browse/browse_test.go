package browse_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/browse"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/metadata"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// stores opens the stores of all tests.
var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }

// world is a catalog, and the names that it should contain.
type world struct {
	*catalog.Catalog
	t     *testing.T
	ctx   context.Context
	files storage.Store
	kinds map[string]access.Kind // by path with slashes, such as "w/ns/t"
}

func newWorld(t *testing.T, store registry.Store) *world {
	t.Helper()
	files := memorystorage.New()
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	})
	testkit.Must(t, err)
	w := &world{made.As(moorage.Anonymous()), t, t.Context(), files, make(map[string]access.Kind)}
	for _, name := range []string{"w", "other"} {
		_, err := w.Warehouses().Create(w.ctx, warehouses.Spec{Name: name, Location: "file:///" + name})
		testkit.Must(t, err)
	}
	return w
}

const schemaText = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":true,"type":"long","doc":"the a"},` +
	`{"id":2,"name":"b","required":false,"type":{"type":"list","element-id":3,"element":"string","element-required":false}}]}`

func identOf(name string) moorage.Identifier {
	levels := strings.Split(name, "/")
	last := len(levels) - 1
	return moorage.Identifier{Warehouse: levels[0], Namespace: levels[1:last], Name: levels[last]}
}

func (w *world) namespace(name string) {
	w.t.Helper()
	levels := strings.Split(name, "/")
	_, err := w.CreateNamespace(w.ctx, levels[0], levels[1:], map[string]string{"k": "v"})
	testkit.Must(w.t, err)
	w.kinds[name] = access.Namespace
}

func (w *world) table(name string) {
	w.t.Helper()
	_, err := w.CreateTable(w.ctx, identOf(name), catalog.CreateTableRequest{Schema: []byte(schemaText), Properties: map[string]string{"p": "q"}})
	testkit.Must(w.t, err)
	w.kinds[name] = access.Table
}

func (w *world) view(name string) {
	w.t.Helper()
	_, err := w.CreateView(w.ctx, identOf(name), catalog.CreateViewRequest{
		Schema: []byte(`{"type":"struct","fields":[]}`),
		Version: []byte(`{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["a"],` +
			`"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}`),
	})
	testkit.Must(w.t, err)
	w.kinds[name] = access.View
}

func nameOf(row browse.Row) string {
	levels := append([]string{row.Ident.Warehouse}, row.Ident.Namespace...)
	if row.Ident.Name != "" {
		levels = append(levels, row.Ident.Name)
	}
	return strings.Join(levels, "/")
}

// all returns the rows of a list, in pages of size.
func (w *world) all(of browse.Listing, size int) (rows []browse.Row) {
	w.t.Helper()
	after := ""
	for range 10_000 {
		page, next, err := w.Browse().Objects(w.ctx, of, moorage.Page{After: after, Limit: size})
		testkit.Must(w.t, err)
		if len(page) > size {
			w.t.Errorf("a page of %d has %d rows", size, len(page))
		}
		rows = append(rows, page...)
		if next == "" {
			return rows
		}
		after = next
	}
	w.t.Fatal("the list has no end")
	return nil
}

// wantList fails the test unless a list has exactly the right objects, once each. A namespace must
// come before the objects in it.
func (w *world) wantList(of browse.Listing, size int) {
	w.t.Helper()
	within := strings.Join(append([]string{of.Warehouse}, of.Namespace...), "/") + "/"
	var want []string
	for name, kind := range w.kinds {
		rest, inside := strings.CutPrefix(name, within)
		last := name[strings.LastIndexByte(name, '/')+1:]
		if inside && (of.Recursive || !strings.Contains(rest, "/")) && strings.HasPrefix(last, of.Prefix) &&
			(len(of.Kinds) == 0 || slices.Contains(of.Kinds, kind)) {
			want = append(want, name)
		}
	}
	var got []string
	for _, row := range w.all(of, size) {
		name := nameOf(row)
		if row.Kind != w.kinds[name] || row.Details == nil || row.Details.ID.IsZero() {
			w.t.Errorf("%s is listed as %+v", name, row)
		}
		parent := name[:strings.LastIndexByte(name, '/')]
		if len(of.Kinds) == 0 && of.Prefix == "" && parent+"/" != within && !slices.Contains(got, parent) {
			w.t.Errorf("%s is listed before its namespace", name)
		}
		got = append(got, name)
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		w.t.Errorf("%+v in pages of %d lists\n%q, want\n%q", of, size, got, want)
	}
}

// wantFound fails the test unless a search finds exactly the right objects.
func (w *world) wantFound(words, warehouse string, kinds ...access.Kind) {
	w.t.Helper()
	var want []string
	for name, kind := range w.kinds {
		in, path, _ := strings.Cut(name, "/")
		text := strings.ToLower(strings.ReplaceAll(path, "/", "."))
		if (warehouse == "" || in == warehouse) && (len(kinds) == 0 || slices.Contains(kinds, kind)) &&
			!slices.ContainsFunc(strings.Fields(strings.ToLower(words)), func(word string) bool { return !strings.Contains(text, word) }) {
			want = append(want, name)
		}
	}
	rows, more, err := w.search(browse.Search{Words: words, Warehouse: warehouse, Kinds: kinds, Limit: 10_000})
	testkit.Must(w.t, err)
	var got []string
	for _, row := range rows {
		if row.Kind != w.kinds[nameOf(row)] || row.Details == nil || row.Details.ID.IsZero() {
			w.t.Errorf("%s is found as %+v", nameOf(row), row)
		}
		got = append(got, nameOf(row))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) || more {
		w.t.Errorf("%q in %q finds, more %v,\n%q, want\n%q", words, warehouse, more, got, want)
	}
}

// After each of many changes, lists and searches have exactly the objects that exist. This holds on
// every store.
func TestListsAndSearches(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		w := newWorld(t, store)
		seed := catalogkit.NewSeed(t)
		random := mathrand.New(mathrand.NewPCG(seed, 0))
		for _, name := range []string{"w/a", "w/a/B", "w/a/B/c", "w/empty", "other/a"} {
			w.namespace(name)
		}
		for i := range 12 {
			in := []string{"w/a", "w/a/B", "w/a/B/c", "other/a"}[random.IntN(4)]
			w.table(fmt.Sprintf("%s/Orders_%d", in, i))
			w.view(fmt.Sprintf("%s/daily_%d", in, i))
		}
		look := func() {
			t.Helper()
			w.wantStats()
			for _, of := range []browse.Listing{
				{Warehouse: "w"}, {Warehouse: "w", Recursive: true}, {Warehouse: "w", Namespace: moorage.Namespace{"a", "B"}},
				{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Recursive: true, Kinds: []access.Kind{access.View}},
				{Warehouse: "w", Recursive: true, Prefix: "Orders_1"}, {Warehouse: "other", Recursive: true, Kinds: []access.Kind{access.Namespace}},
			} {
				w.wantList(of, 1+random.IntN(4))
				w.wantList(of, 1000)
			}
			w.wantFound("orders", "")
			w.wantFound("a.b DAILY", "w")
			w.wantFound("a", "", access.Namespace, access.View)
		}
		look()
		for name, kind := range maps.Clone(w.kinds) {
			switch kind {
			case access.Table:
				testkit.Must(t, w.DropTable(w.ctx, identOf(name), catalog.DropOptions{}))
				if delete(w.kinds, name); random.IntN(2) == 0 {
					w.table(name)
				}
			case access.View:
				to := identOf(name)
				to.Name = "orders_view" + to.Name
				testkit.Must(t, w.RenameView(w.ctx, identOf(name), to))
				delete(w.kinds, name)
				w.kinds[strings.Join(append(append([]string{to.Warehouse}, to.Namespace...), to.Name), "/")] = kind
			}
		}
		testkit.Must(t, w.DropNamespace(w.ctx, "w", moorage.Namespace{"empty"}))
		delete(w.kinds, "w/empty")
		w.namespace("w/new")
		w.table("w/new/orders")
		look()
		testkit.Must(t, w.DropTable(w.ctx, identOf("w/new/orders"), catalog.DropOptions{Purge: true}))
		testkit.Must(t, w.DropNamespace(w.ctx, "w", moorage.Namespace{"new"}))
		w.namespace("w/new") // another namespace
		w.view("w/new/orders")
		w.kinds["w/new/orders"] = access.View
		look()
	})
}

// search searches, and repeats the search while the index is being made, which takes long on a busy
// machine.
func (w *world) search(asked browse.Search) (rows []browse.Row, more bool, err error) {
	for {
		rows, more, err = w.Browse().Search(w.ctx, asked)
		if err == nil || moorage.KindOf(err) != moorage.KindUnavailable {
			return rows, more, err
		}
	}
}

// wantStats fails the test unless the stats of the warehouse "w" count the objects that it should
// contain.
func (w *world) wantStats() {
	w.t.Helper()
	stats, err := w.Browse().Stats(w.ctx, "w", 0)
	testkit.Must(w.t, err)
	want := make(map[access.Kind]int64)
	for name, kind := range w.kinds {
		if strings.HasPrefix(name, "w/") {
			want[kind]++
		}
	}
	if stats.Tables != want[access.Table] || stats.Views != want[access.View] || stats.Namespaces != want[access.Namespace] || !stats.Complete {
		w.t.Errorf("the stats are %+v, want %v", stats, want)
	}
}

// An Object has everything that the catalog knows about it. A table wins over a namespace of its
// name.
func TestObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memoryregistry.New(rand.Reader))
	w.namespace("w/a")
	w.namespace("w/a/t")
	load := func(path ...string) browse.Object {
		t.Helper()
		found, err := w.Browse().Object(w.ctx, "w", path)
		testkit.Must(t, err)
		return found
	}
	if found := load(); found.Kind != access.Warehouse || found.Location != "file:///w" {
		t.Errorf("the warehouse is %+v", found)
	}
	if found := load("a", "t"); found.Kind != access.Namespace || found.Properties["k"] != "v" {
		t.Errorf("the namespace is %+v", found)
	}
	w.table("w/a/t")
	w.view("w/a/v")
	_, err := w.Labels().Put(w.ctx, access.Table, identOf("w/a/t"), registry.Labels{Object: map[string]string{"team": "x"}}, nil)
	testkit.Must(t, err)
	found := load("a", "t")
	want := []metadata.Column{
		{ID: 1, Path: "a", Type: "long", Required: true, Doc: "the a"}, {ID: 2, Path: "b", Type: "list"},
		{ID: 3, Path: "b.element", Type: "string"},
	}
	if found.Kind != access.Table || found.Properties["p"] != "q" || !slices.Equal(found.Columns, want) || found.Labels.Object["team"] != "x" ||
		!found.Details.Labelled || !strings.HasPrefix(found.MetadataLocation, found.Location) || found.Details.UUID == "" {
		t.Errorf("the table is %+v", found)
	}
	if found := load("a", "v"); found.Kind != access.View || found.Details.Labelled {
		t.Errorf("the view is %+v", found)
	}
	for _, path := range [][]string{{"b"}, {"a", "b"}, {"a", "t", "t"}, {"b", "c"}} {
		_, err := w.Browse().Object(w.ctx, "w", path)
		if moorage.KindOf(err) != moorage.KindNotFound || err == nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := w.Browse().Object(w.ctx, "none", nil); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("an unknown warehouse: %v", err)
	}
}

// A token is valid only for its list. Any other text is refused.
func TestTokensOfLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memoryregistry.New(rand.Reader))
	w.namespace("w/a")
	for _, token := range []string{"x", "\x00x", "\x00list:", "\x00list:[]"} {
		_, _, err := w.Browse().Objects(w.ctx, browse.Listing{Warehouse: "w"}, moorage.Page{After: token, Limit: 10})
		if moorage.KindOf(err) != moorage.KindBadRequest || err == nil {
			t.Errorf("%q: %v", token, err)
		}
	}
}
