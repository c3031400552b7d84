package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// protect protects a namespace, or the warehouse if there are no levels.
func protect(levels ...string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		kind, on := access.Namespace, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: levels}
		if len(levels) == 0 {
			kind = access.Warehouse
		}
		_, err := protectionsOf(c).Set(ctx, kind, on, true)
		return err
	}
}

// protectionsOf returns the verbs on protection of c.
func protectionsOf(c catalog.Verbs) catalog.Protections {
	return c.(interface{ Protections() catalog.Protections }).Protections()
}

// protectTable protects the table called name.
func protectTable(name string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := protectionsOf(c).Set(ctx, access.Table, ident(name), true)
		return err
	}
}

// TestProtected tries each change that protection refuses, with protection of the object and of
// each container. It is refused with the command that ends the protection, and done after that.
// What protection does not refuse goes on.
func TestProtected(t *testing.T) {
	t.Parallel()
	by := map[string]struct {
		protect catalogkit.RaceClient
		kind    access.Kind
		on      moorage.Identifier
		says    string
	}{
		"the table":     {protectTable("t"), access.Table, ident("t"), "ns.t is protected: moorage protect ns.t --off"},
		"its namespace": {protect("ns"), access.Namespace, moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}, "protected by namespace ns: moorage protect ns --off"},
		"its warehouse": {protect(), access.Warehouse, moorage.Identifier{Warehouse: "w"}, "protected by warehouse w: moorage protect w/ --off"},
	}
	for name, row := range map[string]struct {
		prepare func(f *catalogkit.Fixture)
		do      catalogkit.RaceClient
		not     []string // what does not protect from it
	}{
		"drop":  {nil, dropTable(ident("t"), catalog.DropOptions{}), nil},
		"purge": {nil, dropTable(ident("t"), catalog.DropOptions{Purge: true}), nil},
		"unregister": {nil, func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.UnregisterTable(ctx, ident("t"))
			return err
		}, nil},
		"register over it": {nil, func(ctx context.Context, c catalog.Verbs) error {
			table, err := c.LoadTable(ctx, ident("t"))
			if err != nil {
				return err
			}
			_, err = c.RegisterTable(ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
			return err
		}, nil},
		"undrop over it": {func(f *catalogkit.Fixture) {
			f.Create("u")
			must(f.T, f.RenameTable(f.Ctx, ident("t"), ident("old")))
			must(f.T, f.RenameTable(f.Ctx, ident("u"), ident("t")))
			dropOf(f, "old")
		}, func(ctx context.Context, c catalog.Verbs) error {
			asked, as := called("old"), ident("t")
			asked.As, asked.Replace = &as, true
			return undropTable(asked)(ctx, c)
		}, nil},
		"purge it now":  {func(f *catalogkit.Fixture) { dropOf(f, "t") }, purgeNow(ident("t")), []string{"the table"}},
		"forget it now": {func(f *catalogkit.Fixture) { dropOf(f, "t") }, forgetTable(ident("t")), []string{"the table"}},
		"rename it out": {func(f *catalogkit.Fixture) { must(f.T, createNamespace("other")(f.Ctx, f.Instance)) },
			renameTable(ident("t"), inNamespace("other", "t")), []string{"the table", "its warehouse"}},
		"rename it within": {nil, renameTable(ident("t"), ident("u")), []string{"the table", "its namespace", "its warehouse"}},
		"commit": {nil, func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "p", "q"))
			return err
		}, []string{"the table", "its namespace", "its warehouse"}},
		"create another": {nil, createTable(ident("u")), []string{"the table", "its namespace", "its warehouse"}},
		"drop its namespace": {func(f *catalogkit.Fixture) { dropOf(f, "t") },
			dropNamespace("ns"), []string{"the table"}},
	} {
		for container, protection := range by {
			t.Run(name+"/"+container, func(t *testing.T) {
				t.Parallel()
				f := catalogkit.New(t)
				f.Create("t")
				if row.prepare != nil {
					row.prepare(f)
				}
				isNot := slices.Contains(row.not, container)
				if isNot && container == "the table" && row.prepare != nil {
					return // the table is gone
				}
				must(t, protection.protect(f.Ctx, f.Instance))
				before := recordsOf(f)
				err := row.do(f.Ctx, f.Instance)
				if isNot {
					must(t, err)
					return
				}
				catalogkit.WantKind(t, err, moorage.KindForbidden)
				says := protection.says
				if name == "drop its namespace" && container == "its namespace" {
					says = "ns is protected: moorage protect ns --off"
				}
				if said := moorage.MessageOf(err); !strings.Contains(said, says) {
					t.Errorf("the refusal is %s, want %s", said, says)
				}
				for key, etag := range recordsOf(f) {
					if before[key] != etag {
						t.Errorf("a refusal changed %s", key)
					}
				}
				_, err = f.Protections().Set(f.Ctx, protection.kind, protection.on, false)
				must(t, err)
				must(t, row.do(f.Ctx, f.Instance))
				f.WantClean()
			})
		}
	}
}

