package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/history"
	"moorage/catalog/warehouses"
	"moorage/metadata"
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

// protectionsOf returns the verbs of c for protection.
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

// unregisterTable is a client that unregisters a table.
func unregisterTable(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.UnregisterTable(ctx, name)
		return err
	}
}

// registerOver is a client that registers the file of a table over that table.
func registerOver(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		table, err := c.LoadTable(ctx, name)
		if err != nil {
			return err
		}
		_, err = c.RegisterTable(ctx, name, catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
		return err
	}
}

// delayPurges gives the warehouse a purge delay.
func delayPurges(f *catalogkit.Fixture) {
	f.T.Helper()
	delay := "7d"
	change := warehouses.Change{Properties: map[string]*string{metadata.PropPurgeDelay: &delay}}
	_, err := f.Warehouses().Change(f.Ctx, catalogkit.Warehouse, change)
	must(f.T, err)
}

// callForward is a client that creates a table at the location of the dropped table t. It returns
// nil if the create has begun t's purge.
func callForward(ctx context.Context, c catalog.Verbs) error {
	err := createTableAt(ident("u"), "file:///wh/ns/t")(ctx, c)
	if moorage.KindOf(err) == moorage.KindUnavailable && strings.Contains(moorage.MessageOf(err), "still being purged") {
		return nil
	}
	return err
}

// inner returns the name of a table in a namespace below the namespace of the other tables.
func inner() moorage.Identifier {
	return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns", "b"}, Name: "t"}
}

// dropInner creates the table inner, and drops it and its namespace.
func dropInner(f *catalogkit.Fixture) {
	f.T.Helper()
	inner := inner()
	must(f.T, createNamespace("ns", "b")(f.Ctx, f.Instance))
	must(f.T, createTable(inner)(f.Ctx, f.Instance))
	must(f.T, f.DropTable(f.Ctx, inner, catalog.DropOptions{}))
	must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, inner.Namespace))
}

// makeAgain drops t and its namespace, and recreates a namespace of that name.
func makeAgain(f *catalogkit.Fixture) {
	f.T.Helper()
	dropOf(f, "t")
	must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
	must(f.T, createNamespace("ns")(f.Ctx, f.Instance))
}

// TestProtected tries each change that protection refuses, with protection of the object and of
// each container. The refusal names the command that ends the protection. After that command, the
// change succeeds. Other changes of a protected object succeed.
func TestProtected(t *testing.T) {
	t.Parallel()
	by := map[string]struct {
		protect catalogkit.RaceClient
		kind    access.Kind
		on      moorage.Identifier
		says    string
	}{
		"the table":     {protectTable("t"), access.Table, ident("t"), "ns.t is protected: moorage protect w/ns.t --off"},
		"its namespace": {protect("ns"), access.Namespace, moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}, "protected by namespace ns: moorage protect w/ns --off"},
		"its warehouse": {protect(), access.Warehouse, moorage.Identifier{Warehouse: "w"}, "protected by warehouse w: moorage protect w/ --off"},
	}
	for name, row := range map[string]struct {
		prepare func(f *catalogkit.Fixture)
		do      catalogkit.RaceClient
		not     []string // containers whose protection does not prevent it
	}{
		"call its purge forward":                     {func(f *catalogkit.Fixture) { delayPurges(f); purgeT(f) }, callForward, []string{"the table"}},
		"purge it now, its namespace is gone":        {dropInner, purgeNow(inner()), []string{"the table"}},
		"forget it now, its namespace is gone":       {dropInner, forgetTable(inner()), []string{"the table"}},
		"purge it now, its namespace was made again": {makeAgain, purgeNow(ident("t")), []string{"the table", "its namespace"}},
		"drop":             {nil, dropTable(ident("t"), catalog.DropOptions{}), nil},
		"purge":            {nil, dropTable(ident("t"), catalog.DropOptions{Purge: true}), nil},
		"unregister":       {nil, unregisterTable(ident("t")), nil},
		"register over it": {nil, registerOver(ident("t")), nil},
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
				kind, says := moorage.KindForbidden, protection.says
				switch {
				case name == "call its purge forward": // the create is refused because of the location
					kind, says = moorage.KindCommitFailed, "Its files are kept until"
				case name == "drop its namespace" && container == "its namespace":
					says = "ns is protected: moorage protect w/ns --off"
				}
				catalogkit.WantKind(t, err, kind)
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

// TestProtectWarehouse: a protected warehouse cannot be dropped, even if it is empty.
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

// TestProtectionIsInherited checks which container protects an object. It also checks that the
// first protection raises the version that the store requires, and then waits once for older nodes.
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

// TestProtectAwaitsOldNodes: Set returns only after older nodes have ended. This holds even if
// another process, or a failed request, has already raised the version that the store requires.
func TestProtectAwaitsOldNodes(t *testing.T) {
	t.Parallel()
	awaited, fails := 0, true
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.AwaitOldNodes = func(context.Context) error {
			awaited++
			if fails {
				return moorage.Errorf(moorage.KindUnavailable, "The caller has gone")
			}
			return nil
		}
	})
	other, err := catalogkit.NewInstance(f.Config)
	must(t, err)
	wants := func(n *catalogkit.Instance, name string, times int) {
		t.Helper()
		awaited = 0
		if err := protect("ns")(f.Ctx, n); (err != nil) != fails {
			t.Errorf("%s: %v", name, err)
		}
		if awaited != times {
			t.Errorf("%s: old nodes were awaited %d times, want %d", name, awaited, times)
		}
	}
	wants(f.Instance, "the request that raised the version", 1)
	found, err := f.Protections().Load(f.Ctx, access.Namespace, moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}})
	must(t, err)
	if found.Protected {
		t.Error("it is protected, although older nodes may run")
	}
	wants(other, "another node", 1)
	fails = false
	wants(f.Instance, "a repetition", 1)
	wants(f.Instance, "the next request", 0)
	wants(other, "the first request of another node", 1)
	f.WantClean()
}

