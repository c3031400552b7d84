package catalog_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/maintenance/leases"
	"moorage/metadata"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// This file and fates_test.go in maintenance/jobs are the table of docs/design/pairs.md.

// meanwhile is an event that happens to the table under test.
type meanwhile struct {
	name string
	do   func(f *catalogkit.Fixture, table *catalog.Table) error
}

// withTable returns all events that can happen to the table called name.
func withTable(name string) []meanwhile {
	at := ident(name)
	drop := func(f *catalogkit.Fixture, purge bool) error {
		return f.DropTable(f.Ctx, at, catalog.DropOptions{Purge: purge})
	}
	register := func(f *catalogkit.Fixture, location string, overwrite bool) error {
		_, err := f.RegisterTable(f.Ctx, at, catalog.RegisterRequest{MetadataLocation: location, Overwrite: overwrite})
		return err
	}
	unregister := func(f *catalogkit.Fixture) error {
		_, err := f.UnregisterTable(f.Ctx, at)
		return err
	}
	create := func(f *catalogkit.Fixture, name string, request catalog.CreateTableRequest) (*catalog.Table, error) {
		request.Schema = []byte(catalogkit.Schema)
		return f.CreateTable(f.Ctx, ident(name), request)
	}
	return []meanwhile{
		{"rename", func(f *catalogkit.Fixture, _ *catalog.Table) error { return f.RenameTable(f.Ctx, at, ident("z")) }},
		{"set-location", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			_, err := f.Commit(f.Ctx, at, catalogkit.CommitRequest(f.T, `[]`, `[{"action":"set-location","location":"file:///wh/ns/moved"}]`))
			return err
		}},
		{"drop", func(f *catalogkit.Fixture, _ *catalog.Table) error { return drop(f, false) }},
		{"drop, undrop", func(f *catalogkit.Fixture, table *catalog.Table) error {
			must(f.T, drop(f, false))
			return register(f, table.MetadataLocation, false)
		}},
		{"drop, end of the window", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			must(f.T, drop(f, false))
			f.Clock.Advance(catalogkit.UndropWindow + time.Second)
			return f.EndWindows(f.Ctx)
		}},
		{"drop, create another", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			must(f.T, drop(f, false))
			_, err := create(f, name, catalog.CreateTableRequest{})
			return err
		}},
		{"purge", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			must(f.T, drop(f, true))
			return f.PurgeAll(f.Ctx)
		}},
		{"purge that waits", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			_, err := f.As(moorage.Anonymous()).Warehouses().Change(f.Ctx, catalogkit.Warehouse, warehouses.Change{
				Properties: map[string]*string{metadata.PropPurgeDelay: new("24h")},
			})
			must(f.T, err)
			must(f.T, drop(f, true))
			return f.PurgeAll(f.Ctx)
		}},
		{"unregister", func(f *catalogkit.Fixture, _ *catalog.Table) error { return unregister(f) }},
		{"unregister, register", func(f *catalogkit.Fixture, table *catalog.Table) error {
			must(f.T, unregister(f))
			return register(f, table.MetadataLocation, false)
		}},
		{"register over, the same uuid", func(f *catalogkit.Fixture, table *catalog.Table) error {
			return register(f, table.MetadataLocation, true)
		}},
		{"register over, another uuid", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			other, err := create(f, "other", catalog.CreateTableRequest{})
			must(f.T, err)
			_, err = f.UnregisterTable(f.Ctx, ident("other"))
			must(f.T, err)
			return register(f, other.MetadataLocation, true)
		}},
		{"staged create at its location", func(f *catalogkit.Fixture, table *catalog.Table) error {
			_, err := create(f, "new", catalog.CreateTableRequest{Location: table.Document.Location(), Stage: true})
			catalogkit.WantKind(f.T, err, moorage.KindBadRequest)
			return nil
		}},
	}
}

// TestPairsOfTransactions tests all events that can happen to a table while a transaction works on
// it. The transaction changes both of its tables, or none. A transaction that requires the
// table-uuid follows its table, and fails if the table has lost its pointer. Without that
// requirement, it uses the table of that name.
func TestPairsOfTransactions(t *testing.T) {
	t.Parallel()
	const happens, gone = moorage.Kind(0), moorage.KindNoSuchTable
	want := map[string]struct{ pinned, named moorage.Kind }{
		"rename":                        {happens, gone},
		"set-location":                  {happens, happens},
		"drop":                          {gone, gone},
		"drop, undrop":                  {happens, happens},
		"drop, end of the window":       {gone, gone},
		"drop, create another":          {gone, happens},
		"purge":                         {gone, gone},
		"purge that waits":              {gone, gone},
		"unregister":                    {gone, gone},
		"unregister, register":          {gone, happens},
		"register over, the same uuid":  {happens, happens},
		"register over, another uuid":   {gone, happens},
		"staged create at its location": {happens, happens},
	}
	for _, pair := range withTable("a") {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			transactDuring(t, func(f *catalogkit.Fixture) error {
				table, err := f.LoadTable(f.Ctx, ident("a"))
				if err != nil {
					return err
				}
				return pair.do(f, table)
			}, func(f *catalogkit.Fixture, pinned bool, err error) {
				kind, changed := want[pair.name].named, ident("a")
				if pinned {
					kind = want[pair.name].pinned
				}
				if pair.name == "rename" {
					changed = ident("z")
				}
				if kind == happens && err == nil {
					f.WantProperty("b", "n", "1")
					f.WantProperty(changed.Name, "n", "1")
					return
				}
				catalogkit.WantKind(f.T, err, kind)
				f.WantProperty("b", "n", "")
				if now, err := f.LoadTable(f.Ctx, changed); err == nil {
					f.WantProperty(now.Identifier.Name, "n", "")
				}
			})
		})
	}
}

