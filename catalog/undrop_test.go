package catalog_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/history"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// called selects the dropped object whose last name was name.
func called(name string) catalog.UndropRequest {
	return catalog.UndropRequest{DroppedName: catalog.DroppedName{Ident: ident(name)}}
}

// dropOf drops a table without a purge.
func dropOf(f *catalogkit.Fixture, name string) {
	f.T.Helper()
	must(f.T, f.DropTable(f.Ctx, ident(name), catalog.DropOptions{}))
}

// droppedRows returns the rows in the list of dropped objects called name.
func droppedRows(f *catalogkit.Fixture, name string, ended bool) []catalog.DroppedRow {
	f.T.Helper()
	rows, next, err := f.Dropped().List(f.Ctx, catalog.DroppedListing{
		Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns"}, Name: name, Ended: ended,
	}, moorage.Page{Limit: 10})
	must(f.T, err)
	if next != "" {
		f.T.Fatalf("the list goes on after %q", next)
	}
	return rows
}

// wantUndropped undrops a table. It fails the test unless the table equals was, with the same file
// and the same registration.
func wantUndropped(f *catalogkit.Fixture, was *catalog.Table, asked catalog.UndropRequest, name moorage.Identifier) {
	f.T.Helper()
	done, err := f.Dropped().Undrop(f.Ctx, asked)
	must(f.T, err)
	is, err := f.LoadTable(f.Ctx, name)
	must(f.T, err)
	if !done.Ident.Equal(name) || done.UUID != was.Document.UUID() || done.MetadataLocation != was.MetadataLocation ||
		done.Kind != access.Table {
		f.T.Errorf("%+v is back, want %s with the file %s", done, was.Document.UUID(), was.MetadataLocation)
	}
	if is.MetadataLocation != was.MetadataLocation || is.Document.UUID() != was.Document.UUID() ||
		is.Registration != was.Registration {
		f.T.Errorf("%s has %s of %s, want %s of %s", name, is.MetadataLocation, is.Registration, was.MetadataLocation, was.Registration)
	}
}

// undropRow is a situation from hands.md, section 4.
type undropRow struct {
	name    string
	purges  bool // the purge of a drop waits
	brief   bool // the undrop window is so short that it ends at once
	prepare func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest
	// kind is the kind of the expected error, and says a part of its text. If says is empty, the
	// undrop must succeed, and the table gets the name in the field as.
	kind moorage.Kind
	says string
	as   moorage.Identifier
	then func(f *catalogkit.Fixture)
}

// purgeT drops t with a purge.
func purgeT(f *catalogkit.Fixture) {
	f.T.Helper()
	must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
}

// createTeam creates a namespace with the property of a team.
func createTeam(f *catalogkit.Fixture, team string, levels ...string) error {
	_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, levels, map[string]string{"team": team})
	return err
}

// makeAndDrop creates a namespace of the team "wrong", and drops it.
func makeAndDrop(f *catalogkit.Fixture, levels ...string) {
	f.T.Helper()
	must(f.T, createTeam(f, "wrong", levels...))
	must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, levels))
}

// wantTeam fails the test unless a namespace belongs to this team, or to no team if team is empty.
func wantTeam(f *catalogkit.Fixture, team string, levels ...string) {
	f.T.Helper()
	properties, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, levels)
	must(f.T, err)
	if properties["team"] != team {
		f.T.Errorf("the namespace %q has %v, want the team %q", levels, properties, team)
	}
}

// inDeep returns the identifier of a table in the namespace other.b.
func inDeep(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other", "b"}, Name: name}
}

