package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// Each step in the life of a view is visible to every load, on this node and on one with an empty
// cache.
func TestViewLife(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	made := f.MakeView("v")
	wantFile := func(view *catalog.View, want string) {
		t.Helper()
		if !strings.HasPrefix(view.MetadataLocation, want) || !strings.HasSuffix(view.MetadataLocation, ".gz.metadata.json") {
			t.Errorf("the file is %s, want %s….gz.metadata.json", view.MetadataLocation, want)
		}
	}
	wantFile(made, "file:///wh/ns/v/metadata/00000-")
	replaced, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.NewQuery(t, fmt.Sprintf(`[{"type":"assert-view-uuid","uuid":%q}]`, made.Document.UUID()), "select 2"))
	must(t, err)
	wantFile(replaced, "file:///wh/ns/v/metadata/00001-")
	must(t, f.RenameView(f.Ctx, ident("v"), ident("w")))
	for _, c := range []*catalogkit.Instance{f.Instance, f.Other(f.Store)} {
		loaded, err := c.LoadView(f.Ctx, ident("w"))
		must(t, err)
		if loaded.MetadataLocation != replaced.MetadataLocation || string(loaded.Document.Raw()) != string(replaced.Document.Raw()) || loaded.Document.CurrentVersionID() != 2 {
			t.Errorf("loaded %s, want %s: %s", loaded.MetadataLocation, replaced.MetadataLocation, loaded.Document.Raw())
		}
		if err := c.ViewExists(f.Ctx, ident("v")); moorage.KindOf(err) != moorage.KindNoSuchView || moorage.MessageOf(err) != "View does not exist: ns.v" {
			t.Errorf("its old name: %v", err)
		}
		names, _, err := c.ListViews(f.Ctx, catalogkit.Warehouse, ident("w").Namespace, moorage.Page{})
		must(t, err)
		if !slices.Equal(names, []string{"w"}) {
			t.Errorf("views are %q", names)
		}
	}
	if err := f.DropNamespace(f.Ctx, catalogkit.Warehouse, ident("w").Namespace); moorage.KindOf(err) != moorage.KindNamespaceNotEmpty {
		t.Errorf("drop of its namespace: %v", err)
	}
	f.WantClean()
	must(t, f.DropView(f.Ctx, ident("w")))
	if _, err := f.LoadView(f.Ctx, ident("w")); moorage.KindOf(err) != moorage.KindNoSuchView {
		t.Errorf("after the drop: %v", err)
	}
	back, err := f.RegisterView(f.Ctx, ident("back"), replaced.MetadataLocation)
	must(t, err)
	if back.PointerID() != made.PointerID() || string(back.Document.Raw()) != string(replaced.Document.Raw()) {
		t.Errorf("taken back as %v: %s", back.PointerID(), back.Document.Raw())
	}
	f.WantClean()
}

