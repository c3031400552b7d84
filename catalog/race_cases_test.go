package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

func createTable(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateTable(ctx, name, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		return err
	}
}

func createTableAt(name moorage.Identifier, location string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateTable(ctx, name, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location})
		return err
	}
}

func stageTableAt(name moorage.Identifier, location string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateTable(ctx, name, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location, Stage: true})
		return err
	}
}

func dropTable(name moorage.Identifier, options catalog.DropOptions) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.DropTable(ctx, name, options) }
}

func renameTable(from, to moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error { return c.RenameTable(ctx, from, to) }
}

// registerTable is a client that registers the file at *location. It reads *location when it runs.
func registerTable(name moorage.Identifier, location *string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.RegisterTable(ctx, name, catalog.RegisterRequest{MetadataLocation: *location})
		return err
	}
}

func commitTables(changes ...catalog.TableChange) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return c.CommitTransaction(ctx, catalogkit.Warehouse, changes)
	}
}

func createNamespace(ns ...string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.CreateNamespace(ctx, catalogkit.Warehouse, ns, nil)
		return err
	}
}

func dropNamespace(ns ...string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return c.DropNamespace(ctx, catalogkit.Warehouse, ns)
	}
}

// purgeDropped is a client that purges. It makes no concurrent reads and renews no claim, because
// each client may make only one call at a time.
func purgeDropped(ctx context.Context, c catalog.Verbs) error {
	config := catalogkit.PurgeConfig(c.(*catalogkit.Instance))
	config.Interval, config.Stall, config.Life = 24*time.Hour, 24*time.Hour, 24*time.Hour
	return catalogkit.PurgeOnce(ctx, config)
}

// inNamespace returns the identifier of a table in a namespace other than that of ident.
func inNamespace(ns, name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{ns}, Name: name}
}

// races returns all races. A race must not run concurrently with itself, so each call returns new
// ones.
func races(t testing.TB) []race {
	races := append(namespaceRaces(), nameRaces()...)
	races = append(races, commitRaces(t)...)
	races = append(races, viewRaces(t)...)
	races = append(races, undropRaces()...)
	races = append(races, protectRaces()...)
	races = append(races, mirrorRaces(t)...)
	return append(races, registerRaces()...)
}

// namespaceRaces are the races with a drop of a namespace.
func namespaceRaces() []race {
	moving := func(f *catalogkit.Fixture) {
		f.Create("t")
		if err := createNamespace("x")(f.Ctx, f.Instance); err != nil {
			f.T.Fatal(err)
		}
	}
	return []race{
		{
			name: "drop a namespace, create a table in it",
			a:    dropNamespace("ns"), b: createTable(ident("t")),
			ends: []string{"done, no such namespace:", "namespace not empty, done: ns ns:t"},
		},
		{
			name: "drop a namespace, create one below it",
			a:    dropNamespace("ns"), b: createNamespace("ns", "inner"),
			ends: []string{"done, done: ns ns/inner", "namespace not empty, done: ns ns/inner"},
		},
		{
			name:    "drop a namespace, rename a table into it",
			prepare: moving,
			a:       dropNamespace("x"), b: renameTable(ident("t"), inNamespace("x", "t")),
			ends: []string{"done, no such namespace: ns ns:t", "namespace not empty, done: ns x x:t"},
		},
		{
			name:    "drop a namespace, move its last table out",
			prepare: moving,
			a:       dropNamespace("ns"), b: renameTable(ident("t"), inNamespace("x", "t")),
			ends: []string{"done, done: x x:t", "namespace not empty, done: ns x x:t"},
		},
		{
			name: "drop a namespace twice",
			a:    dropNamespace("ns"), b: dropNamespace("ns"),
			ends: []string{"done, no such namespace:", "no such namespace, done:"},
		},
		{
			name: "drop a namespace, create it",
			a:    dropNamespace("ns"), b: createNamespace("ns"),
			ends: []string{"done, already exists:", "done, done: ns"},
		},
		{
			name: "drop a namespace and make it again, create a table in it",
			a: func(ctx context.Context, c catalog.Verbs) error {
				if err := dropNamespace("ns")(ctx, c); err != nil {
					return err
				}
				return createNamespace("ns")(ctx, c)
			},
			b: createTable(ident("t")),
			ends: []string{
				"done, done: ns ns:t", "done, no such namespace: ns", "namespace not empty, done: ns ns:t",
				"?unavailable, no such namespace:", "?unavailable, unavailable:", // it got as far as the drop
			},
		},
		{
			name: "create two namespaces below one that is not there",
			a:    createNamespace("x", "a"), b: createNamespace("x", "b"),
			ends: []string{"done, done: ns x x/a x/b"},
		},
		{
			name: "create one namespace twice",
			a:    createNamespace("x", "a"), b: createNamespace("x", "a"),
			ends: []string{"done, already exists: ns x x/a", "already exists, done: ns x x/a"},
		},
	}
}