func undropRows() []undropRow {
	plain := func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
		dropOf(f, "t")
		return called("t")
	}
	again := func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
		dropOf(f, "t")
		f.Create("t")
		return called("t")
	}
	elsewhere := inNamespace("other", "u")
	withoutNamespace := func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
		_, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"},
			catalog.PropertiesChange{Updates: map[string]string{"team": "billing"}})
		must(f.T, err)
		dropOf(f, "t")
		must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
		return called("t")
	}
	return []undropRow{
		{name: "the name is free", prepare: plain},
		{name: "a purge waits", purges: true, prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			purgeT(f)
			return called("t")
		}, then: func(f *catalogkit.Fixture) {
			f.Clock.Advance(2 * purgeDelay)
			must(f.T, f.PurgeAll(f.Ctx))
			wantFile(f, f.Load("t").MetadataLocation, true)
		}},
		{name: "a purge has not begun", prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			purgeT(f)
			return called("t")
		}, then: func(f *catalogkit.Fixture) {
			must(f.T, f.PurgeAll(f.Ctx))
			wantFile(f, f.Load("t").MetadataLocation, true)
		}},
		{name: "a live object has the name", prepare: again, kind: moorage.KindAlreadyExists,
			says: "A live table is called ns.t, since 2026-"},
		{name: "a live object was renamed over it", prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			dropOf(f, "t")
			f.Create("u")
			must(f.T, f.RenameTable(f.Ctx, ident("u"), ident("t")))
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "q"))
			must(f.T, err)
			return called("t")
		}, kind: moorage.KindAlreadyExists, says: "Use another name (as), or replace that one (replace)"},
		{name: "a live object has the name, and the table gets another", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := again(f, t)
			as := ident("u")
			asked.As = &as
			return asked
		}, as: ident("u")},
		{name: "it gets another namespace", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			must(f.T, createNamespace("other")(f.Ctx, f.Instance))
			asked := plain(f, t)
			asked.As = &elsewhere
			return asked
		}, as: elsewhere},
		{name: "the live object is replaced", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := again(f, t)
			asked.Replace = true
			return asked
		}, then: func(f *catalogkit.Fixture) {
			first := f.Load("t").Document.UUID()
			done, err := f.Dropped().Undrop(f.Ctx, catalog.UndropRequest{DroppedName: called("t").DroppedName, Replace: true})
			must(f.T, err)
			if done.UUID == first || f.Load("t").Document.UUID() != done.UUID || len(droppedRows(f, "t", false)) != 1 {
				f.T.Errorf("the replaced table is not back: %+v", done)
			}
		}},
		{name: "a view has the name", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			must(f.T, createView(ident("t"))(f.Ctx, f.Instance))
			asked.Replace = true
			return asked
		}, kind: moorage.KindAlreadyExists, says: "A live view is called ns.t"},
		{name: "it is live", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest { return called("t") }},
		{name: "it is back", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			_, err := f.Dropped().Undrop(f.Ctx, asked)
			must(f.T, err)
			return asked
		}},
		{name: "several had the name", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			f.Create("u")
			dropOf(f, "u")
			f.Clock.Advance(time.Hour)
			must(f.T, f.RenameTable(f.Ctx, ident("t"), ident("u")))
			dropOf(f, "u")
			return called("u")
		}, as: ident("u"), then: func(f *catalogkit.Fixture) {
			rows := droppedRows(f, "u", false)
			if len(rows) != 1 || rows[0].Undrop != "A live table or view has its name: choose another name, or replace that one." {
				f.T.Fatalf("the list has %+v", rows)
			}
			other := ident("v")
			done, err := f.Dropped().Undrop(f.Ctx, catalog.UndropRequest{DroppedName: catalog.DroppedName{ID: rows[0].ID}, As: &other})
			must(f.T, err)
			if done.ID != rows[0].ID || !done.Ident.Equal(other) {
				f.T.Errorf("%+v is back by its id", done)
			}
		}},
		{name: "the namespace is gone", prepare: withoutNamespace, kind: moorage.KindNoSuchNamespace,
			says: "Namespace does not exist: ns. The request can make it (make-namespace)"},
		{name: "the namespace is made", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := withoutNamespace(f, t)
			asked.MakeNamespace = true
			return asked
		}, then: func(f *catalogkit.Fixture) {
			properties, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"})
			must(f.T, err)
			if properties["team"] != "billing" {
				f.T.Errorf("the namespace has %v", properties)
			}
		}},
		{name: "the namespace is made, and another one had its name since", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := withoutNamespace(f, t)
			f.Clock.Advance(time.Hour)
			makeAndDrop(f, "ns")
			asked.MakeNamespace = true
			return asked
		}, then: func(f *catalogkit.Fixture) { wantTeam(f, "billing", "ns") }},
		{name: "a namespace is made in which it was not", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			makeAndDrop(f, "other")
			asked := plain(f, t)
			asked.As, asked.MakeNamespace = &elsewhere, true
			return asked
		}, as: elsewhere, then: func(f *catalogkit.Fixture) { wantTeam(f, "", "other") }},
		{name: "two namespaces are made, and others had their names before and since", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			makeAndDrop(f, "other")
			f.Clock.Advance(time.Hour)
			must(f.T, createTeam(f, "platform", "other"))
			must(f.T, createTeam(f, "billing", "other", "b"))
			deep := inDeep("u")
			must(f.T, f.RenameTable(f.Ctx, ident("t"), deep))
			must(f.T, f.DropTable(f.Ctx, deep, catalog.DropOptions{}))
			for _, ns := range []moorage.Namespace{{"other", "b"}, {"other"}} {
				must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, ns))
			}
			f.Clock.Advance(time.Hour)
			must(f.T, createTeam(f, "sales", "other"))
			makeAndDrop(f, "other", "b")
			must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"other"}))
			return catalog.UndropRequest{DroppedName: catalog.DroppedName{Ident: deep}, MakeNamespace: true}
		}, as: inDeep("u"), then: func(f *catalogkit.Fixture) {
			wantTeam(f, "platform", "other")
			wantTeam(f, "billing", "other", "b")
		}},
		{name: "made again without a location", prepare: again, kind: moorage.KindAlreadyExists, says: "is called",
			then: func(f *catalogkit.Fixture) {
				must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
				rows := droppedRows(f, "t", false)
				if len(rows) != 2 || rows[0].Undrop != "yes" || rows[1].Undrop != "yes" {
					f.T.Errorf("the list has %+v", rows)
				}
			}},
		{name: "made again at the same location", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			must(f.T, createTableAt(ident("t"), t.Document.Location())(f.Ctx, f.Instance))
			asked.Replace = true
			return asked
		}, kind: moorage.KindAlreadyExists, says: "ns.t cannot come back: the table ns.t has its location, and two tables never share files"},
		{name: "a purge has begun", prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			purgeT(f)
			id := droppedRows(f, "t", false)[0].ID
			must(f.T, f.Dropped().Purge(f.Ctx, catalog.DroppedName{ID: id}))
			return called("t")
		}, purges: true, kind: moorage.KindAlreadyExists, says: "ns.t cannot come back: its purge began at 2026-"},
		{name: "the metadata file is gone", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			must(f.T, f.Files.Delete(f.Ctx, t.MetadataLocation))
			if rows := droppedRows(f, "t", false); len(rows) != 1 ||
				rows[0].Undrop != "Its metadata file is gone, so an engine has deleted its files." {
				f.T.Errorf("the list has %+v", rows)
			}
			return asked
		}, kind: moorage.KindNotFound, says: "nothing was changed: its metadata file is gone"},
		{name: "the window is over", brief: true, prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			must(f.T, f.EndWindows(f.Ctx))
			return asked
		}, kind: moorage.KindNotFound, says: "If its files are still there: moorage register w/ns.t "},
		{name: "it was purged", prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			purgeT(f)
			must(f.T, f.PurgeAll(f.Ctx))
			return called("t")
		}, kind: moorage.KindNotFound, says: "ns.t cannot come back: it was purged at 2026-"},
		{name: "it was forgotten", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			must(f.T, f.Dropped().Forget(f.Ctx, asked.DroppedName))
			return asked
		}, kind: moorage.KindNotFound, says: "it was dropped and forgotten at 2026-"},
		{name: "it was unregistered", prepare: func(f *catalogkit.Fixture, _ *catalog.Table) catalog.UndropRequest {
			_, err := f.UnregisterTable(f.Ctx, ident("t"))
			must(f.T, err)
			return called("t")
		}, kind: moorage.KindNotFound, says: "it was unregistered at 2026-"},
		{name: "the warehouse is gone", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			id := droppedRows(f, "t", false)[0].ID
			must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
			must(f.T, f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse))
			asked.ID = id
			return asked
		}, kind: moorage.KindNotFound, says: "its warehouse w is gone, or was made again. If its files are still there: moorage register"},
		{name: "the warehouse was made again", prepare: func(f *catalogkit.Fixture, t *catalog.Table) catalog.UndropRequest {
			asked := plain(f, t)
			id := droppedRows(f, "t", false)[0].ID
			must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
			must(f.T, f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse))
			_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: catalogkit.Warehouse, Location: "file:///wh"})
			must(f.T, err)
			must(f.T, createNamespace("ns")(f.Ctx, f.Instance))
			asked.ID = id
			return asked
		}, kind: moorage.KindNotFound, says: "is gone, or was made again"},
		{name: "nothing had the name", prepare: func(*catalogkit.Fixture, *catalog.Table) catalog.UndropRequest { return called("u") },
			kind: moorage.KindNotFound, says: "There is no dropped table or view called ns.u"},
	}
}

