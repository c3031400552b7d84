package warehouses_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// world is a catalog in memory with the warehouse "w" at file:///wh. It has the namespace "ns".
type world struct {
	*testing.T
	config catalog.Config
	*catalog.Catalog
	// folders is the result of the catalog's Config.LocalFolder. If it is not nil, every folder is
	// refused.
	folders error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w, files := &world{T: t}, memorystorage.New()
	w.config = catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: memory.New(rand.NewChaCha8([32]byte{1}))}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
		LocalFolder: func(string) error { return w.folders },
	}
	w.Catalog = w.node()
	_, err := w.Warehouses().Create(t.Context(), warehouses.Spec{Name: "w", Location: "file:///wh/"})
	w.must(err)
	_, err = w.CreateNamespace(t.Context(), "w", moorage.Namespace{"ns"}, nil)
	w.must(err)
	return w
}

// node returns another catalog over the stores of w.
func (w *world) node() *catalog.Catalog {
	w.Helper()
	made, err := catalog.New(w.config)
	w.must(err)
	return made.As(moorage.Anonymous())
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(kind moorage.Kind, err error) {
	w.Helper()
	if moorage.KindOf(err) != kind || (err == nil) != (kind == 0) {
		w.Errorf("got %v (%v), want %v", err, moorage.KindOf(err), kind)
	}
}

// create creates a table at a location, and returns the error.
func (w *world) create(name, location string) error {
	_, err := w.CreateTable(w.Context(), ident(name), catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","schema-id":0,"fields":[]}`), Location: location,
	})
	return err
}

// change changes the allowed locations of the warehouse.
func (w *world) change(allow, remove []string) error {
	_, err := w.Warehouses().Change(w.Context(), "w", warehouses.Change{AllowLocations: allow, RemoveLocations: remove})
	return err
}

// wantAllowed checks the allowed locations of the warehouse.
func (w *world) wantAllowed(locations ...string) {
	w.Helper()
	found, err := w.Warehouses().Load(w.Context(), "w")
	w.must(err)
	if !slices.Equal(found.AllowedLocations, locations) {
		w.Errorf("allowed are %q, want %q", found.AllowedLocations, locations)
	}
}

func ident(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
}

// TestAllowedLocations adds allowed locations to a warehouse and removes them. Every node uses the
// locations in the record.
func TestAllowedLocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(moorage.KindBadRequest, w.create("t", "file:///one/t"))
	w.want(0, w.change([]string{"file:///one", "file:///two/"}, nil))
	w.want(0, w.change([]string{"file:/one/"}, nil)) // another spelling of an existing one
	w.wantAllowed("file:///one", "file:///two/")
	w.want(0, w.create("t", "file:///one/t"))
	w.want(0, w.create("u", "file:///two/u"))

	err := w.change(nil, []string{"file:///one"})
	w.want(moorage.KindCommitFailed, err)
	if message := moorage.MessageOf(err); !strings.Contains(message, "ns.t") {
		t.Errorf("the refusal does not name the table: %s", message)
	}
	w.want(0, w.change([]string{"file:///"}, []string{"file:///one"})) // the table lives below the new one
	w.wantAllowed("file:///two/", "file:///")
	w.want(moorage.KindCommitFailed, w.change(nil, []string{"file:///"}))
	w.want(0, w.DropTable(t.Context(), ident("t"), catalog.DropOptions{}))
	w.want(0, w.change(nil, []string{"file:///"}))
	w.want(moorage.KindBadRequest, w.create("v", "file:///one/v"))
	for _, node := range []*catalog.Catalog{w.Catalog, w.node()} {
		_, err := node.LoadTable(t.Context(), ident("u"))
		w.want(0, err)
	}
}

// TestCreateWithALocationTwice creates a warehouse with one location in two spellings. The
// warehouse has the location once, so one change removes it.
func TestCreateWithALocationTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.Warehouses().Create(t.Context(), warehouses.Spec{
		Name: "x", Location: "file:///x", AllowedLocations: []string{"file:///one", "file:///two", "file:/one/"},
	})
	w.must(err)
	if want := []string{"file:///one", "file:///two"}; !slices.Equal(made.AllowedLocations, want) {
		t.Errorf("allowed are %q, want %q", made.AllowedLocations, want)
	}
	found, err := w.Warehouses().Change(t.Context(), "x", warehouses.Change{RemoveLocations: []string{"file:///one"}})
	w.must(err)
	if want := []string{"file:///two"}; !slices.Equal(found.AllowedLocations, want) {
		t.Errorf("allowed are then %q, want %q", found.AllowedLocations, want)
	}
}