// nameRaces are the races for a name of a table.
func nameRaces() []race {
	one := func(f *catalogkit.Fixture) { f.Create("t") }
	two := func(f *catalogkit.Fixture) { f.Create("t"); f.Create("u") }
	const times = 3
	return []race{
		{
			name: "create two tables of one name",
			a:    createTable(ident("t")), b: createTable(ident("t")),
			ends: []string{"done, already exists: ns ns:t", "already exists, done: ns ns:t"},
		},
		{
			name: "create two tables of one name at one location",
			a:    createTableAt(ident("t"), "file:///wh/ns/t"), b: createTableAt(ident("t"), "file:///wh/ns/t"),
			ends: []string{"done, already exists: ns ns:t", "already exists, done: ns ns:t"},
		},
		{
			name: "create two tables of which one would live in the other",
			a:    createTableAt(ident("t"), "file:///wh/ns/t"), b: createTableAt(ident("u"), "file:///wh/ns/t/u"),
			ends: []string{"done, bad request: ns ns:t", "bad request, done: ns ns:u"},
		},
		{
			name:    "rename a table to and fro",
			prepare: one,
			a:       repeat(times, renameTable(ident("t"), ident("u"))), b: repeat(times, renameTable(ident("u"), ident("t"))),
			ends: renamedToAndFro(times),
		},
		{
			name:    "rename two tables to each other's name",
			prepare: two,
			a:       renameTable(ident("t"), ident("u")), b: renameTable(ident("u"), ident("t")),
			ends: []string{"already exists, already exists: ns ns:t ns:u"},
		},
		{
			name:    "rename two tables to one name",
			prepare: two,
			a:       renameTable(ident("t"), ident("v")), b: renameTable(ident("u"), ident("v")),
			ends: []string{"done, already exists: ns ns:u ns:v", "already exists, done: ns ns:t ns:v"},
		},
		{
			name:    "rename a table to two names",
			prepare: one,
			a:       renameTable(ident("t"), ident("u")), b: renameTable(ident("t"), ident("v")),
			ends: []string{"done, no such table: ns ns:u", "no such table, done: ns ns:v"},
		},
		{
			name:    "rename a table, drop it",
			prepare: one,
			a:       renameTable(ident("t"), ident("u")), b: dropTable(ident("t"), catalog.DropOptions{}),
			ends: []string{"done, no such table: ns ns:u", "no such table, done: ns"},
		},
		{
			name:    "rename a table to a name, create one of that name",
			prepare: one,
			a:       renameTable(ident("t"), ident("u")), b: createTable(ident("u")),
			ends: []string{"done, already exists: ns ns:u", "already exists, done: ns ns:t ns:u"},
		},
		{
			name:    "drop a table twice",
			prepare: one,
			a:       dropTable(ident("t"), catalog.DropOptions{}), b: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
			ends: []string{"done, no such table: ns", "no such table, done: ns"},
		},
		{
			name:    "drop a table, create one of its name",
			prepare: one,
			a:       dropTable(ident("t"), catalog.DropOptions{}), b: createTable(ident("t")),
			ends: []string{"done, already exists: ns", "done, done: ns ns:t"},
		},
	}
}

