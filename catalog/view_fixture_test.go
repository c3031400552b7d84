package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/metadata"
)

// Where looseView is, a view's metadata file that belongs to no view, and the view-uuid in it.
const (
	looseView     = "file:///wh/loose/metadata/00003-x.metadata.json"
	looseViewUUID = "11111111-2222-4333-8444-555555555555"
)

// viewVersion returns a view-version with one query.
func viewVersion(id int, sql string) string {
	return fmt.Sprintf(`{"version-id":%d,"schema-id":0,"timestamp-ms":1700000000000,"summary":{"engine-name":"test"},"default-namespace":["ns"],`+
		`"representations":[{"type":"sql","sql":%q,"dialect":"spark"}]}`, id, sql)
}

func viewRequest(location string) catalog.CreateViewRequest {
	return catalog.CreateViewRequest{Schema: []byte(testSchema), Version: []byte(viewVersion(1, "select 1")), Location: location}
}

func (f *fixture) createView(name string) *catalog.View {
	f.t.Helper()
	view, err := f.CreateView(f.ctx, ident(name), viewRequest(""))
	if err != nil {
		f.t.Fatalf("create view %s: %v", name, err)
	}
	return view
}

// createLooseView writes a view's metadata file and tells the catalog nothing.
func (f *fixture) createLooseView() {
	f.t.Helper()
	document := fmt.Sprintf(`{"view-uuid":%q,"format-version":1,"location":"file:///wh/loose","schemas":[%s],"current-version-id":1,"versions":[%s],"version-log":[{"timestamp-ms":1,"version-id":1}]}`,
		looseViewUUID, testSchema, viewVersion(1, "select 1"))
	if err := f.files.Create(f.ctx, looseView, []byte(document)); err != nil {
		f.t.Fatal(err)
	}
}

// replaceRequest decodes a change of a view from JSON arrays.
func replaceRequest(t testing.TB, requirements, updates string) catalog.ReplaceViewRequest {
	t.Helper()
	r, err := checked(metadata.DecodeViewRequirements, requirements)
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := checked(metadata.DecodeViewUpdates, updates)
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return catalog.ReplaceViewRequest{Requirements: r, Updates: u}
}

// newQuery returns a change that makes sql the query of a view, as engines send it.
func newQuery(t testing.TB, requirements, sql string) catalog.ReplaceViewRequest {
	t.Helper()
	return replaceRequest(t, requirements, fmt.Sprintf(`[{"action":"add-view-version","view-version":%s},{"action":"set-current-view-version","view-version-id":-1}]`, viewVersion(2, sql)))
}

func setViewProperty(t testing.TB, key, value string) catalog.ReplaceViewRequest {
	t.Helper()
	return replaceRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, key, value))
}

// viewMutations are those of mutations that are about views. They need the view "v" and looseView.
func viewMutations(t testing.TB) []mutation {
	there := func(name string) func(context.Context, *instance) bool {
		return func(ctx context.Context, c *instance) bool { return c.ViewExists(ctx, ident(name)) == nil }
	}
	gone := func(ctx context.Context, c *instance) bool { return !there("v")(ctx, c) }
	return []mutation{
		{gate.CreateView, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			view, err := c.CreateView(ctx, ident("new"), viewRequest(""))
			return reply{View: view}, err
		}, there("new")},
		{gate.Replace, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			view, err := c.ReplaceView(ctx, ident("v"), setViewProperty(t, "mine", "yes"))
			return reply{View: view}, err
		}, func(ctx context.Context, c *instance) bool {
			view, err := c.LoadView(ctx, ident("v"))
			if err != nil {
				return false
			}
			_, set := view.Document.Property("mine")
			return set
		}},
		{gate.RenameView, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.RenameView(ctx, ident("v"), ident("new"))
		}, func(ctx context.Context, c *instance) bool { return there("new")(ctx, c) && gone(ctx, c) }},
		{gate.RegisterView, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			view, err := c.RegisterView(ctx, ident("new"), looseView)
			return reply{View: view}, err
		}, there("new")},
		{gate.DropView, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.DropView(ctx, ident("v"))
		}, gone},
	}
}

func createView(name moorage.Identifier) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateView(ctx, name, viewRequest(""))
		return err
	}
}