// TestUndrop goes through the situations of an undrop, on each kind of store. A refused undrop
// changes nothing, and after each situation all records are consistent.
func TestUndrop(t *testing.T) {
	t.Parallel()
	for kind, open := range stores.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := open(t, rand.Reader)
			for _, row := range undropRows() {
				t.Run(row.name, func(t *testing.T) {
					row.run(catalogkit.New(t, func(c *catalog.Config) {
						if c.Store = store; row.purges {
							waitingPurges(c)
						}
						if row.brief {
							c.UndropWindow = time.Nanosecond
						}
					}))
				})
				empty(t, store)
			}
		})
	}
}

// empty deletes all records of a store except its format. Creating a database for each row would
// take too long.
func empty(t *testing.T, store registry.Store) {
	t.Helper()
	for table := registry.Table(1); table < 64; table++ {
		if table == registry.TableFormat || strings.HasPrefix(table.String(), "table ") {
			continue
		}
		records, err := store.ListKeys(t.Context(), table, "", "", registry.ListLimitMax)
		must(t, err)
		var batch registry.Batch
		for _, record := range records {
			batch.Writes = append(batch.Writes, registry.Delete(record.Key))
		}
		if len(batch.Writes) > 0 {
			_, err = store.Apply(t.Context(), batch)
			must(t, err)
		}
	}
}