// renamedToAndFro returns the possible ends of a race in which two clients rename a table back and
// forth. Their renames alternate.
func renamedToAndFro(times int) []string {
	ends := []string{"1 times, 0 times: ns ns:u", "1 times, 1 times: ns ns:t", "2 times, 1 times: ns ns:u"}
	for n := range times + 1 {
		ends = append(ends, fmt.Sprintf("?%d times, %d times: ns ns:t", n, n), fmt.Sprintf("?%d times, %d times: ns ns:u", n+1, n))
	}
	return ends
}

// commitRaces are the races with a commit that changes or creates a table.
func commitRaces(t testing.TB) []race {
	one := func(f *catalogkit.Fixture) { f.Create("t") }
	set, create := catalogkit.SetProperty(t, "a", "b"), catalogkit.CommitCreateRequest(t, "file:///wh/made")
	// Each client creates its own tables. They compete for names and locations.
	creating := func(n int, name string) catalog.TableChange {
		return catalogkit.On(name, catalogkit.CreateWithUUID(t, "file:///wh/ns/"+name, n))
	}
	return []race{
		{
			name: "create a table by commits",
			a:    catalogkit.CommitTable(ident("t"), creating(1, "t").CommitRequest), b: catalogkit.CommitTable(ident("t"), creating(2, "t").CommitRequest),
			ends: []string{"done, commit failed: ns ns:t", "commit failed, done: ns ns:t"},
		},
		{
			name: "create a table of one uuid by commits",
			a:    catalogkit.CommitTable(ident("t"), creating(1, "t").CommitRequest), b: catalogkit.CommitTable(ident("t"), creating(1, "t").CommitRequest),
			ends: []string{"done, commit failed: ns ns:t", "commit failed, done: ns ns:t"},
		},
		{
			name: "stage a table, create it",
			a:    stageTableAt(ident("t"), "file:///wh/ns/t"), b: createTableAt(ident("t"), "file:///wh/ns/t"),
			ends: []string{"done, done: ns ns:t", "already exists, done: ns ns:t"},
		},
		{
			name: "create tables by transactions",
			a:    commitTables(creating(1, "t"), creating(2, "u")), b: commitTables(creating(3, "t"), creating(4, "u")),
			ends: []string{"done, commit failed: ns ns:t ns:u", "commit failed, done: ns ns:t ns:u"},
		},
		{
			name:    "commit to a table, drop it",
			prepare: one,
			a:       catalogkit.CommitTable(ident("t"), set), b: dropTable(ident("t"), catalog.DropOptions{}),
			ends: []string{"done, done: ns", "no such table, done: ns"},
		},
		{
			name:    "commit to a table, rename it",
			prepare: one,
			a:       catalogkit.CommitTable(ident("t"), set), b: renameTable(ident("t"), ident("u")),
			ends: []string{"done, done: ns ns:u", "no such table, done: ns ns:u"},
		},
		{
			name:    "commit to a table, rename another to its name when it is dropped",
			prepare: func(f *catalogkit.Fixture) { f.Create("t"); f.Create("u") },
			a:       catalogkit.CommitTable(ident("t"), set),
			b: func(ctx context.Context, c catalog.Verbs) error {
				if err := dropTable(ident("t"), catalog.DropOptions{})(ctx, c); err != nil {
					return err
				}
				return renameTable(ident("u"), ident("t"))(ctx, c)
			},
			ends: []string{
				"done, done: ns ns:t", "no such table, done: ns ns:t",
				"?unavailable, unavailable: ns ns:u", "?done, unavailable: ns ns:u", "?no such table, unavailable: ns ns:u",
			},
		},
		{
			name: "make a table by a commit, create it",
			a:    catalogkit.CommitTable(ident("t"), create), b: createTable(ident("t")),
			// With locks, a gets the shard's lock before b has checked whether the name is free.
			ends: []string{"done, already exists: ns ns:t", "?commit failed, done: ns ns:t"},
		},
		{
			name: "make two tables of one table-uuid and location",
			a:    catalogkit.CommitTable(ident("t"), create), b: catalogkit.CommitTable(ident("u"), create),
			ends: []string{
				"done, already exists: ns ns:t", "already exists, done: ns ns:u",
				"?done, bad request: ns ns:t", "?bad request, done: ns ns:u", // the loser had found the table-uuid free
			},
		},
	}
}

