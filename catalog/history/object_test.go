package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/history"
	"moorage/registry"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// table returns a request for the history of a table.
func table(name string) history.Asked {
	return history.Asked{Kind: registry.ItemTable, Ident: testkit.Ident(name)}
}

// allOf returns the whole history of an object. It reads the history in pages of one, two and many
// changes, and the results must be equal. complete is the IsComplete of the last page.
func allOf(t *testing.T, feed *history.Feed, caller moorage.Caller, asked history.Asked) (
	object history.Object, versions []history.Event, complete bool) {
	t.Helper()
	var texts []string
	for _, asked.Limit = range []int{1, 2, 0} {
		versions, complete, asked.After = nil, false, ""
		for {
			page, err := feed.Of(t.Context(), caller, asked)
			if err != nil {
				t.Fatal(err)
			}
			object, complete = page.Object, complete || page.IsComplete
			versions = append(versions, page.Versions...)
			if asked.After = page.Next; asked.After == "" {
				break
			}
		}
		texts = append(texts, strings.Join(wordsOf(versions), "\n"))
	}
	if texts[0] != texts[2] || texts[1] != texts[2] {
		t.Errorf("the pages have\n%s\nand\n%s\nand\n%s", texts[0], texts[1], texts[2])
	}
	return object, versions, complete
}

// wordsOf returns the version, the operation and the name of each event.
func wordsOf(events []history.Event) []string {
	var words []string
	for _, e := range events {
		text := strings.TrimSpace(e.Version + " " + e.Operation)
		words = append(words, text+" "+e.Ident.String())
	}
	return words
}

func wantHistory(t *testing.T, f *catalogkit.Fixture, asked history.Asked, state string, isComplete bool, want ...string) (
	history.Object, []history.Event) {
	t.Helper()
	object, versions, complete := allOf(t, f.History(), moorage.Anonymous(), asked)
	if got := wordsOf(versions); object.State != state || complete != isComplete || !slices.Equal(got, want) {
		t.Errorf("%+v: a %s object, complete: %t\n%s\nwant %s, %t\n%s", asked, object.State, complete,
			strings.Join(got, "\n"), state, isComplete, strings.Join(want, "\n"))
	}
	return object, versions
}

// TestHistoryOfATable follows a table through commits, renames, a drop, an undrop and its end. The
// whole history is found by ID and by the last name.
func TestHistoryOfATable(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store = store })
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		made := f.Create("t")
		f.Clock.Advance(time.Minute)
		_, err := f.Commit(f.Ctx, testkit.Ident("t"), catalogkit.AppendSnapshot(t, made, 7, 0, 1))
		must(err)
		must(f.RenameTable(f.Ctx, testkit.Ident("t"), testkit.Ident("u")))
		_, err = f.Named("ann").Commit(f.Ctx, testkit.Ident("u"), catalogkit.SetProperty(t, "a", "b"))
		must(err)
		began := []string{"now~1 update-table ns.t", "now~2 create-table ns.t"}
		object, versions := wantHistory(t, f, table("u"), history.ObjectLive, true,
			append([]string{"now update-table ns.u", "rename-table ns.u"}, began...)...)
		if versions[0].Caller != "ann" || !slices.Equal(versions[0].Actions, []string{"set-properties a"}) ||
			versions[1].Previous == nil || versions[1].Previous.Name != "t" || *versions[2].Delta.Snapshots != 1 {
			t.Errorf("the versions are %+v", versions)
		}
		must(f.RenameTable(f.Ctx, testkit.Ident("u"), testkit.Ident("w")))
		_, err = f.History().Of(f.Ctx, moorage.Anonymous(), table("t"))
		catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
		must(f.Named("bob").DropTable(f.Ctx, testkit.Ident("w"), catalog.DropOptions{}))
		whole := append([]string{"drop-table ns.w", "rename-table ns.w", "now update-table ns.u", "rename-table ns.u"}, began...)
		dropped, _ := wantHistory(t, f, table("w"), history.ObjectDropped, true, whole...)
		if dropped.Dropped.By != "bob" || dropped.Purge != history.PurgeNone || !dropped.EndsAt.After(dropped.Dropped.At) ||
			dropped.ID != object.ID {
			t.Errorf("the dropped table is %+v", dropped)
		}
		byID := history.Asked{ID: object.ID}
		wantHistory(t, f, byID, history.ObjectDropped, true, whole...)

		_, err = f.RegisterTable(f.Ctx, testkit.Ident("back"), catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
		must(err)
		whole = append([]string{"register-table ns.back"}, whole...)
		wantHistory(t, f, table("back"), history.ObjectLive, true, whole...)
		f.Create("w") // another table with the former name
		wantHistory(t, f, table("w"), history.ObjectLive, true, "now create-table ns.w")

		_, err = f.UnregisterTable(f.Ctx, testkit.Ident("back"))
		must(err)
		for i, text := range whole { // no document names the versions any more
			if first, rest, _ := strings.Cut(text, " "); strings.HasPrefix(first, "now") {
				whole[i] = rest
			}
		}
		ended, _ := wantHistory(t, f, table("back"), history.ObjectEnded, true, append([]string{"x-unregister ns.back"}, whole...)...)
		if ended.Dropped.How != registry.EndedUnregister {
			t.Errorf("the table ended as %+v", ended.Dropped)
		}
		_, err = f.History().Of(f.Ctx, moorage.Anonymous(), byID)
		catalogkit.WantKind(t, err, moorage.KindNotFound)
		both := table("back")
		both.ID = object.ID
		if found, err := f.History().Of(f.Ctx, moorage.Anonymous(), both); err != nil || found.Object.ID != object.ID {
			t.Errorf("by id and last name: %+v, %v", found.Object, err)
		}
	})
}