func (row undropRow) run(f *catalogkit.Fixture) {
	f.T.Helper()
	was := f.Create("t")
	asked := row.prepare(f, was)
	if row.says == "" {
		name := ident("t")
		if row.as.Name != "" {
			name = row.as
		}
		wantUndropped(f, was, asked, name)
	} else {
		before := recordsOf(f)
		_, err := f.Dropped().Undrop(f.Ctx, asked)
		catalogkit.WantKind(f.T, err, row.kind)
		if said := moorage.MessageOf(err); !strings.Contains(said, row.says) {
			f.T.Errorf("the refusal is %s", said)
		}
		if after := recordsOf(f); !maps.Equal(before, after) {
			f.T.Errorf("a refusal changed the records\n%v\nto\n%v", before, after)
		}
	}
	if row.then != nil {
		row.then(f)
	}
	f.WantClean()
}

// TestUndropShowsNoProperties: with access control enabled, a namespace that is recreated by an
// undrop gets its former properties only if the caller was allowed to describe it. The caller owns
// the table, and a namespace that was created later.
func TestUndropShowsNoProperties(t *testing.T) {
	t.Parallel()
	for grantee, want := range map[string]string{"corp:owner": "billing", "corp:another": ""} {
		f := catalogkit.New(t, func(config *catalog.Config) {
			config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
		})
		_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake"})
		must(t, err)
		outer, levels := moorage.Namespace{"outer"}, moorage.Namespace{"outer", "ns"}
		table := moorage.Identifier{Warehouse: "lake", Namespace: levels, Name: "t"}
		owner := f.As(moorage.Caller{Name: "corp:owner"})
		_, err = f.CreateNamespace(f.Ctx, "lake", levels, map[string]string{"team": "billing"})
		must(t, err)
		_, err = owner.CreateTable(f.Ctx, table, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		must(t, err)
		must(t, owner.DropTable(f.Ctx, table, catalog.DropOptions{}))
		f.Clock.Advance(time.Hour)
		must(t, f.DropNamespace(f.Ctx, "lake", levels))
		must(t, f.DropNamespace(f.Ctx, "lake", outer))
		f.Clock.Advance(time.Hour)
		_, err = owner.CreateNamespace(f.Ctx, "lake", outer, nil)
		must(t, err)
		f.SwitchAccessOn("lake", map[string]string{grantee: "describe"})
		done, err := owner.Dropped().Undrop(f.Ctx, catalog.UndropRequest{
			DroppedName: catalog.DroppedName{Ident: table}, MakeNamespace: true,
		})
		must(t, err)
		properties, err := owner.LoadNamespace(f.Ctx, "lake", levels)
		must(t, err)
		isLost := strings.Contains(strings.Join(done.Warnings, " "), "its properties are lost")
		if properties["team"] != want || isLost != (want == "") {
			t.Errorf("with a grant to %s, the namespace has %v, and the warnings are %q", grantee, properties, done.Warnings)
		}
	}
}

// recordsOf returns the versions of all records of objects.
func recordsOf(f *catalogkit.Fixture) map[registry.Key]registry.ETag {
	f.T.Helper()
	all := make(map[registry.Key]registry.ETag)
	for _, table := range []registry.Table{
		registry.TableWarehouse, registry.TableNamespace, registry.TableEntry, registry.TablePointer, registry.TableLocation,
		registry.TableTombstone, registry.TableDue, registry.TableTask, registry.TableDropped,
	} {
		must(f.T, f.Ledger.Scan(f.Ctx, table, "", "", func(record registry.Record) (bool, error) {
			all[record.Key] = record.ETag
			return true, nil
		}))
	}
	return all
}

// TestListDropped lists the dropped objects of a warehouse in pages, including ended ones.
func TestListDropped(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		f := catalogkit.New(t, waitingPurges, func(c *catalog.Config) { c.Store = store })
		must(t, createNamespace("ns", "inner")(f.Ctx, f.Instance))
		for _, name := range []string{"a", "b", "c"} {
			f.Create(name)
			must(t, f.DropTable(f.Ctx, ident(name), catalog.DropOptions{Purge: name == "b"}))
		}
		inner := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"ns", "inner"}, Name: "d"}
		must(t, createTable(inner)(f.Ctx, f.Instance))
		must(t, f.DropTable(f.Ctx, inner, catalog.DropOptions{}))
		f.Create("gone")
		_, err := f.UnregisterTable(f.Ctx, ident("gone"))
		must(t, err)
		for _, tt := range []struct {
			of   catalog.DroppedListing
			want string
		}{
			{catalog.DroppedListing{}, "ns.a none yes, ns.b waiting yes, ns.c none yes, ns.inner.d none yes"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns"}}, "ns.a none yes, ns.b waiting yes, ns.c none yes"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns"}, Recursive: true}, "ns.a none yes, ns.b waiting yes, ns.c none yes, ns.inner.d none yes"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns", "inner"}}, "ns.inner.d none yes"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns"}, Name: "b"}, "ns.b waiting yes"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns"}, Name: "gone"}, ""},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"ns"}, Name: "gone", Ended: true},
				"ns.gone none It was unregistered"},
			{catalog.DroppedListing{Namespace: moorage.Namespace{"other"}}, ""},
		} {
			tt.of.Warehouse = catalogkit.Warehouse
			for _, size := range []int{1, 2, 100} {
				var got []string
				page := moorage.Page{Limit: size}
				for range 100 {
					rows, next, err := f.Dropped().List(f.Ctx, tt.of, page)
					must(t, err)
					if len(rows) > size {
						t.Errorf("a page of %d has %d rows", size, len(rows))
					}
					if next != "" && !strings.HasPrefix(next, gate.SealedMark) { // the server would refuse it
						t.Errorf("the position %q could be taken for a name", next)
					}
					for _, row := range rows {
						why, _, _ := strings.Cut(row.Undrop, " at 20")
						got = append(got, fmt.Sprintf("%s %s %s", row.Ident, row.Purge, why))
					}
					if page.After = next; next == "" {
						break
					}
				}
				if text := strings.Join(got, ", "); text != tt.want {
					t.Errorf("%+v in pages of %d has\n%s, want\n%s", tt.of, size, text, tt.want)
				}
			}
		}
		for name, of := range map[string]catalog.DroppedListing{
			"in the warehouse":     {},
			"in the namespace":     {Namespace: moorage.Namespace{"ns"}},
			"in another namespace": {Namespace: moorage.Namespace{"ns", "inner"}},
			"of another warehouse": {Warehouse: "other"},
		} {
			isThere := of.Warehouse == "" && len(of.Namespace) < 2
			if of.Warehouse == "" {
				of.Warehouse = catalogkit.Warehouse
			}
			of.ID = droppedRows(f, "b", false)[0].ID
			rows, next, err := f.Dropped().List(f.Ctx, of, moorage.Page{Limit: 10})
			if isThere != (len(rows) == 1 && rows[0].Ident.Name == "b" && rows[0].ID == of.ID) || len(rows) > 1 || next != "" {
				t.Errorf("by id %s: %+v, %v", name, rows, err)
			}
		}
		row := droppedRows(f, "a", false)[0]
		if row.By != "anonymous" || row.Change.IsZero() || row.Summary == nil || !row.EndsAt.Equal(row.At.Add(7*24*time.Hour)) {
			t.Errorf("the row of a table is %+v", row)
		}
	})
}

