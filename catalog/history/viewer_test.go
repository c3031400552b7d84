package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/catalog/history"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// TestHiddenNamesStayHidden: no answer contains the name of a hidden namespace, or of a table in
// it, whatever happens to them. Everything that the caller may see is there.
func TestHiddenNamesStayHidden(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		clock := testkit.NewClock()
		s := catalogkit.NewSecured(t, store, alone, func(c *catalog.Config) { c.Now = clock.Now })
		s.Populate()
		clock.Advance(2 * time.Minute) // more than clocks of nodes may differ
		ctx, ann := t.Context(), s.Named(catalogkit.AnnName)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		in := func(namespace, name string) moorage.Identifier {
			return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{namespace}, Name: name}
		}
		s.Grant(catalogkit.OnWarehouse(), catalogkit.AnnName, access.Locate)
		s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
		request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
		_, err := ann.CreateTable(ctx, in("ns", "v"), request)
		must(err)
		_, err = ann.CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"hidden"}, nil)
		must(err)
		for n, name := range []string{"secret", "secret2", "secret3"} {
			request.Location = fmt.Sprint("file:///wh/", n) // a caller that may load a table sees its location
			_, err = ann.CreateTable(ctx, in("hidden", name), request)
			must(err)
		}
		s.Grant(catalogkit.OnNamespace("hidden"), catalogkit.EtlName, access.Describe)
		must(ann.RenameTable(ctx, in("hidden", "secret"), in("ns", "moved"))) // out of hiding
		must(ann.RenameTable(ctx, in("ns", "v"), in("hidden", "secretly")))   // into it
		must(ann.DropTable(ctx, in("hidden", "secret2"), catalog.DropOptions{}))
		must(ann.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
			{Ident: in("hidden", "secret3"), CommitRequest: catalogkit.SetProperty(t, "a", "b")},
			{Ident: in("ns", "t"), CommitRequest: catalogkit.SetProperty(t, "a", "b")},
		}))
		_, err = ann.Commit(ctx, in("ns", "moved"), catalogkit.SetProperty(t, "a", "b"))
		must(err)

		ops := func(caller string, filter history.Filter) (got []string, text string) {
			t.Helper()
			events, _ := readAll(t, s.History(), moorage.Caller{Name: caller}, history.Query{Filter: filter, Limit: 3})
			for _, e := range events {
				got = append(got, e.Operation+" "+e.Ident.String())
			}
			encoded, err := json.Marshal(events)
			must(err)
			return got, string(encoded)
		}
		ns := moorage.Namespace{"ns"}
		for name, filter := range map[string]history.Filter{
			"all": {}, "warehouse": {Warehouse: catalogkit.Warehouse}, "namespace": {Warehouse: catalogkit.Warehouse, Namespace: ns},
			"table":  {Warehouse: catalogkit.Warehouse, Namespace: ns, Name: "moved"},
			"left":   {Warehouse: catalogkit.Warehouse, Namespace: ns, Name: "v"},
			"hidden": {Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"hidden"}},
		} {
			got, text := ops(catalogkit.BobName, filter)
			if strings.Contains(text, "hidden") || strings.Contains(text, "secret") || strings.Contains(text, `"principal"`) {
				t.Errorf("%s: bob is shown %s", name, text)
			}
			if name == "namespace" && !slices.Equal(got, []string{
				"create-namespace ns.", "create-table ns.t", "create-table ns.u", "create-table ns.v", "update-table ns.t",
				"update-table ns.moved",
			}) {
				t.Errorf("bob sees of his namespace %q", got)
			}
		}
		if got, _ := ops(catalogkit.AdminName, history.Filter{Kinds: []string{registry.ItemGrants}}); len(got) == 0 {
			t.Error("the administrator sees no event of grants")
		}
		s.Change(grants.Change{Object: grants.Object{}, Grantee: catalogkit.BobName, Privileges: access.Describe})
		if _, text := ops(catalogkit.BobName, history.Filter{}); !strings.Contains(text, "secret2") {
			t.Error("with describe on the server bob does not see everything")
		}
	})
}