// TestHistoryOfAWindowsEnd: a dropped table that ended keeps its history under its last name. If a
// later table of the same name ended too, the name refers to the later one, and the earlier one is
// found by ID.
func TestHistoryOfAWindowsEnd(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	var ids []registry.ID
	for range 2 {
		f.Create("t")
		ids = append(ids, f.PointerOf("t").ID)
		if err := f.DropTable(f.Ctx, testkit.Ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
		f.Clock.Advance(8 * 24 * time.Hour)
		if err := f.EndWindows(f.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"x-end ns.t", "drop-table ns.t", "create-table ns.t"}
	for n, id := range ids {
		asked := table("t")
		asked.ID = id
		object, _ := wantHistory(t, f, asked, history.ObjectEnded, true, want...)
		if object.ID != id || object.Dropped.How != registry.EndedWindow {
			t.Errorf("table %d: %+v", n, object)
		}
	}
	if object, _ := wantHistory(t, f, table("t"), history.ObjectEnded, true, want...); object.ID != ids[1] {
		t.Errorf("the name means %s, not the later one", object.ID)
	}
}

// TestHistoryOfANamespace: the history has the changes of properties and the drop, but nothing
// about a new namespace of the same name.
func TestHistoryOfANamespace(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	ns := moorage.Namespace{"a", "b"}
	asked := history.Asked{Kind: registry.ItemNamespace, Ident: moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, ns[:1], nil)
	must(err)
	_, err = f.CreateNamespace(f.Ctx, catalogkit.Warehouse, ns, nil)
	must(err)
	_, err = f.Named("ann").UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"k": "v"}})
	must(err)
	lived := []string{"update-namespace-properties a.b.", "create-namespace a.b."}
	wantHistory(t, f, asked, history.ObjectLive, true, lived...)
	must(f.DropNamespace(f.Ctx, catalogkit.Warehouse, ns))
	dropped, _ := wantHistory(t, f, asked, history.ObjectEnded, true, append([]string{"drop-namespace a.b."}, lived...)...)
	_, err = f.CreateNamespace(f.Ctx, catalogkit.Warehouse, ns, nil)
	must(err)
	object, _ := wantHistory(t, f, asked, history.ObjectLive, true, lived[1])
	if object.ID == dropped.ID {
		t.Error("both namespaces have the same id")
	}
}