// TestPairsOfLeases tests all events that can happen to a leased table. The lease stays with the
// table: a later change under the lease reaches that table or nothing. The next holder gets a
// greater token, as long as the table has its pointer.
func TestPairsOfLeases(t *testing.T) {
	t.Parallel()
	const happens, gone, failed = moorage.Kind(0), moorage.KindNoSuchTable, moorage.KindCommitFailed
	want := map[string]moorage.Kind{
		"rename":                        happens,
		"set-location":                  happens,
		"drop":                          gone,
		"drop, undrop":                  happens,
		"drop, end of the window":       gone,
		"drop, create another":          failed,
		"purge":                         gone,
		"purge that waits":              gone,
		"unregister":                    gone,
		"unregister, register":          failed,
		"register over, the same uuid":  happens,
		"register over, another uuid":   failed,
		"staged create at its location": happens,
	}
	for _, pair := range withTable("t") {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			l := newLeased(t)
			table, err := l.LoadTable(l.Ctx, ident("t"))
			must(t, err)
			must(t, pair.do(l.Fixture, table))
			name := "t"
			if pair.name == "rename" {
				name = "z"
			}
			_, err = l.under(l.lease.ID).Commit(l.Ctx, ident(name), catalogkit.SetProperty(t, "n", "1"))
			if kind := want[pair.name]; kind == happens {
				must(t, err)
			} else {
				catalogkit.WantKind(t, err, kind)
			}
			records, err := l.store.Get(l.Ctx, registry.PointerKey(l.id))
			must(t, err)
			if records[0].State == registry.StateLive {
				must(t, l.leases.Release(l.Ctx, moorage.Anonymous(), l.lease.ID, leases.OwnLeases))
				if next := l.take(moorage.Anonymous()); next.ID.Token <= l.lease.ID.Token {
					t.Errorf("the token %d comes after %d", next.ID.Token, l.lease.ID.Token)
				}
			}
			l.WantNoTransactions()
			l.WantClean()
		})
	}
}

// TestPairsOfCredentials tests all events that can happen to a table while engines hold a
// credential for it. None of them lets another table get its location. The refusal is 400 if the
// table still has the location, and 409 if the table is gone. After the last credential has
// expired, the location of a table that is gone can be reused.
func TestPairsOfCredentials(t *testing.T) {
	t.Parallel()
	at, z := catalogkit.LakeIdent(), catalogkit.LakeIdent()
	z.Name = "z"
	drop := func(f *catalogkit.Fixture) { must(f.T, f.DropTable(f.Ctx, at, catalog.DropOptions{})) }
	register := func(f *catalogkit.Fixture, table *catalog.Table, overwrite bool) error {
		_, err := f.RegisterTable(f.Ctx, at, catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: overwrite})
		return err
	}
	for _, pair := range []struct {
		name  string
		do    func(f *catalogkit.Fixture, table *catalog.Table) error
		keeps bool // the table still has its location in the end
	}{
		{"nothing", func(*catalogkit.Fixture, *catalog.Table) error { return nil }, true},
		{"rename", func(f *catalogkit.Fixture, _ *catalog.Table) error { return f.RenameTable(f.Ctx, at, z) }, true},
		{"set-location", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			_, err := f.Commit(f.Ctx, at, catalogkit.CommitRequest(f.T, `[]`, `[{"action":"set-location","location":"s3://bucket/lake/ns/moved"}]`))
			return err
		}, true},
		{"drop", func(f *catalogkit.Fixture, _ *catalog.Table) error { drop(f); return nil }, false},
		{"drop, undrop", func(f *catalogkit.Fixture, table *catalog.Table) error {
			drop(f)
			return register(f, table, false)
		}, true},
		{"drop, another of the name", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			drop(f)
			_, err := f.CreateTable(f.Ctx, at, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return err
		}, false},
		{"register over, the same uuid", func(f *catalogkit.Fixture, table *catalog.Table) error { return register(f, table, true) }, true},
		{"unregister", func(f *catalogkit.Fixture, _ *catalog.Table) error {
			_, err := f.UnregisterTable(f.Ctx, at)
			return err
		}, false},
		{"unregister, register", func(f *catalogkit.Fixture, table *catalog.Table) error {
			_, err := f.UnregisterTable(f.Ctx, at)
			must(f.T, err)
			return register(f, table, false)
		}, true},
	} {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			f, table := catalogkit.NewRestingFixture(t)
			must(t, pair.do(f, table))
			for _, ended := range []bool{false, true} {
				for _, stage := range []bool{true, false} {
					switch err := f.AnotherAt(catalogkit.RestingTable, stage); {
					case pair.keeps:
						catalogkit.WantKind(t, err, moorage.KindBadRequest)
					case !ended:
						catalogkit.WantKind(t, err, moorage.KindCommitFailed)
					default:
						must(t, err)
					}
				}
				f.Clock.Advance(catalogkit.LimitedLife)
			}
			f.WantClean()
		})
	}
}
