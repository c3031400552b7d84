package catalog_test

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// undropRaces returns the races of an undrop with requests that could stop it.
func undropRaces() []race {
	dropped := func(options catalog.DropOptions) func(f *catalogkit.Fixture) {
		return func(f *catalogkit.Fixture) { droppedTable(options)(f) }
	}
	plain := dropped(catalog.DropOptions{})
	as := func(name string) catalog.UndropRequest {
		other := ident(name)
		asked := called("t")
		asked.As = &other
		return asked
	}
	replacing := called("t")
	replacing.Replace = true
	endWindows := func(ctx context.Context, c catalog.Verbs) error { return c.(*catalogkit.Instance).EndWindows(ctx) }
	return []race{
		{
			name: "undrop a table twice", prepare: plain,
			a: undropTable(called("t")), b: undropTable(called("t")),
			ends: []string{"done, done: ns ns:t"},
		},
		{
			name: "undrop a table under two names", prepare: plain,
			a: undropTable(as("u")), b: undropTable(as("v")),
			ends: []string{"done, already exists: ns ns:u", "already exists, done: ns ns:v", "?done, not found: ns ns:u", "?not found, done: ns ns:v"},
		},
		{
			name: "undrop a table, end its window",
			prepare: func(f *catalogkit.Fixture) {
				plain(f)
				time.Sleep(8 * 24 * time.Hour)
			},
			a: undropTable(called("t")), b: endWindows, leaves: true,
			ends: []string{"done, done: ns ns:t", "not found, done: ns"},
		},
		{
			name: "undrop a table, purge it", prepare: dropped(catalog.DropOptions{Purge: true}),
			a: undropTable(called("t")), b: purgeDropped,
			ends: []string{"done, done: ns ns:t", "already exists, done: ns", "not found, done: ns", "?already exists, unavailable: ns"},
		},
		{
			name: "undrop a table, begin its purge", prepare: plain,
			a: undropTable(called("t")), b: purgeNow(ident("t")),
			ends: []string{"done, already exists: ns ns:t", "already exists, done: ns"},
		},
		{
			name: "undrop a table, forget it", prepare: plain,
			a: undropTable(called("t")), b: forgetTable(ident("t")), leaves: true,
			ends: []string{"done, already exists: ns ns:t", "not found, done: ns"},
		},
		ofFile(droppedTable(catalog.DropOptions{}), func(location *string) race {
			return race{
				name: "undrop a table, register its file under another name",
				a:    undropTable(called("t")), b: registerTable(ident("u"), location),
				ends: []string{"done, already exists: ns ns:t", "?done, done: ns ns:u", "not found, done: ns ns:u"},
			}
		}),
		{
			name: "undrop a table, create one of its name", prepare: plain,
			a: undropTable(called("t")), b: createTable(ident("t")),
			ends: []string{"done, already exists: ns ns:t", "already exists, done: ns ns:t"},
		},
		{
			name: "undrop a table, create one at its location", prepare: plain,
			a: undropTable(called("t")), b: createTableAt(ident("u"), "file:///wh/ns/t"),
			ends: []string{"done, bad request: ns ns:t", "already exists, done: ns ns:u"},
		},
		{
			name: "undrop a table, drop its namespace", prepare: plain,
			a: undropTable(called("t")), b: dropNamespace("ns"),
			ends: []string{"done, namespace not empty: ns ns:t", "no such namespace, done:"},
		},
		{
			name: "undrop a table over another, drop that",
			prepare: func(f *catalogkit.Fixture) {
				plain(f)
				f.Create("t")
			},
			a: undropTable(replacing), b: dropTable(ident("t"), catalog.DropOptions{}),
			ends: []string{"done, done: ns", "done, done: ns ns:t"},
		},
		{
			name: "undrop a table, make its namespace again",
			prepare: func(f *catalogkit.Fixture) {
				plain(f)
				must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
			},
			a: func(ctx context.Context, c catalog.Verbs) error {
				asked := called("t")
				asked.MakeNamespace = true
				return undropTable(asked)(ctx, c)
			},
			b:    createNamespace("ns"),
			ends: []string{"done, done: ns ns:t", "done, already exists: ns ns:t"},
		},
	}
}