// TestHistoryBeyondTheLog: where a table's changes were deleted, the history continues with the
// files of its metadata log.
func TestHistoryBeyondTheLog(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	for _, value := range []string{"1", "2", "3"} {
		if _, err := f.Commit(f.Ctx, testkit.Ident("t"), catalogkit.SetProperty(t, "k", value)); err != nil {
			t.Fatal(err)
		}
	}
	_, versions := wantHistory(t, f, table("t"), history.ObjectLive, true, "now update-table ns.t", "now~1 update-table ns.t",
		"now~2 update-table ns.t", "now~3 create-table ns.t")
	forget := func(event history.Event) {
		t.Helper()
		var id registry.ID
		digits, _, _ := strings.Cut(event.ID, ".")
		if err := id.UnmarshalText([]byte(digits)); err != nil {
			t.Fatal(err)
		}
		_, err := registrytest.Ledger(f.Store).Step(f.Ctx, registry.Batch{Writes: []registry.Write{registry.Delete(registry.ChangeKey(id))}})
		if err != nil {
			t.Fatal(err)
		}
	}
	forget(versions[2])
	_, older := wantHistory(t, f, table("t"), history.ObjectLive, false, "now update-table ns.t", "now~1 update-table ns.t",
		"now~2 ns.t", "now~3 ns.t")
	for i := 2; i < 4; i++ {
		if older[i].MetadataLocation != versions[i].MetadataLocation || older[i].Time.IsZero() || older[i].ID != "" || older[i].Caller != "" {
			t.Errorf("version %d is %+v, not the file of %+v", i, older[i], versions[i])
		}
	}
	forget(versions[0])
	wantHistory(t, f, table("t"), history.ObjectLive, false, "now ns.t", "now~1 ns.t", "now~2 ns.t", "now~3 ns.t")
	for _, after := range []string{"x", "\x00cx 1 true", "\x00c" + (registry.ID{1}).String() + " 0 false"} {
		asked := table("t")
		asked.After = after
		_, err := f.History().Of(f.Ctx, moorage.Anonymous(), asked)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
}

// TestHistoryOfAView: versions of a view are named after the files made by its changes.
func TestHistoryOfAView(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.MakeView("v")
	request := catalogkit.ReplaceRequest(t, `[]`, `[{"action":"set-properties","updates":{"a":"b"}}]`)
	if _, err := f.ReplaceView(f.Ctx, testkit.Ident("v"), request); err != nil {
		t.Fatal(err)
	}
	if err := f.RenameView(f.Ctx, testkit.Ident("v"), testkit.Ident("w")); err != nil {
		t.Fatal(err)
	}
	asked := history.Asked{Kind: registry.ItemView, Ident: testkit.Ident("w")}
	lived := []string{"rename-view ns.w", "now update-view ns.v", "now~1 create-view ns.v"}
	wantHistory(t, f, asked, history.ObjectLive, true, lived...)
	if err := f.DropView(f.Ctx, testkit.Ident("w")); err != nil {
		t.Fatal(err)
	}
	wantHistory(t, f, asked, history.ObjectDropped, true, append([]string{"drop-view ns.w"}, lived...)...)
	_, err := f.History().Of(f.Ctx, moorage.Anonymous(), table("w"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
}

// countedReads is a store that counts its reads.
type countedReads struct {
	registry.Store
	n atomic.Int64
}

func (s *countedReads) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.n.Add(1)
	return s.Store.Get(ctx, keys...)
}

func (s *countedReads) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.n.Add(1)
	return s.Store.List(ctx, table, prefix, after, limit)
}

// TestReadsOfAHistory: a page takes one read for each change, and a fixed number of further reads.
func TestReadsOfAHistory(t *testing.T) {
	t.Parallel()
	const commits, more = 120, 4
	var reads *countedReads
	f := catalogkit.New(t, func(c *catalog.Config) {
		reads = &countedReads{Store: c.Store}
		c.Store = reads
	})
	f.Create("t")
	for n := range commits {
		if _, err := f.Commit(f.Ctx, testkit.Ident("t"), catalogkit.SetProperty(t, "k", fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	asked, pages := table("t"), 0
	for ; pages == 0 || asked.After != ""; pages++ {
		reads.n.Store(0)
		page, err := f.History().Of(f.Ctx, moorage.Anonymous(), asked)
		if n := reads.n.Load(); err != nil || n > int64(len(page.Versions))+more || len(page.Versions) > history.PageMax {
			t.Errorf("%d versions took %d reads, %v", len(page.Versions), n, err)
		}
		asked.After = page.Next
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}