// registerRaces are the races with a register.
func registerRaces() []race {
	return []race{
		ofFile(liveTable, func(location *string) race {
			return race{
				name: "register a table under another name, drop it",
				a:    registerTable(ident("u"), location), b: dropTable(ident("t"), catalog.DropOptions{}),
				ends: []string{"already exists, done: ns", "done, done: ns ns:u"},
			}
		}),
		ofFile(liveTable, func(location *string) race {
			return race{
				name: "register a table under its name, drop it",
				a:    registerTable(ident("t"), location), b: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
				ends: []string{"already exists, done: ns", "done, done: ns ns:t"},
			}
		}),
		ofFile(droppedTable(catalog.DropOptions{}), func(location *string) race {
			return race{
				name: "register a dropped table under two names",
				a:    registerTable(ident("t"), location), b: registerTable(ident("u"), location),
				ends: []string{"done, already exists: ns ns:t", "already exists, done: ns ns:u"},
			}
		}),
		ofFile(droppedTable(catalog.DropOptions{Purge: true}), func(location *string) race {
			return race{
				name: "register a dropped table, purge it",
				a:    registerTable(ident("t"), location), b: purgeDropped,
				ends: []string{"done, done: ns ns:t", "already exists, done: ns", "not found, done: ns", "?already exists, unavailable: ns"},
			}
		}),
		ofFile(droppedTable(catalog.DropOptions{}), func(location *string) race {
			return race{
				name: "register a dropped table, drop its namespace",
				a:    registerTable(ident("t"), location), b: dropNamespace("ns"),
				ends: []string{"done, namespace not empty: ns ns:t", "no such namespace, done:"},
			}
		}),
		ofFile(liveTable, func(location *string) race {
			overwrite := func(ctx context.Context, c catalog.Verbs) error {
				_, err := c.RegisterTable(ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: *location, Overwrite: true})
				return err
			}
			return race{
				name: "register a table over itself, drop it",
				a:    overwrite, b: dropTable(ident("t"), catalog.DropOptions{Purge: true}),
				ends: []string{"done, done: ns", "done, done: ns ns:t"},
			}
		}),
		ofFile(droppedTable(catalog.DropOptions{}), func(location *string) race {
			return race{
				name: "register a dropped table, create one at its location",
				a:    registerTable(ident("t"), location), b: createTableAt(ident("u"), "file:///wh/ns/t"),
				ends: []string{"done, bad request: ns ns:t", "already exists, done: ns ns:u"},
			}
		}),
	}
}

// ofFile returns a race about the metadata file created by prepare.
func ofFile(prepare func(f *catalogkit.Fixture) (location string), about func(location *string) race) race {
	location := new(string)
	r := about(location)
	r.prepare = func(f *catalogkit.Fixture) { *location = prepare(f) }
	return r
}

func liveTable(f *catalogkit.Fixture) string { return f.Create("t").MetadataLocation }

func droppedTable(options catalog.DropOptions) func(f *catalogkit.Fixture) string {
	return func(f *catalogkit.Fixture) string {
		location := liveTable(f)
		if err := f.DropTable(f.Ctx, ident("t"), options); err != nil {
			f.T.Fatal(err)
		}
		return location
	}
}