// TestProtectWarehouse: a protected warehouse is not dropped, although it is empty.
func TestProtectWarehouse(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "file:///lake"})
	must(t, err)
	on := moorage.Identifier{Warehouse: "lake"}
	set, err := f.Protections().Set(f.Ctx, access.Warehouse, on, true)
	must(t, err)
	if !set.Protected || set.By != nil {
		t.Errorf("the protection is %+v", set)
	}
	catalogkit.WantKind(t, f.Warehouses().Drop(f.Ctx, "lake"), moorage.KindForbidden)
	_, err = f.Protections().Set(f.Ctx, access.Warehouse, on, false)
	must(t, err)
	must(t, f.Warehouses().Drop(f.Ctx, "lake"))
}

// TestProtectionIsInherited shows who protects an object, and that the first protection raises the
// version that the store needs, after which older nodes are awaited once.
func TestProtectionIsInherited(t *testing.T) {
	t.Parallel()
	awaited := 0
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.AwaitOldNodes = func(context.Context) error {
			awaited++
			return nil
		}
	})
	f.Create("t")
	of := func(kind access.Kind, on moorage.Identifier) string {
		t.Helper()
		found, err := f.Protections().Load(f.Ctx, kind, on)
		must(t, err)
		container := "-"
		if found.By != nil {
			container = found.By.Warehouse + "/" + found.By.Namespace.String()
		}
		return fmt.Sprint(found.Protected, " ", container)
	}
	ns := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}
	must(t, protectTable("t")(f.Ctx, f.Instance))
	must(t, protect()(f.Ctx, f.Instance))
	if got := []string{of(access.Table, ident("t")), of(access.Namespace, ns)}; !slices.Equal(got, []string{"true w/", "false w/"}) {
		t.Errorf("under the warehouse: %q", got)
	}
	must(t, protect("ns")(f.Ctx, f.Instance))
	if got := of(access.Table, ident("t")); got != "true w/ns" {
		t.Errorf("under the namespace: %q", got)
	}
	records, err := f.Ledger.Get(f.Ctx, registry.FormatKey())
	must(t, err)
	format, err := registry.Decode[registry.Format](records[0])
	must(t, err)
	if format.Version != registry.FormatProtection || awaited != 1 {
		t.Errorf("the store has format %d, and old nodes were awaited %d times", format.Version, awaited)
	}
	f.WantClean()
}

// TestProtectAgainstDrops has 16 clients drop tables by two nodes while one of these protects the
// namespace. No table goes after that has been answered.
func TestProtectAgainstDrops(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		const droppers, each = 16, 4
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store, c.Locks = store, catalogkit.NoLocks() })
		other, err := catalogkit.NewInstance(f.Config)
		must(t, err)
		nodes := []*catalogkit.Instance{f.Instance, other}
		name := func(dropper, n int) string { return fmt.Sprintf("t%d-%d", dropper, n) }
		for dropper := range droppers {
			for n := range each {
				f.Create(name(dropper, n))
			}
		}
		started := make(chan struct{}, droppers*each)
		var dropping sync.WaitGroup
		for dropper := range droppers {
			dropping.Go(func() {
				for n := range each {
					err := nodes[dropper%2].DropTable(f.Ctx, ident(name(dropper, n)), catalog.DropOptions{})
					started <- struct{}{}
					if kind := moorage.KindOf(err); err != nil && kind != moorage.KindForbidden && kind != moorage.KindUnavailable {
						t.Error(err)
					}
				}
			})
		}
		<-started // one drop is over
		must(t, protect("ns")(f.Ctx, other))
		kept, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
		must(t, err)
		dropping.Wait()
		after, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
		must(t, err)
		if !slices.Equal(kept, after) {
			t.Errorf("there were %q when the protection was answered, and there are %q", kept, after)
		}
		f.WantClean()
	})
}

// protectRaces are those of a protection with a drop.
func protectRaces() []race {
	one := func(f *catalogkit.Fixture) { f.Create("t") }
	return []race{
		{
			name: "protect a namespace, drop a table in it", prepare: one,
			a: protect("ns"), b: dropTable(ident("t"), catalog.DropOptions{}),
			ends: []string{"done, done: ns", "done, forbidden: ns ns:t"},
		},
		{
			name: "protect a table, drop it", prepare: one,
			a: protectTable("t"), b: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
			ends: []string{"no such table, done: ns", "done, forbidden: ns ns:t"},
		},
		{
			name: "protect a warehouse, drop a namespace",
			a:    protect(), b: dropNamespace("ns"),
			ends: []string{"done, done:", "done, forbidden: ns"},
		},
		{
			name: "protect a namespace, forget a table that was in it", prepare: func(f *catalogkit.Fixture) {
				droppedTable(catalog.DropOptions{})(f)
			},
			a: protect("ns"), b: forgetTable(ident("t")), leaves: true,
			ends: []string{"done, done: ns", "done, forbidden: ns"},
		},
	}
}
