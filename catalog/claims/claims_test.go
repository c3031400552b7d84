package claims_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// No table lives at a root, because every other table would lie within it. This includes a root
// that lies within another root.
func TestNoTableAtRoot(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string][]string{
		"alone": nil, "within another": {"file:///"}, "another within it": {"file:///wh/inner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Allow(catalogkit.Warehouse, allowed...)
			for _, root := range append([]string{"file:///wh", "file:/wh/"}, allowed...) {
				_, err := f.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: root})
				catalogkit.WantKind(t, err, moorage.KindBadRequest)
			}
			table := f.Create("t")
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.MoveTo(t, "file:///wh"))
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
			f.CreateAt("u", table.Document.Location()+"-beside")
			f.WantClean()
		})
	}
}

// A dropped table cannot be restored while another table lives at its location or at an earlier
// location of it. Each table would take the other's files for orphans, and a purge would delete
// them.
func TestDroppedTableWhoseLocationPassedOnStaysAway(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, taken string
	}{
		{"its last location", "file:///wh/new"},
		{"an earlier location", "file:///wh/old"},
		{"beneath an earlier location", "file:///wh/old/inner"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.CreateAt("t", "file:///wh/old")
			moved, err := f.Commit(f.Ctx, ident("t"), catalogkit.MoveTo(t, "file:///wh/new"))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
				t.Fatal(err)
			}
			if test.taken == "file:///wh/old/inner" { // the claim passes on, ends, and its place is built over
				f.CreateAt("between", "file:///wh/old")
				if _, err := f.UnregisterTable(f.Ctx, ident("between")); err != nil {
					t.Fatal(err)
				}
			}
			f.CreateAt("other", test.taken)
			request := catalog.RegisterRequest{MetadataLocation: moved.MetadataLocation}
			_, err = f.RegisterTable(f.Ctx, ident("back"), request)
			catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
			f.WantClean()

			if err := f.DropTable(f.Ctx, ident("other"), catalog.DropOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = f.RegisterTable(f.Ctx, ident("back"), request)
			if test.taken == "file:///wh/old/inner" {
				catalogkit.WantKind(t, err, moorage.KindAlreadyExists) // the folder's record is swept later
				return
			}
			if err != nil {
				t.Fatalf("with the other table dropped: %v", err)
			}
			f.WantClean()
		})
	}
}

// The refusal of a location reports whether the conflicting location belongs to another table or
// view, or to the same one. The table keeps its own locations.
func TestMoveIsToldWhoseLocation(t *testing.T) {
	t.Parallel()
	const within, around, others = "Location is within file:///wh/", "Location contains another location of the same", "of another table or view: "
	for location, want := range map[string]string{
		"file:///wh/in/now/inner":       within + "in/now, another location of the same table or view: ",
		"file:///wh/once/in/ner":        within + "once, another",
		"file:///wh/in":                 around,
		"file:///wh/other":              others,
		"file:///wh/other/inner/deeper": others,
		"file:///wh/both":               others, // behind its own
		"file:///wh/mixed":              others, // before it
		"file:///wh/free":               "",
	} {
		for _, kind := range []*directory.Kind{directory.Table(), directory.View()} {
			t.Run(kind.Noun+" to "+location, func(t *testing.T) {
				t.Parallel()
				f := catalogkit.New(t)
				move := func(location string) (err error) {
					if kind == directory.Table() {
						_, err = f.Commit(f.Ctx, ident("it"), catalogkit.MoveTo(t, location))
						return err
					}
					_, err = f.ReplaceView(f.Ctx, ident("it"), catalogkit.ReplaceRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-location","location":%q}]`, location)))
					return err
				}
				f.CreateAt("other", "file:///wh/other/inner")
				f.CreateAt("beside", "file:///wh/both/theirs")
				f.CreateAt("before", "file:///wh/mixed/before")
				if kind == directory.Table() {
					f.CreateAt("it", "file:///wh/once")
				} else if _, err := f.CreateView(f.Ctx, ident("it"), catalogkit.ViewRequest("file:///wh/once")); err != nil {
					t.Fatal(err)
				}
				for _, location := range []string{"file:///wh/both/own", "file:///wh/mixed/own", "file:///wh/in/now"} {
					if err := move(location); err != nil {
						t.Fatal(err)
					}
				}
				err := move(location)
				if want == "" {
					if err != nil {
						t.Error(err)
					}
				} else if catalogkit.WantKind(t, err, moorage.KindBadRequest); !strings.Contains(moorage.MessageOf(err), want) || !strings.HasSuffix(moorage.MessageOf(err), ": "+location) {
					t.Errorf("the answer is %q, want %q", moorage.MessageOf(err), want)
				}
				f.WantClean()
			})
		}
	}
}

// A table in a deep namespace with long names gets a location too, but a short one.
func TestLocationInDeepNamespace(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	deep := make(moorage.Namespace, moorage.NamespaceLevelsMax)
	for i := range deep {
		deep[i] = strings.Repeat("é", moorage.NameBytesMax/2)
	}
	if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, deep, nil); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []bool{true, false} {
		request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: stage}
		table, err := f.CreateTable(f.Ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: deep, Name: "t"}, request)
		if err != nil {
			t.Fatalf("stage %t: %v", stage, err)
		}
		if got := table.Document.Location(); !strings.HasPrefix(got, "file:///wh/t-") {
			t.Errorf("stage %t: location %.100s…", stage, got)
		}
	}
	f.WantClean()
}