// policed returns a catalog with access control enabled, and its clock. seen returns the operations
// and names of the events that are visible to a caller.
func policed(t *testing.T) (s *catalogkit.Secured, clock *testkit.Clock, seen func(string, history.Filter) []string) {
	t.Helper()
	clock = testkit.NewClock()
	s = catalogkit.NewSecured(t, memory.New(testkit.NewBits(1)), true, func(c *catalog.Config) { c.Now = clock.Now })
	s.Populate()
	return s, clock, func(caller string, filter history.Filter) (got []string) {
		t.Helper()
		events, _ := readAll(t, s.History(), moorage.Caller{Name: caller}, history.Query{Filter: filter, Limit: 3})
		for _, e := range events {
			got = append(got, e.Operation+" "+e.Ident.String())
		}
		return got
	}
}

// TestSameNameAgain: a caller with describe on a namespace does not see the events of an earlier
// namespace of the same name. This holds even if the clock of the node that created the new
// namespace is slow.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	s, clock, seen := policed(t)
	ctx, ann := t.Context(), s.Named(catalogkit.AnnName)
	ns := moorage.Namespace{"again"}
	create := func(table string) {
		t.Helper()
		_, err := ann.CreateTable(ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: table},
			catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		if err != nil {
			t.Fatal(err)
		}
	}
	createNamespace := func() {
		t.Helper()
		if _, err := ann.CreateNamespace(ctx, catalogkit.Warehouse, ns, nil); err != nil {
			t.Fatal(err)
		}
	}
	createNamespace()
	create("dropped")
	create("gone")
	err := ann.DropTable(ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: "dropped"},
		catalog.DropOptions{})
	if err == nil {
		_, err = ann.UnregisterTable(ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: "gone"})
	}
	if err == nil {
		err = ann.DropNamespace(ctx, catalogkit.Warehouse, ns)
	}
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(-30 * time.Second)
	createNamespace()
	create("early")
	s.Grant(catalogkit.OnNamespace(ns...), catalogkit.BobName, access.Describe)
	clock.Advance(2 * time.Minute)
	create("late")
	for name, filter := range map[string]history.Filter{
		"all": {}, "namespace": {Warehouse: catalogkit.Warehouse, Namespace: ns},
	} {
		want := []string{"create-namespace again.", "create-table again.early", "create-table again.late"}
		if got := seen(catalogkit.BobName, filter); !slices.Equal(got, want) {
			t.Errorf("%s: bob sees %q, want %q", name, got, want)
		}
	}
}