func createViewAt(name moorage.Identifier, location string) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateView(ctx, name, viewRequest(location))
		return err
	}
}

func replaceView(name moorage.Identifier, request catalog.ReplaceViewRequest) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.ReplaceView(ctx, name, request)
		return err
	}
}

func renameView(from, to moorage.Identifier) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.RenameView(ctx, from, to) }
}

func dropView(name moorage.Identifier) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.DropView(ctx, name) }
}

// registerView registers the file at what location points to when it is called.
func registerView(name moorage.Identifier, location *string) raceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.RegisterView(ctx, name, *location)
		return err
	}
}

// viewRaces are those about views, and about views and tables.
func viewRaces(t testing.TB) []race {
	one := func(f *fixture) { f.createView("v") }
	dropped := func(f *fixture) string {
		location := f.createView("v").MetadataLocation
		if err := f.DropView(f.ctx, ident("v")); err != nil {
			f.t.Fatal(err)
		}
		return location
	}
	return []race{
		{
			name: "create a view and a table of one name",
			a:    createView(ident("v")), b: createTable(ident("v")),
			ends: []string{"done, already exists: ns ns:view v", "already exists, done: ns ns:v"},
		},
		{
			name: "create a view within a table",
			a:    createViewAt(ident("v"), "file:///wh/ns/t/v"), b: createTableAt(ident("t"), "file:///wh/ns/t"),
			ends: []string{"done, bad request: ns ns:view v", "bad request, done: ns ns:t"},
		},
		{
			name:    "move a view, create a table there",
			prepare: one,
			a:       replaceView(ident("v"), replaceRequest(t, `[]`, `[{"action":"set-location","location":"file:///wh/there"}]`)), b: createTableAt(ident("t"), "file:///wh/there"),
			ends: []string{"done, bad request: ns ns:view v", "bad request, done: ns ns:t ns:view v"},
		},
		{
			name: "drop a namespace, create a view in it",
			a:    dropNamespace("ns"), b: createView(ident("v")),
			ends: []string{"done, no such namespace:", "namespace not empty, done: ns ns:view v"},
		},
		{
			name:    "replace a view twice",
			prepare: one,
			a:       replaceView(ident("v"), newQuery(t, `[]`, "select 2")), b: replaceView(ident("v"), newQuery(t, `[]`, "select 3")),
			ends: []string{"done, done: ns ns:view v"},
		},
		{
			name:    "replace a view, drop it",
			prepare: one,
			a:       replaceView(ident("v"), newQuery(t, `[]`, "select 2")), b: dropView(ident("v")),
			ends: []string{"done, done: ns", "no such view, done: ns"},
		},
		{
			name:    "replace a view, rename it",
			prepare: one,
			a:       replaceView(ident("v"), setViewProperty(t, "a", "b")), b: renameView(ident("v"), ident("w")),
			ends: []string{"done, done: ns ns:view w", "no such view, done: ns ns:view w"},
		},
		{
			name:    "rename a view and a table to one name",
			prepare: func(f *fixture) { f.createView("v"); f.create("t") },
			a:       renameView(ident("v"), ident("x")), b: renameTable(ident("t"), ident("x")),
			ends: []string{"done, already exists: ns ns:t ns:view x", "already exists, done: ns ns:view v ns:x"},
		},
		{
			name:    "drop a view, create a table of its name",
			prepare: one,
			a:       dropView(ident("v")), b: createTable(ident("v")),
			ends: []string{"done, already exists: ns", "done, done: ns ns:v"},
		},
		ofFile(dropped, func(location *string) race {
			return race{
				name: "register a dropped view under two names",
				a:    registerView(ident("v"), location), b: registerView(ident("w"), location),
				ends: []string{"done, already exists: ns ns:view v", "already exists, done: ns ns:view w"},
			}
		}),
		ofFile(dropped, func(location *string) race {
			return race{
				name: "register a dropped view, create a table at its location",
				a:    registerView(ident("v"), location), b: createTableAt(ident("t"), "file:///wh/ns/v"),
				ends: []string{"done, bad request: ns ns:view v", "already exists, done: ns ns:t"},
			}
		}),
	}
}
