package catalog_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

func TestNamespaceLife(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	deep := moorage.Namespace{"a", "b.c", "d/é"}
	stored, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, deep, map[string]string{"k": "v"})
	if err != nil || stored["k"] != "v" {
		t.Fatalf("create: %v, %v", stored, err)
	}
	for n := 1; n <= len(deep); n++ {
		if _, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, deep[:n]); err != nil {
			t.Errorf("implicit parent %s: %v", deep[:n], err)
		}
	}
	_, err = f.CreateNamespace(f.Ctx, catalogkit.Warehouse, deep, nil)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	catalogkit.WantKind(t, f.DropNamespace(f.Ctx, catalogkit.Warehouse, deep[:1]), moorage.KindNamespaceNotEmpty)
	if _, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, deep[:1]); err != nil {
		t.Errorf("after a drop that was refused: %v", err)
	}
	f.WantClean()
	for n := len(deep); n > 0; n-- {
		if err := f.DropNamespace(f.Ctx, catalogkit.Warehouse, deep[:n]); err != nil {
			t.Fatal(err)
		}
	}
	catalogkit.WantKind(t, f.DropNamespace(f.Ctx, catalogkit.Warehouse, deep[:1]), moorage.KindNoSuchNamespace)
	f.Create("t")
	catalogkit.WantKind(t, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}), moorage.KindNamespaceNotEmpty)
	catalogkit.WantKind(t, f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse), moorage.KindNamespaceNotEmpty)
	f.WantClean()
}

func TestUpdateNamespaceProperties(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	ns := moorage.Namespace{"ns"}
	result, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"b": "2", "a": "1"}})
	if err != nil || !slices.Equal(result.Updated, []string{"a", "b"}) {
		t.Fatalf("set: %v, %v", result, err)
	}
	result, err = f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Removals: []string{"a", "x", "a"}, Updates: map[string]string{"c": "3"}})
	if err != nil || !slices.Equal(result.Removed, []string{"a"}) || !slices.Equal(result.Missing, []string{"x"}) || !slices.Equal(result.Updated, []string{"c"}) {
		t.Fatalf("remove and set: %+v, %v", result, err)
	}
	_, err = f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Removals: []string{"c"}, Updates: map[string]string{"c": "4"}})
	catalogkit.WantKind(t, err, moorage.KindUnprocessable)
	got, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, ns)
	if err != nil || fmt.Sprint(got) != "map[b:2 c:3 location:file:///wh/ns]" {
		t.Errorf("properties %v, %v", got, err)
	}
}

// The properties of a namespace include the default folder of its tables and views, unless it has
// its own location. Engines that choose locations themselves, such as Trino, start from this
// folder.
func TestNamespaceLocation(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	deep := slices.Repeat(moorage.Namespace{strings.Repeat("n", 200)}, 10)
	for name, test := range map[string]struct {
		ns     moorage.Namespace
		stored map[string]string
		want   string
	}{
		"one level":       {moorage.Namespace{"a"}, nil, "file:///wh/a"},
		"several levels":  {moorage.Namespace{"b", "b.c", "d é"}, map[string]string{"k": "v"}, "file:///wh/b/b.c/d%20%C3%A9"},
		"of its own":      {moorage.Namespace{"own"}, map[string]string{"location": "file:///wh/elsewhere/"}, "file:///wh/elsewhere/"},
		"too long a path": {deep, nil, "file:///wh"},
	} {
		made, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, test.ns, test.stored)
		if err != nil || made["location"] != test.want {
			t.Errorf("%s: made with %v, %v; want %s", name, made, err, test.want)
		}
		loaded, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, test.ns)
		if err != nil || !maps.Equal(loaded, made) {
			t.Errorf("%s: loaded %v, %v; made %v", name, loaded, err, made)
		}
		at := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: test.ns, Name: "t"}
		table, err := f.CreateTable(f.Ctx, at, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		if err != nil || !strings.HasPrefix(table.Document.Location(), strings.TrimSuffix(test.want, "/")+"/t") {
			t.Errorf("%s: a table at %v, %v", name, table, err)
		}
	}
	own := moorage.Namespace{"own"}
	result, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, own, catalog.PropertiesChange{Removals: []string{"location"}})
	if err != nil || !slices.Equal(result.Removed, []string{"location"}) {
		t.Fatalf("remove: %+v, %v", result, err)
	}
	result, err = f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, own, catalog.PropertiesChange{Removals: []string{"location"}})
	if err != nil || !slices.Equal(result.Missing, []string{"location"}) {
		t.Errorf("remove what is not stored: %+v, %v", result, err)
	}
	if loaded, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, own); err != nil || loaded["location"] != "file:///wh/own" {
		t.Errorf("after the removal: %v, %v", loaded, err)
	}
	f.WantClean()
}