// In TestProtectAgainstDrops, 16 clients drop tables on two nodes, while one of the nodes protects
// the namespace. After Set has returned, no table is dropped. The last drop of each client begins
// after that.
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
		started, answered := make(chan struct{}, droppers*each), make(chan struct{})
		var refused atomic.Int64
		var dropping sync.WaitGroup
		for dropper := range droppers {
			dropping.Go(func() {
				for n := range each {
					if n == each-1 {
						<-answered
					}
					err := nodes[dropper%2].DropTable(f.Ctx, ident(name(dropper, n)), catalog.DropOptions{})
					started <- struct{}{}
					switch kind := moorage.KindOf(err); {
					case err == nil, kind == moorage.KindUnavailable:
					case kind == moorage.KindForbidden:
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		<-started // wait for the end of one drop
		err = protect("ns")(f.Ctx, other)
		close(answered)
		must(t, err)
		kept, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
		must(t, err)
		dropping.Wait()
		after, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
		must(t, err)
		if len(kept) < droppers || refused.Load() == 0 {
			t.Errorf("%d tables were kept, and %d drops refused: want %d and at least one", len(kept), refused.Load(), droppers)
		}
		if !slices.Equal(kept, after) {
			t.Errorf("there were %q when the protection was answered, and there are %q", kept, after)
		}
		f.WantClean()
	})
}

// protectAndLook protects an object, and then checks whether the racing change has happened. If it
// has, it returns KindNotFound. So nil promises that the racing change will be refused. If time
// passes during the check, it may return KindUnavailable although the object is protected.
func protectAndLook(set catalogkit.RaceClient, happened func(ctx context.Context, c catalog.Verbs) (bool, error)) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		if err := set(ctx, c); err != nil {
			return err
		}
		gone, err := happened(ctx, c)
		if err == nil && gone {
			err = moorage.Errorf(moorage.KindNotFound, "It had happened")
		}
		return err
	}
}

// tableIsGone reports whether there is no table called t.
func tableIsGone(ctx context.Context, c catalog.Verbs) (bool, error) {
	_, err := c.LoadTable(ctx, ident("t"))
	if moorage.KindOf(err) == moorage.KindNoSuchTable {
		return true, nil
	}
	return false, err
}

// purgeHasBegun reports whether the dropped table t can no longer be restored.
func purgeHasBegun(ctx context.Context, c catalog.Verbs) (bool, error) {
	rows, _, err := droppedOf(c).List(ctx, catalog.DroppedListing{
		Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns"}, Name: "t",
	}, moorage.Page{Limit: 10})
	return err == nil && (len(rows) == 0 || rows[0].Purge == history.PurgeBegun), err
}