// TestUndropBesideOldNodes uses the records left by a node of version 0.1.0. The list does not show
// a table that such a node has registered again, and an undrop does not find it.
func TestUndropBesideOldNodes(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	dropOf(f, "t")
	var stale registry.Record
	must(t, f.Ledger.Scan(f.Ctx, registry.TableDropped, "", "", func(record registry.Record) (bool, error) {
		stale = record
		return true, nil
	}))
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	_, err = f.Ledger.Step(f.Ctx, registry.Batch{Writes: []registry.Write{registry.Put(stale.Key, stale.State, stale.Value)}})
	must(t, err)
	if rows := droppedRows(f, "t", true); len(rows) != 0 {
		t.Errorf("the list has %+v", rows)
	}
	must(t, f.RenameTable(f.Ctx, ident("t"), ident("u")))
	_, err = f.Dropped().Undrop(f.Ctx, called("t"))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
}

// TestPurgeDropped purges a table early. The purge begins at once if no client can repeat a
// request. A view or a live table is never purged. A second purge succeeds too.
func TestPurgeDropped(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]catalog.DropOptions{"dropped": {}, "its purge waits": {Purge: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, waitingPurges)
			table := f.Create("t")
			asked := called("t").DroppedName
			catalogkit.WantKind(t, f.Dropped().Purge(f.Ctx, asked), moorage.KindAlreadyExists)
			must(t, f.DropTable(f.Ctx, ident("t"), options))
			must(t, f.Dropped().Purge(f.Ctx, asked))
			if rows := droppedRows(f, "t", false); len(rows) != 1 || rows[0].Purge != history.PurgeBegun {
				t.Errorf("the list has %+v", rows)
			}
			must(t, f.Dropped().Purge(f.Ctx, asked))
			catalogkit.WantKind(t, f.Dropped().Forget(f.Ctx, asked), moorage.KindAlreadyExists)
			must(t, f.PurgeAll(f.Ctx))
			wantFile(f, table.MetadataLocation, false)
			catalogkit.WantKind(t, f.Dropped().Purge(f.Ctx, asked), moorage.KindNotFound)
			f.WantClean()
		})
	}
	f := catalogkit.New(t)
	must(t, createView(ident("v"))(f.Ctx, f.Instance))
	must(t, f.DropView(f.Ctx, ident("v")))
	catalogkit.WantKind(t, f.Dropped().Purge(f.Ctx, called("v").DroppedName), moorage.KindBadRequest)
	must(t, f.Dropped().Forget(f.Ctx, called("v").DroppedName))
	f.WantClean()
}

