package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/testkit/catalogkit"
)

// looseView is the location of a view's metadata file that is not registered, with the view-uuid in
// it.
const (
	looseView     = "file:///wh/loose/metadata/00003-x.metadata.json"
	looseViewUUID = "11111111-2222-4333-8444-555555555555"
)

// createLooseView writes a view's metadata file without registering it.
func createLooseView(f *catalogkit.Fixture) {
	f.T.Helper()
	document := fmt.Sprintf(`{"view-uuid":%q,"format-version":1,"location":"file:///wh/loose","schemas":[%s],"current-version-id":1,"versions":[%s],"version-log":[{"timestamp-ms":1,"version-id":1}]}`,
		looseViewUUID, catalogkit.Schema, catalogkit.ViewVersion(1, "select 1"))
	if err := f.Files.Create(f.Ctx, looseView, []byte(document)); err != nil {
		f.T.Fatal(err)
	}
}

// viewMutations returns the part of mutations that changes views. They need the view "v" and
// looseView.
func viewMutations(t testing.TB) []mutation {
	there := func(name string) func(context.Context, *catalogkit.Instance) bool {
		return func(ctx context.Context, c *catalogkit.Instance) bool { return c.ViewExists(ctx, ident(name)) == nil }
	}
	gone := func(ctx context.Context, c *catalogkit.Instance) bool { return !there("v")(ctx, c) }
	return []mutation{
		{gate.CreateView, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			view, err := c.CreateView(ctx, ident("new"), catalogkit.ViewRequest(""))
			return catalogkit.Reply{View: view}, err
		}, there("new")},
		{gate.Replace, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			view, err := c.ReplaceView(ctx, ident("v"), catalogkit.SetViewProperty(t, "mine", "yes"))
			return catalogkit.Reply{View: view}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			view, err := c.LoadView(ctx, ident("v"))
			if err != nil {
				return false
			}
			_, set := view.Document.Property("mine")
			return set
		}},
		{gate.RenameView, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.RenameView(ctx, ident("v"), ident("new"))
		}, func(ctx context.Context, c *catalogkit.Instance) bool { return there("new")(ctx, c) && gone(ctx, c) }},
		{gate.RegisterView, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			view, err := c.RegisterView(ctx, ident("new"), looseView)
			return catalogkit.Reply{View: view}, err
		}, there("new")},
		{gate.DropView, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropView(ctx, ident("v"))
		}, gone},
	}
}

func createView(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateView(ctx, name, catalogkit.ViewRequest(""))
		return err
	}
}

func createViewAt(name moorage.Identifier, location string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateView(ctx, name, catalogkit.ViewRequest(location))
		return err
	}
}

func renameView(from, to moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.RenameView(ctx, from, to) }
}

func dropView(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.DropView(ctx, name) }
}

// registerView is a client that registers the file at *location. It reads *location when it runs.
func registerView(name moorage.Identifier, location *string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.RegisterView(ctx, name, *location)
		return err
	}
}

// viewRaces returns the races between two changes of views, and between a change of a view and a
// change of a table.
func viewRaces(t testing.TB) []race {
	one := func(f *catalogkit.Fixture) { f.MakeView("v") }
	dropped := func(f *catalogkit.Fixture) string {
		location := f.MakeView("v").MetadataLocation
		if err := f.DropView(f.Ctx, ident("v")); err != nil {
			f.T.Fatal(err)
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
			a:       catalogkit.ReplaceView(ident("v"), catalogkit.ReplaceRequest(t, `[]`, `[{"action":"set-location","location":"file:///wh/there"}]`)), b: createTableAt(ident("t"), "file:///wh/there"),
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
			a:       catalogkit.ReplaceView(ident("v"), catalogkit.NewQuery(t, `[]`, "select 2")), b: catalogkit.ReplaceView(ident("v"), catalogkit.NewQuery(t, `[]`, "select 3")),
			ends: []string{"done, done: ns ns:view v"},
		},
		{
			name:    "replace a view, drop it",
			prepare: one,
			a:       catalogkit.ReplaceView(ident("v"), catalogkit.NewQuery(t, `[]`, "select 2")), b: dropView(ident("v")),
			ends: []string{"done, done: ns", "no such view, done: ns"},
		},
		{
			name:    "replace a view, rename it",
			prepare: one,
			a:       catalogkit.ReplaceView(ident("v"), catalogkit.SetViewProperty(t, "a", "b")), b: renameView(ident("v"), ident("w")),
			ends: []string{"done, done: ns ns:view w", "no such view, done: ns ns:view w"},
		},
		{
			name:    "rename a view and a table to one name",
			prepare: func(f *catalogkit.Fixture) { f.MakeView("v"); f.Create("t") },
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