// The nearest namespace with a location determines the locations of new tables and views. This
// includes staged tables, and tables in child namespaces. Existing tables do not move.
func TestNamespaceLocationDecides(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	own, below := moorage.Namespace{"own"}, moorage.Namespace{"own", "a", "b"}
	must1(f.CreateNamespace(f.Ctx, catalogkit.Warehouse, own, map[string]string{"location": "file:///wh/one"}))(t)
	must1(f.CreateNamespace(f.Ctx, catalogkit.Warehouse, below, nil))(t)
	create := func(ns moorage.Namespace, name string, staged bool) string {
		t.Helper()
		at := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: name}
		request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: staged}
		return must1(f.CreateTable(f.Ctx, at, request))(t).Document.Location()
	}
	if got := create(own, "t", false); got != "file:///wh/one/t" {
		t.Errorf("a table is at %s", got)
	}
	if got := create(own, "staged", true); !strings.HasPrefix(got, "file:///wh/one/staged-") {
		t.Errorf("a staged table is at %s", got)
	}
	if got := create(below, "t", false); got != "file:///wh/one/a/b/t" {
		t.Errorf("a table two levels below is at %s", got)
	}
	change := catalog.PropertiesChange{Updates: map[string]string{"location": "file:///wh/two"}}
	must1(f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, own, change))(t)
	if got := create(below, "u", false); got != "file:///wh/two/a/b/u" {
		t.Errorf("after the change a table is at %s", got)
	}
	table := must1(f.LoadTable(f.Ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: own, Name: "t"}))(t)
	if got := table.Document.Location(); got != "file:///wh/one/t" {
		t.Errorf("after the change the first table is at %s", got)
	}
	f.WantClean()
}

// A location that no table of the warehouse could have is refused when it is set, and nothing
// changes.
func TestNamespaceLocationIsChecked(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	for _, location := range []string{"", "elsewhere", "file:///var/none", "file:///whatever", "s3://b/x", "file:///wh/~moorage/x"} {
		properties := map[string]string{"location": location}
		_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"new"}, properties)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
		_, err = f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Updates: properties})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	_, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"new"})
	catalogkit.WantKind(t, err, moorage.KindNoSuchNamespace)
	if loaded := must1(f.LoadNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))(t); loaded["location"] != "file:///wh/ns" {
		t.Errorf("the location is %s", loaded["location"])
	}
}

func TestListsArePagedByName(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("t%02d", i)
		f.Create(name)
		want = append(want, name)
	}
	var got []string
	page := moorage.Page{Limit: 10}
	for pages := 1; ; pages++ {
		names, next, err := f.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, page)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, names...)
		if next == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		page.After = next
		// Dropping a table from an earlier page does not shift the later pages.
		if err := f.DropTable(f.Ctx, ident(names[0]), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	top, _, err := f.ListNamespaces(f.Ctx, catalogkit.Warehouse, nil, moorage.Page{})
	if err != nil || len(top) != 1 || !top[0].Equal(moorage.Namespace{"ns"}) {
		t.Errorf("top levels %v, %v", top, err)
	}
}

// A drop that died in the middle leaves the namespace in state dropping. Readers see the namespace,
// and creators get KindUnavailable. After the mark has become stale, the first creator that finds
// it restores the namespace.
func TestDeadDropIsPutBack(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	ns := moorage.Namespace{"ns"}
	must(t, f.MarkDropping(f.Ctx, ns))
	if _, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, ns); err != nil {
		t.Errorf("readers: %v", err)
	}
	f.Clock.Advance(directory.DroppingStale + 1)
	f.Create("t")
	ch, err := f.Directory.Path(f.Ctx, catalogkit.Warehouse, ns)
	if err != nil || ch.Record().State != registry.StateLive {
		t.Errorf("state %v, %v", ch.Record().State, err)
	}
	f.WantClean()
}

// If a drop fails with an error, at any call of the store, it leaves nothing in state dropping. The
// next creator can use the namespace at once.
func TestFailedDropIsPutBack(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	for name, prepare := range map[string]func(*catalogkit.Fixture){
		"empty":     func(*catalogkit.Fixture) {},
		"not empty": func(f *catalogkit.Fixture) { f.Create("t") },
	} {
		for _, action := range []registrytest.Action{registrytest.Fail, registrytest.Lose} {
			survived := false
			for k := 0; !survived; k++ {
				f := catalogkit.New(t)
				prepare(f)
				config := f.Config
				faulty := registrytest.Faulty(f.Store, registrytest.Nth(k, action))
				config.Store = faulty
				node, err := catalogkit.NewInstance(config)
				if err != nil {
					t.Fatal(err)
				}
				err = node.DropNamespace(f.Ctx, catalogkit.Warehouse, ns)
				survived = faulty.Calls() <= k
				if moorage.KindOf(err) == moorage.KindUnavailable || moorage.KindOf(err) == moorage.KindNamespaceNotEmpty {
					f.Create("u")
				}
				f.WantClean()
				if t.Failed() {
					t.Fatalf("%s, action %d at call %d: %v", name, action, k, err)
				}
			}
		}
	}
}