// TestForget ends a dropped table early. Its files stay, only its own file can be registered at its
// location, and a waiting purge does not happen.
func TestForget(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, waitingPurges)
	table := f.Create("t")
	asked := called("t").DroppedName
	catalogkit.WantKind(t, f.Dropped().Forget(f.Ctx, asked), moorage.KindAlreadyExists)
	purgeT(f)
	must(t, f.Dropped().Forget(f.Ctx, asked))
	catalogkit.WantKind(t, f.Dropped().Forget(f.Ctx, asked), moorage.KindNotFound)
	f.Clock.Advance(2 * purgeDelay)
	must(t, f.PurgeAll(f.Ctx))
	wantFile(f, table.MetadataLocation, true)
	f.WantClean()
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.WantClean()
}

// TestUndropWithKey repeats an undrop with its key after the table was dropped again. The second
// answer equals the first, and nothing changes.
func TestUndropWithKey(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	dropOf(f, "t")
	key := catalogkit.KeyOf("undrop")
	once := func() catalog.Undropped {
		t.Helper()
		done, err := f.As(moorage.Anonymous()).Keyed(&key).Dropped().Undrop(f.Ctx, called("t"))
		must(t, err)
		return done
	}
	first := once()
	dropOf(f, "t")
	if second := once(); second.ID != first.ID || second.MetadataLocation != first.MetadataLocation {
		t.Errorf("the second answer is %+v, want %+v", second, first)
	}
	if rows := droppedRows(f, "t", false); len(rows) != 1 {
		t.Errorf("the second request changed something: %+v", rows)
	}
}