// The location is part of the claim's key, and keys have a maximum length.
func TestLocationTooLong(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	longest := "file:///wh" + strings.Repeat("/f", (registry.KeyBytesMax-len("file:///wh"))/2)
	f.CreateAt("t", longest)
	_, err := f.CreateTable(f.Ctx, ident("u"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: longest + "g"})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	f.WantClean()
}

// The number of a table's earlier locations is limited, because the one Apply that ends the table
// must release all of them.
func TestLocationsOfOneTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	at := func(n int) catalog.CommitRequest { return catalogkit.MoveTo(t, fmt.Sprintf("file:///wh/moved/%d", n)) }
	for n := 1; n < claims.Max; n++ {
		_, err := f.Commit(f.Ctx, ident("t"), at(n))
		must(t, err)
	}
	_, err := f.Commit(f.Ctx, ident("t"), at(claims.Max))
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	f.Create("u")
	catalogkit.WantKind(t, f.Transact(catalogkit.On("t", at(claims.Max)), catalogkit.On("u", catalogkit.SetProperty(t, "a", "b"))), moorage.KindBadRequest)
	last, err := f.Commit(f.Ctx, ident("t"), at(1)) // its previous location
	must(t, err)

	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
	must(t, err)
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
	must(t, f.PurgeAll(f.Ctx))
	if stats := f.Purges.Stats(); stats.Unfinished != 0 || stats.Failures != 0 {
		t.Errorf("the purge did not end: %+v", stats)
	}
	f.WantClean()
}

// Tables never lie within each other, even if roots do. The roots may belong to two warehouses, or
// to the same server before and after a restart.
func TestLocationsNestInNoWarehouse(t *testing.T) {
	t.Parallel()
	inner := moorage.Identifier{Warehouse: "inner", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	request := func(location string) catalog.CreateTableRequest {
		return catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location}
	}
	withInner := func(t *testing.T) *catalogkit.Fixture {
		f := catalogkit.New(t)
		_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: inner.Warehouse, Location: "file:///wh/a/b/c"})
		must(t, err)
		_, err = f.CreateNamespace(f.Ctx, inner.Warehouse, inner.Namespace, nil)
		must(t, err)
		return f
	}
	t.Run("around first", func(t *testing.T) {
		t.Parallel()
		f := withInner(t)
		f.CreateAt("around", "file:///wh/a")
		for _, location := range []string{"", "file:///wh/a/b/c/t"} {
			_, err := f.CreateTable(f.Ctx, inner, request(location))
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
		}
		must(t, f.DropTable(f.Ctx, ident("around"), catalog.DropOptions{}))
		f.WantClean()
	})
	t.Run("within first", func(t *testing.T) {
		t.Parallel()
		f := withInner(t)
		_, err := f.CreateTable(f.Ctx, inner, request(""))
		must(t, err)
		f.Create("t")
		for _, location := range []string{"file:///wh/a", "file:///wh/a/b"} {
			_, err := f.CreateTable(f.Ctx, ident("around"), request(location))
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
			_, err = f.Commit(f.Ctx, ident("t"), catalogkit.MoveTo(t, location))
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
		}
		f.WantClean()
	})
	t.Run("wider later", func(t *testing.T) {
		t.Parallel()
		f := catalogkit.New(t)
		f.Allow(catalogkit.Warehouse, "file:///lake/team/tables")
		f.CreateAt("within", "file:///lake/team/tables/t")
		f.Allow(catalogkit.Warehouse, "file:///lake")
		_, err := f.Other(f.Store).CreateTable(f.Ctx, ident("around"), request("file:///lake/team"))
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
		f.WantClean()
	})
}