// A name belongs to a table or to a view, never to both. A request for the other kind finds
// nothing.
func TestViewAndTableOfOneName(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	f.MakeView("v")
	createLooseView(f)
	last := f.Create("last")
	if _, err := f.UnregisterTable(f.Ctx, ident("last")); err != nil {
		t.Fatal(err)
	}
	_, err := f.LoadView(f.Ctx, ident("v")) // this caches the names
	must(t, err)
	_, err = f.LoadTable(f.Ctx, ident("t"))
	must(t, err)
	_, createTableErr := f.CreateTable(f.Ctx, ident("v"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	_, stageErr := f.CreateTable(f.Ctx, ident("v"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
	_, commitCreateErr := f.Commit(f.Ctx, ident("v"), catalogkit.CommitCreateRequest(t, "file:///wh/made"))
	_, createViewErr := f.CreateView(f.Ctx, ident("t"), catalogkit.ViewRequest(""))
	_, againErr := f.CreateView(f.Ctx, ident("v"), catalogkit.ViewRequest(""))
	_, registerTableErr := f.RegisterTable(f.Ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
	_, overwriteErr := f.RegisterTable(f.Ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation, Overwrite: true})
	_, registerViewErr := f.RegisterView(f.Ctx, ident("t"), looseView)
	_, loadTableErr := f.LoadTable(f.Ctx, ident("v"))
	_, loadViewErr := f.LoadView(f.Ctx, ident("t"))
	_, commitErr := f.Commit(f.Ctx, ident("v"), catalogkit.SetProperty(t, "a", "b"))
	_, replaceErr := f.ReplaceView(f.Ctx, ident("t"), catalogkit.SetViewProperty(t, "a", "b"))
	_, unregisterErr := f.UnregisterTable(f.Ctx, ident("v"))
	_, tableOfViewErr := f.RegisterTable(f.Ctx, ident("x"), catalog.RegisterRequest{MetadataLocation: looseView})
	_, viewOfTableErr := f.RegisterView(f.Ctx, ident("x"), last.MetadataLocation)
	for _, test := range []struct {
		what string
		err  error
		want string
	}{
		{"create a table", createTableErr, "already exists: View with same name already exists: ns.v"},
		{"stage a table", stageErr, "already exists: View with same name already exists: ns.v"},
		{"make a table by a commit", commitCreateErr, "already exists: View with same name already exists: ns.v"},
		{"create a view", createViewErr, "already exists: Table with same name already exists: ns.t"},
		{"create it again", againErr, "already exists: View already exists: ns.v"},
		{"register a table", registerTableErr, "already exists: View with same name already exists: ns.v"},
		{"register a table over it", overwriteErr, "already exists: View with same name already exists: ns.v"},
		{"register a view", registerViewErr, "already exists: Table with same name already exists: ns.t"},
		{"load a table", loadTableErr, "no such table: Table does not exist: ns.v"},
		{"load a view", loadViewErr, "no such view: View does not exist: ns.t"},
		{"commit", commitErr, "no such table: Table does not exist: ns.v"},
		{"replace", replaceErr, "no such view: View does not exist: ns.t"},
		{"table in a transaction", f.Transact(catalogkit.On("t", catalogkit.SetProperty(t, "a", "b")), catalogkit.On("v", catalogkit.SetProperty(t, "a", "b"))), "no such table: Table does not exist: ns.v"},
		{"table exists", f.TableExists(f.Ctx, ident("v")), "no such table: Table does not exist: ns.v"},
		{"view exists", f.ViewExists(f.Ctx, ident("t")), "no such view: View does not exist: ns.t"},
		{"drop a table", f.DropTable(f.Ctx, ident("v"), catalog.DropOptions{Purge: true}), "no such table: Table does not exist: ns.v"},
		{"drop a view", f.DropView(f.Ctx, ident("t")), "no such view: View does not exist: ns.t"},
		{"unregister", unregisterErr, "no such table: Table does not exist: ns.v"},
		{"rename a table", f.RenameTable(f.Ctx, ident("v"), ident("x")), "no such table: Table does not exist: ns.v"},
		{"rename a view", f.RenameView(f.Ctx, ident("t"), ident("x")), "no such view: View does not exist: ns.t"},
		{"rename a table to it", f.RenameTable(f.Ctx, ident("t"), ident("v")), "already exists: Cannot rename ns.t to ns.v. View already exists"},
		{"rename a view to it", f.RenameView(f.Ctx, ident("v"), ident("t")), "already exists: Cannot rename ns.v to ns.t. Table already exists"},
		{"rename a view to itself", f.RenameView(f.Ctx, ident("v"), ident("v")), "already exists: Cannot rename ns.v to ns.v. View already exists"},
		{"register a view's file as a table", tableOfViewErr, "bad request: "},
		{"register a table's file as a view", viewOfTableErr, "bad request: "},
	} {
		if got := catalogkit.AnswerText(catalogkit.Reply{}, test.err); !strings.HasPrefix(got, test.want) || strings.HasSuffix(test.want, "ns.v") && got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
	for k, want := range map[*directory.Kind]string{directory.Table(): "ns:t", directory.View(): "ns:view v"} {
		if got := contents(f, f.Instance, k, ident("t").Namespace); !slices.Equal(got, []string{want}) {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	f.WantClean()
}

// A table cannot have the uuid of a view, live or dropped, and a view cannot have the uuid of a
// table.
func TestUUIDOfAView(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	createLooseView(f)
	if _, err := f.RegisterView(f.Ctx, ident("v"), looseView); err != nil {
		t.Fatal(err)
	}
	wantTaken := func(when string, err error) {
		t.Helper()
		if moorage.KindOf(err) != moorage.KindAlreadyExists || !strings.Contains(moorage.MessageOf(err), "with same UUID") {
			t.Errorf("%s: %v", when, err)
		}
	}
	table := strings.ReplaceAll(string(f.Create("other").Document.Raw()), "/wh/ns/other", "/wh/made")
	document, err := f.LoadTable(f.Ctx, ident("other"))
	if err != nil {
		t.Fatal(err)
	}
	const file = "file:///wh/made/metadata/00000-x.metadata.json"
	if err := f.Files.Create(f.Ctx, file, []byte(strings.ReplaceAll(table, document.Document.UUID(), looseViewUUID))); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"live", "dropped"} {
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: file})
		wantTaken("register a table, the view is "+when, err)
		_, err = f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[{"type":"assert-create"}]`, fmt.Sprintf(`[{"action":"assign-uuid","uuid":%q},{"action":"upgrade-format-version","format-version":2},
			{"action":"set-location","location":"file:///wh/made"},{"action":"add-schema","schema":%s,"last-column-id":2},{"action":"set-current-schema","schema-id":-1},
			{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
			{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}]`, looseViewUUID, catalogkit.Schema)))
		wantTaken("make a table by a commit, the view is "+when, err)
		if when == "live" {
			_, err := f.RegisterView(f.Ctx, ident("w"), looseView)
			wantTaken("register it once more", err)
			if err := f.DropView(f.Ctx, ident("v")); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Clock.Advance(catalogkit.UndropWindow + time.Hour)
	if err := f.EndWindows(f.Ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: file}); err != nil {
		t.Errorf("when its undrop window is over: %v", err)
	}
	if _, err := f.RegisterView(f.Ctx, ident("v"), looseView); moorage.KindOf(err) != moorage.KindAlreadyExists {
		t.Errorf("then the uuid is the table's: %v", err)
	}
	f.WantClean()
}

// Concurrent replaces are applied one after another. No version is lost, and each has its own ID.
func TestReplacesThatRace(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	made := f.MakeView("v")
	if _, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, "version.history.num-entries", "1000")); err != nil {
		t.Fatal(err)
	}
	nodes := []*catalogkit.Instance{f.Instance, f.Other(f.Store), f.Other(f.Store)}
	same := fmt.Sprintf(`[{"type":"assert-view-uuid","uuid":%q}]`, made.Document.UUID())
	const clients, each = 6, 10
	var all sync.WaitGroup
	for client := range clients {
		requests := make([]catalog.ReplaceViewRequest, each)
		for i := range requests {
			requests[i] = catalogkit.NewQuery(t, same, fmt.Sprintf("select %d, %d", client, i))
		}
		all.Go(func() {
			for _, request := range requests {
				if _, err := nodes[client%len(nodes)].ReplaceView(f.Ctx, ident("v"), request); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	view, err := f.LoadView(f.Ctx, ident("v"))
	if err != nil {
		t.Fatal(err)
	}
	for client := range clients {
		for i := range each {
			if n := strings.Count(string(view.Document.Raw()), fmt.Sprintf("%q", fmt.Sprintf("select %d, %d", client, i))); n != 1 {
				t.Errorf("version %d of client %d is there %d times", i, client, n)
			}
		}
	}
	if id := view.Document.CurrentVersionID(); id != 1+clients*each {
		t.Errorf("the current version is %d, want %d", id, 1+clients*each)
	}
	f.WantClean()
}

// The requirements of a replace are checked in each attempt, and a failure changes nothing.
func TestReplaceRequires(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	made := f.MakeView("v")
	_, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.NewQuery(t, `[{"type":"assert-view-uuid","uuid":"00000000-0000-4000-8000-000000000000"}]`, "select 2"))
	if moorage.KindOf(err) != moorage.KindCommitFailed {
		t.Errorf("another uuid: %v", err)
	}
	same, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.ReplaceRequest(t, `[]`, `[]`))
	if err != nil || same.MetadataLocation != made.MetadataLocation {
		t.Errorf("a replace by nothing: %v, %v", same, err)
	}
	again, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.NewQuery(t, `[]`, "select 1"))
	if err != nil || again.MetadataLocation != made.MetadataLocation {
		t.Errorf("a replace by the version that is there: %v, %v", again, err)
	}
}

// A view's files are in its location, which no other object gets, or in the folder set by its
// properties. They are compressed unless the properties disable that.
func TestViewLocations(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	request := catalogkit.ViewRequest("file:///wh/mine/")
	request.Properties = map[string]string{documents.PropMetadataPath: "file:///wh/elsewhere", documents.PropMetadataCodec: "none"}
	view, err := f.CreateView(f.Ctx, ident("v"), request)
	if err != nil {
		t.Fatal(err)
	}
	if view.Document.Location() != "file:///wh/mine" || !strings.HasPrefix(view.MetadataLocation, "file:///wh/elsewhere/00000-") || strings.Contains(view.MetadataLocation, ".gz.") {
		t.Errorf("location %s, file %s", view.Document.Location(), view.MetadataLocation)
	}
	for what, err := range map[string]error{
		"a table in it":          createTableAt(ident("t"), "file:///wh/mine/t")(f.Ctx, f.Instance),
		"a view at it":           createViewAt(ident("w"), "file:///wh/mine")(f.Ctx, f.Instance),
		"a view outside":         createViewAt(ident("w"), "file:///other/w")(f.Ctx, f.Instance),
		"a view around it":       createViewAt(ident("w"), "file:///wh")(f.Ctx, f.Instance),
		"metadata files outside": catalogkit.ReplaceView(ident("v"), catalogkit.SetViewProperty(t, documents.PropMetadataPath, "file:///other/v"))(f.Ctx, f.Instance),
		"a location outside":     catalogkit.ReplaceView(ident("v"), catalogkit.ReplaceRequest(t, `[]`, `[{"action":"set-location","location":"file:///other/v"}]`))(f.Ctx, f.Instance),
	} {
		if moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	if table := f.Create("plain"); strings.Contains(table.MetadataLocation, ".gz.") {
		t.Errorf("a table's file is %s", table.MetadataLocation)
	}
	moved, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.ReplaceRequest(t, `[]`, `[{"action":"set-location","location":"file:///wh/moved"}]`))
	if err != nil || moved.Document.Location() != "file:///wh/moved" {
		t.Fatalf("moved: %v, %v", moved, err)
	}
	for _, claimed := range []string{"file:///wh/mine", "file:///wh/moved"} {
		if err := createTableAt(ident("t"), claimed)(f.Ctx, f.Instance); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("a table at %s: %v", claimed, err)
		}
	}
	_, err = f.ReplaceView(f.Ctx, ident("v"), catalogkit.ReplaceRequest(t, `[]`, `[{"action":"set-location","location":"file:///wh/mine"}]`))
	must(t, err)
	found, err := f.Directory.Find(f.Ctx, directory.View(), ident("v"))
	must(t, err)
	if want := []string{"file:///wh/moved", "file:///wh/mine"}; !slices.Equal(found.Pointer.Claims, want) {
		t.Errorf("moved back, it claims %q, want %q", found.Pointer.Claims, want)
	}
	f.WantClean()
}

// A view's records are deleted at the end of its undrop window. Then its location is free, and its
// files stay.
func TestUndropWindowOfAView(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	view := f.MakeView("v")
	if err := f.DropView(f.Ctx, ident("v")); err != nil {
		t.Fatal(err)
	}
	f.Clock.Advance(catalogkit.UndropWindow + time.Hour)
	if err := f.EndWindows(f.Ctx); err != nil {
		t.Fatal(err)
	}
	for _, table := range []registry.Table{registry.TablePointer, registry.TableUUID, registry.TableEntry, registry.TableTask} {
		records, err := f.Store.List(f.Ctx, table, "", "", registry.ListLimitMax)
		if err != nil || len(records) > 0 {
			t.Errorf("%v: %d records are left, %v", table, len(records), err)
		}
	}
	if _, err := f.Files.Stat(f.Ctx, view.MetadataLocation); err != nil {
		t.Error(err)
	}
	again, err := f.RegisterView(f.Ctx, ident("v"), view.MetadataLocation)
	if err != nil || again.PointerID() == view.PointerID() {
		t.Errorf("registered again as %v: %v", again, err)
	}
}

// A file can be valid both as a table and as a view. On every node, it has the kind as which it was
// registered. It cannot be registered as both at once.
func TestFileThatIsBoth(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	other := f.Other(f.Store)
	const file, tableUUID = "file:///wh/both/metadata/00000-x.metadata.json", "99999999-2222-4333-8444-555555555555"
	must(t, f.Files.Create(f.Ctx, file, fmt.Appendf(nil, `{"format-version":1,"table-uuid":%q,"view-uuid":%q,"location":"file:///wh/both","last-updated-ms":1,"last-column-id":2,"current-schema-id":0,
		"schema":%[3]s,"schemas":[%[3]s],"partition-spec":[],"current-version-id":1,"versions":[%[4]s],"version-log":[{"timestamp-ms":1,"version-id":1}]}`,
		tableUUID, looseViewUUID, catalogkit.Schema, catalogkit.ViewVersion(1, "select 1"))))
	wantView := func(name string) *catalog.View {
		t.Helper()
		registered, err := f.RegisterView(f.Ctx, ident(name), file)
		must(t, err)
		for _, c := range []*catalogkit.Instance{f.Instance, other} {
			view, err := c.LoadView(f.Ctx, ident(name))
			if err != nil || view.Document.UUID() != looseViewUUID {
				t.Errorf("the view: %v, %v", view, err)
			}
		}
		return registered
	}
	view := wantView("v")
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: file})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	must(t, f.DropView(f.Ctx, ident("v")))
	_, err = f.RegisterTable(f.Ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: file})
	must(t, err)
	for _, c := range []*catalogkit.Instance{f.Instance, other} {
		table, err := c.LoadTable(f.Ctx, ident("v"))
		if err != nil || table.Document.UUID() != tableUUID {
			t.Errorf("the table: %v, %v", table, err)
		}
	}
	_, err = f.RegisterView(f.Ctx, ident("w"), file)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists) // the table has the location now
	must(t, f.DropTable(f.Ctx, ident("v"), catalog.DropOptions{}))
	if back := wantView("v"); back.PointerID() != view.PointerID() {
		t.Errorf("the view came back as %v, want %v", back.PointerID(), view.PointerID())
	}
	f.WantClean()
}