// TestUndropKeepsWhatBelongsToTheTable drops a table with labels. The undrop restores the labels
// too.
func TestUndropKeepsWhatBelongsToTheTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	_, err := f.Instance.Labels().Put(f.Ctx, access.Table, ident("t"), teamLabels("billing"), nil)
	must(t, err)
	before := f.Load("t")
	dropOf(f, "t")
	_, err = f.Dropped().Undrop(f.Ctx, called("t"))
	must(t, err)
	if after := f.Load("t"); string(after.Labels.Text) != string(before.Labels.Text) || len(after.Labels.Text) == 0 {
		t.Errorf("the labels are %s, want %s", after.Labels.Text, before.Labels.Text)
	}
}

// droppedOf returns the verbs of c for dropped objects.
func droppedOf(c catalog.Verbs) catalog.Dropped {
	return c.(interface{ Dropped() catalog.Dropped }).Dropped()
}

// undropTable is a client that restores a table.
func undropTable(asked catalog.UndropRequest) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		_, err := droppedOf(c).Undrop(ctx, asked)
		return err
	}
}

// forgetTable is a client that forgets a dropped table.
func forgetTable(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return droppedOf(c).Forget(ctx, catalog.DroppedName{Ident: name})
	}
}

// purgeNow is a client that starts the purge of a dropped table.
func purgeNow(name moorage.Identifier) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return droppedOf(c).Purge(ctx, catalog.DroppedName{Ident: name})
	}
}