// TestUnreadableRecords: an unreadable pointer or container is treated as gone. So the events of
// other objects stay visible, and the feed does not fail.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	s, clock, seen := policed(t)
	ctx := t.Context()
	s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
	s.Grant(catalogkit.OnNamespace("other"), catalogkit.BobName, access.Describe)
	s.Grant(catalogkit.OnWarehouse(), catalogkit.EtlName, access.Describe)
	damage := func(table registry.Table, part string) {
		t.Helper()
		records, err := s.Store.List(ctx, table, "", "", registry.ListLimitMax)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			if strings.Contains(string(record.Value), part) || strings.HasSuffix(record.Key.ID, part) {
				_, err := registrytest.Ledger(s.Store).Step(ctx, registry.Batch{
					Writes: []registry.Write{registry.Put(record.Key, record.State, []byte("{"))},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	wantSeen := func(caller string, want ...string) {
		t.Helper()
		filter := history.Filter{Operations: []string{history.OpCreateNamespace, history.OpCreateTable}}
		if got := seen(caller, filter); !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", caller, got, want)
		}
	}
	clock.Advance(time.Hour)
	_, err := s.Named(catalogkit.AnnName).CreateTable(ctx, testkit.Ident("late"),
		catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{
		"create-namespace ns.", "create-namespace other.", "create-table ns.t", "create-table ns.u", "create-table ns.late",
	}
	wantSeen(catalogkit.BobName, all...)
	damage(registry.TablePointer, `"name":"u"`)
	wantSeen(catalogkit.BobName, all[0], all[1], all[2], all[4])
	damage(registry.TableNamespace, "ns")
	wantSeen(catalogkit.BobName, all[1])
	wantSeen(catalogkit.EtlName, all[1], all[4]) // the warehouse may be younger than the other events
	damage(registry.TableWarehouse, catalogkit.Warehouse)
	wantSeen(catalogkit.BobName)
}

// TestGrantsOfTables: a caller that manages a table sees the events of its grants. A caller that
// only has describe on a container above it does not.
func TestGrantsOfTables(t *testing.T) {
	t.Parallel()
	s, clock, seen := policed(t)
	clock.Advance(time.Hour)
	s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Manage)
	s.Grant(catalogkit.OnTable("u"), catalogkit.EtlName, access.Describe)
	for name, filter := range map[string]history.Filter{
		"all": {}, "namespace": {Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns"}},
	} {
		filter.Kinds = []string{registry.ItemGrants}
		if got := seen(catalogkit.BobName, filter); !slices.Equal(got, []string{"x-grants ns.t"}) {
			t.Errorf("%s: bob sees %q", name, got)
		}
	}
}

// TestHistoryHidesNames: if a table was moved out of a hidden namespace, its history has no change
// and no name from its time there. A request for a hidden object is answered as if the object did
// not exist, whether it is live, dropped or ended.
func TestHistoryHidesNames(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		clock := testkit.NewClock()
		s := catalogkit.NewSecured(t, store, alone, func(c *catalog.Config) { c.Now = clock.Now })
		s.Populate()
		clock.Advance(2 * time.Minute)
		ctx, ann := t.Context(), s.Named(catalogkit.AnnName)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		in := func(namespace, name string) moorage.Identifier {
			return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{namespace}, Name: name}
		}
		s.Grant(catalogkit.OnWarehouse(), catalogkit.AnnName, access.Locate)
		s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
		_, err := ann.CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"hidden"}, nil)
		must(err)
		_, err = ann.CreateTable(ctx, in("hidden", "secret"), catalog.CreateTableRequest{
			Schema: []byte(catalogkit.Schema), Location: "file:///wh/1",
		})
		must(err)
		must(ann.RenameTable(ctx, in("hidden", "secret"), in("ns", "moved")))
		_, err = ann.Commit(ctx, in("ns", "moved"), catalogkit.SetProperty(t, "a", "b"))
		must(err)
		bob, feed := moorage.Caller{Name: catalogkit.BobName}, s.History()
		asked := table("moved")
		object, versions, complete := allOf(t, feed, bob, asked)
		text, err := json.Marshal([]any{object, versions})
		must(err)
		if complete || !slices.Equal(wordsOf(versions), []string{"now update-table ns.moved"}) ||
			strings.Contains(string(text), "hidden") || strings.Contains(string(text), "secret") {
			t.Errorf("bob is shown %s, complete: %t", text, complete)
		}
		if _, versions, complete := allOf(t, feed, moorage.Caller{Name: catalogkit.AnnName}, asked); len(versions) != 3 || !complete {
			t.Errorf("ann is shown %q, complete: %t", wordsOf(versions), complete)
		}

		// etl may see only the warehouse and the table "u" in ns.
		s.Grant(catalogkit.OnTable("u"), catalogkit.EtlName, access.Describe)
		etl := moorage.Caller{Name: catalogkit.EtlName}
		_, missing := feed.Of(ctx, etl, table("nothing"))
		noID := history.Asked{ID: registry.ID{1}}
		_, missingID := feed.Of(ctx, etl, noID)
		wantMissing := func() {
			t.Helper()
			_, err := feed.Of(ctx, etl, asked)
			if want := strings.Replace(moorage.MessageOf(missing), "nothing", asked.Ident.Name, 1); moorage.KindOf(err) != moorage.KindOf(missing) ||
				moorage.MessageOf(err) != want {
				t.Errorf("etl is answered %v, not %q", err, want)
			}
			_, err = feed.Of(ctx, etl, history.Asked{ID: object.ID})
			want := strings.Replace(moorage.MessageOf(missingID), noID.ID.String(), object.ID.String(), 1)
			if moorage.KindOf(err) != moorage.KindNotFound || moorage.MessageOf(err) != want {
				t.Errorf("etl is answered %v, not %q", err, want)
			}
		}
		wantMissing()
		must(ann.DropTable(ctx, in("ns", "moved"), catalog.DropOptions{}))
		wantMissing()
		if found, err := feed.Of(ctx, bob, asked); err != nil || found.Object.State != history.ObjectDropped {
			t.Errorf("bob is shown %+v, %v", found, err)
		}
		asked = table("left")
		_, err = ann.CreateTable(ctx, asked.Ident, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		must(err)
		found, err := feed.Of(ctx, bob, asked)
		must(err)
		object = found.Object
		_, err = ann.UnregisterTable(ctx, asked.Ident)
		must(err)
		wantMissing()
		if found, err := feed.Of(ctx, bob, asked); err != nil || found.Object.State != history.ObjectEnded {
			t.Errorf("bob is shown %+v, %v", found, err)
		}
	})
}