// Check does not report the mark of a dead drop as a problem.
func TestCheckOfDeadDrop(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	ns := moorage.Namespace{"ns"}
	must(t, f.MarkDropping(f.Ctx, ns))
	f.Clock.Advance(directory.DroppingStale + 1)
	catalogkit.WantClean(t, f.Instance)
}

// Properties that are too long are refused with KindTooLarge, with and without a key. They cause no
// server error.
func TestNamespaceTooLarge(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	half := strings.Repeat("x", registry.PropertiesBytesMax/2-1)
	properties := map[string]string{"a": half, "b": half + "x"}
	create := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		stored, err := c.CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"large"}, properties)
		return catalogkit.Reply{Properties: stored}, err
	}
	_, err := create(f.Ctx, f.Instance)
	catalogkit.WantKind(t, err, moorage.KindTooLarge)
	for range 2 {
		_, err = f.Once(f.Ctx, catalogkit.KeyOf("create"), create)
		catalogkit.WantKind(t, err, moorage.KindTooLarge)
	}

	properties["b"] = half
	_, err = create(f.Ctx, f.Instance)
	must(t, err)
	update := func(updates map[string]string) error {
		_, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"large"}, catalog.PropertiesChange{Updates: updates})
		return err
	}
	catalogkit.WantKind(t, update(map[string]string{"c": ""}), moorage.KindTooLarge)
	catalogkit.WantKind(t, update(map[string]string{"b": half + "x"}), moorage.KindTooLarge)
	must(t, update(map[string]string{"a": "", "b": half + "x"}))

	// A change without an effect is refused too.
	missing := catalog.PropertiesChange{Removals: []string{half + "1", half + "23"}}
	remove := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		result, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, moorage.Namespace{"large"}, missing)
		return catalogkit.Reply{Changed: &result}, err
	}
	key := catalogkit.KeyOf("remove")
	key.ID = "01926f3a-7b1c-7def-8123-456789abcde0"
	for range 2 {
		_, err = f.Once(f.Ctx, key, remove)
		catalogkit.WantKind(t, err, moorage.KindTooLarge)
	}
	if stored := len(outcomes(f)); stored != 2 {
		t.Errorf("%d outcomes are stored, want 2", stored)
	}
	f.WantClean()
}

// putLong gives the namespace ns properties longer than any request may make them. Each of a, b and
// c has the given number of bytes.
func putLong(f *catalogkit.Fixture, bytes int) {
	f.T.Helper()
	ch, err := f.Directory.Path(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"})
	must(f.T, err)
	value, err := ledger.Decode[registry.Namespace](ch.Record())
	must(f.T, err)
	long := strings.Repeat("x", bytes)
	value.Properties = map[string]string{"a": long, "b": long, "c": long}
	writes, err := ledger.Encode(ledger.Put(ch.Record().Key, registry.StateLive, value))
	must(f.T, err)
	_, err = f.Store.Apply(f.Ctx, registry.Batch{Writes: writes})
	must(f.T, err)
}

// keysOnly is a store whose lists of namespaces must not ask for values.
type keysOnly struct{ registry.Store }

func (s keysOnly) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == registry.TableNamespace || table == registry.TableEntry {
		return nil, fmt.Errorf("a list of names reads values of %s", table)
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// Lists of names read only the names.
func TestListsReadNamesOnly(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	c := f.Other(keysOnly{f.Store})
	found, _, err := c.ListNamespaces(f.Ctx, catalogkit.Warehouse, nil, moorage.Page{})
	if must(t, err); len(found) != 1 {
		t.Errorf("found %v", found)
	}
	tables, _, err := c.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{Limit: 1})
	if must(t, err); len(tables) != 1 {
		t.Errorf("found %v", tables)
	}
	catalogkit.WantKind(t, c.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}), moorage.KindNamespaceNotEmpty)
}

// Finding a table does not decode the properties of its namespace. The test is not parallel,
// because it measures the allocations of the process.
func TestResolveDecodesNoProperties(t *testing.T) {
	f := catalogkit.New(t)
	putLong(f, 10<<20)
	look := func() {
		_, err := f.LoadTable(f.Ctx, ident("missing"))
		catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	}
	look()
	putLong(f, 10<<20) // this makes another version
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		look()
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
		t.Errorf("10 loads of a missing table allocated %d bytes", allocated)
	}
}