// TestAllowedLocationOfATable allows the location of a table, in addition to the folder above it.
// Either of the two may be removed, but not both.
func TestAllowedLocationOfATable(t *testing.T) {
	t.Parallel()
	const above, at = "file:///one", "file:///one/t"
	for _, first := range []string{above, at} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.want(0, w.change([]string{above}, nil))
			w.want(0, w.create("t", at))
			w.want(0, w.change([]string{at}, nil))
			w.want(0, w.change(nil, []string{first}))
			left := above
			if first == above {
				left = at
			}
			w.wantAllowed(left)
			_, err := w.node().LoadTable(t.Context(), ident("t"))
			w.want(0, err)
			err = w.change(nil, []string{left})
			w.want(moorage.KindCommitFailed, err)
			if message := moorage.MessageOf(err); !strings.Contains(message, "ns.t") {
				t.Errorf("the refusal does not name the table: %s", message)
			}
			w.wantAllowed(left)
		})
	}
}

// TestRefusedLocations: after the refusal of an invalid location, the record is unchanged.
func TestRefusedLocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(0, w.change([]string{"file:///one"}, nil))
	many := make([]string, warehouses.AllowedLocationsMax)
	for i := range many {
		many[i] = "file:///many/" + string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	for name, row := range map[string]struct{ allow, remove []string }{
		"malformed":        {allow: []string{"one"}},
		"not allowed":      {remove: []string{"file:///two"}},
		"its own location": {remove: []string{"file:///wh"}},
		"too many":         {allow: many},
	} {
		t.Run(name, func(t *testing.T) { w.want(moorage.KindBadRequest, w.change(row.allow, row.remove)) })
	}
	w.wantAllowed("file:///one")
	w.want(0, w.change(many, []string{"file:///one"}))
	w.wantAllowed(many...)
}

// TestRemovedLocationOfDroppedTables: an allowed location can be removed even if there are dropped
// tables or tombstones below it. These stay, and can be used after the location is allowed again.
func TestRemovedLocationOfDroppedTables(t *testing.T) {
	t.Parallel()
	const location = "file:///one"
	w := newWorld(t)
	w.want(0, w.change([]string{location}, nil))
	w.want(0, w.create("dropped", location+"/dropped"))
	w.want(0, w.create("gone", location+"/gone"))
	dropped, err := w.LoadTable(t.Context(), ident("dropped"))
	w.must(err)
	w.must(w.DropTable(t.Context(), ident("dropped"), catalog.DropOptions{}))
	_, err = w.UnregisterTable(t.Context(), ident("gone"))
	w.must(err)
	w.want(0, w.change(nil, []string{location}))

	register := func() error {
		_, err := w.RegisterTable(t.Context(), ident("dropped"),
			catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
		return err
	}
	tombstones := func() int {
		left, _, err := w.Warehouses().Tombstones(t.Context(), "w", moorage.Page{Limit: 10})
		w.must(err)
		return len(left)
	}
	w.want(moorage.KindBadRequest, register())
	if n := tombstones(); n != 0 {
		t.Errorf("%d tombstones are listed outside of all locations", n)
	}
	w.want(0, w.change([]string{location}, nil))
	w.want(0, register())
	if n := tombstones(); n != 1 {
		t.Errorf("%d tombstones are listed when the location is allowed again, want 1", n)
	}
}

// TestFoldersOfTheMachine: the process's restrictions on folders apply to create, change and
// validate, but not to loads and commits. They do not apply to a job of the server.
func TestFoldersOfTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(0, w.create("t", ""))
	w.want(0, w.change([]string{"file:///two"}, nil))
	w.folders = errors.New("not there")
	w.want(0, w.change(nil, []string{"file:///two"})) // a change that only removes adds no folder
	_, err := w.Warehouses().Create(t.Context(), warehouses.Spec{Name: "x", Location: "file:///x"})
	w.want(moorage.KindForbidden, err)
	w.want(moorage.KindForbidden, w.change([]string{"file:///one"}, nil))
	found, err := w.Warehouses().Validate(t.Context(), "w")
	if w.must(err); len(found.Trials) != 1 || !strings.Contains(found.Trials[0].Failure, "not there") {
		t.Errorf("validated %+v", found)
	}
	_, err = w.node().LoadTable(t.Context(), ident("t"))
	w.want(0, err)
	_, err = w.Commit(t.Context(), ident("t"), catalog.CommitRequest{})
	w.want(0, err)
	w.want(0, w.create("u", ""))
	_, err = w.As(moorage.System("test")).Warehouses().Change(t.Context(), "w",
		warehouses.Change{AllowLocations: []string{"file:///one"}})
	w.want(0, err)
	w.wantAllowed("file:///one")
}