// protectRaces returns the races of a protection with each change that it refuses.
func protectRaces() []race {
	one := func(f *catalogkit.Fixture) { f.Create("t") }
	dropped := func(f *catalogkit.Fixture) { droppedTable(catalog.DropOptions{})(f) }
	replacing := called("t")
	replacing.Replace = true
	return []race{
		{
			name: "protect a namespace, drop a table in it", prepare: one,
			a: protectAndLook(protect("ns"), tableIsGone), b: dropTable(ident("t"), catalog.DropOptions{}),
			ends: []string{"not found, done: ns", "done, forbidden: ns ns:t", "?unavailable, forbidden: ns ns:t"},
		},
		{
			name: "protect a table, drop it", prepare: one,
			a: protectTable("t"), b: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
			ends: []string{"no such table, done: ns", "done, forbidden: ns ns:t"},
		},
		{
			name: "protect a namespace, unregister a table in it", prepare: one, leaves: true,
			a: protectAndLook(protect("ns"), tableIsGone), b: unregisterTable(ident("t")),
			ends: []string{"not found, done: ns", "done, forbidden: ns ns:t", "?unavailable, forbidden: ns ns:t"},
		},
		{
			name: "protect a namespace, rename a table out of it",
			prepare: func(f *catalogkit.Fixture) {
				one(f)
				must(f.T, createNamespace("x")(f.Ctx, f.Instance))
			},
			a: protectAndLook(protect("ns"), tableIsGone), b: renameTable(ident("t"), inNamespace("x", "t")),
			ends: []string{"not found, done: ns x x:t", "done, forbidden: ns ns:t x", "?unavailable, forbidden: ns ns:t x"},
		},
		{
			name: "protect a warehouse, drop a namespace",
			a: protectAndLook(protect(), func(ctx context.Context, c catalog.Verbs) (bool, error) {
				_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"})
				if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
					return true, nil
				}
				return false, err
			}), b: dropNamespace("ns"),
			ends: []string{"not found, done:", "done, forbidden: ns", "?unavailable, forbidden: ns"},
		},
		{
			name: "protect a namespace, forget a table that was in it", prepare: dropped, leaves: true,
			a: protectAndLook(protect("ns"), purgeHasBegun), b: forgetTable(ident("t")),
			ends: []string{"not found, done: ns", "done, forbidden: ns", "?unavailable, forbidden: ns"},
		},
		{
			name: "protect a namespace, purge a table that was in it", prepare: dropped,
			a: protectAndLook(protect("ns"), purgeHasBegun), b: purgeNow(ident("t")),
			ends: []string{"not found, done: ns", "done, forbidden: ns", "?unavailable, forbidden: ns"},
		},
		{
			name: "protect a namespace, create a table at the location of one whose purge waits",
			prepare: func(f *catalogkit.Fixture) {
				delayPurges(f)
				droppedTable(catalog.DropOptions{Purge: true})(f)
			},
			a: protectAndLook(protect("ns"), purgeHasBegun), b: callForward,
			ends: []string{"not found, done: ns", "done, commit failed: ns", "?unavailable, commit failed: ns", "?not found, unavailable: ns"},
		},
		protectOver("protect a namespace, register over a table in it",
			func(f *catalogkit.Fixture) *catalog.Table { return f.Create("t") }, registerOver(ident("t"))),
		protectOver("protect a namespace, undrop over a table in it", func(f *catalogkit.Fixture) *catalog.Table {
			dropped(f)
			return f.Create("t")
		}, undropTable(replacing)),
	}
}

// protectOver is a race of a protection with b, which replaces the table returned by prepare.
func protectOver(name string, prepare func(f *catalogkit.Fixture) *catalog.Table, b catalogkit.RaceClient) race {
	var before *catalog.Table
	isOther := func(ctx context.Context, c catalog.Verbs) (bool, error) {
		is, err := c.LoadTable(ctx, ident("t"))
		return err == nil && (is.Registration != before.Registration || is.Document.UUID() != before.Document.UUID()), err
	}
	return race{
		name: name, prepare: func(f *catalogkit.Fixture) { before = prepare(f) },
		a: protectAndLook(protect("ns"), isOther), b: b,
		ends: []string{"not found, done: ns ns:t", "done, forbidden: ns ns:t", "?unavailable, forbidden: ns ns:t"},
	}
}
