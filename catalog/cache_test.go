package catalog_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// After a write, a node remembers a pointer as a reader would find it, so it need not read the
// pointer.
func TestNamesRememberWhatWasWritten(t *testing.T) {
	t.Parallel()
	mutations := map[string]func(context.Context, catalog.Verbs) error{
		"commit": func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.Commit(ctx, ident("a"), catalogkit.MoveTo(t, "file:///wh/far"))
			return err
		},
		"transaction": func(ctx context.Context, c catalog.Verbs) error {
			return c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
				catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/new")), catalogkit.On("a", catalogkit.MoveTo(t, "file:///wh/far")),
				catalogkit.On("asked", catalogkit.CommitRequest(t, `[]`, `[]`)), catalogkit.On("b", catalogkit.SetProperty(t, "x", "1")),
			})
		},
	}
	for name, mutate := range mutations {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/keyed=%t", name, keyed), func(t *testing.T) {
				t.Parallel()
				f := catalogkit.New(t)
				for _, table := range []string{"a", "b", "asked"} {
					f.Create(table)
					if _, err := f.Commit(f.Ctx, ident(table), catalogkit.SetProperty(t, "first", "1")); err != nil {
						t.Fatal(err)
					}
				}
				do := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
					return catalogkit.Reply{}, mutate(ctx, c)
				}
				var err error
				if keyed {
					_, err = f.Once(f.Ctx, catalogkit.KeyOf(name), do)
				} else {
					_, err = do(f.Ctx, f.Instance)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, table := range []string{"a", "b"} {
					wantRemembered(f, table)
				}
			})
		}
	}
}

// The same holds if a transaction had to follow a table past the version that it found first.
func TestNamesRememberWhatWasFollowed(t *testing.T) {
	t.Parallel()
	transactDuring(t, func(f *catalogkit.Fixture) error {
		_, err := f.Commit(f.Ctx, ident("a"), catalogkit.SetProperty(t, "meanwhile", "1"))
		return err
	}, func(f *catalogkit.Fixture, _ bool, err error) {
		if err != nil {
			f.T.Fatal(err)
		}
		wantRemembered(f, "a")
		wantRemembered(f, "b")
		f.WantProperty("a", "meanwhile", "1")
	})
}

// wantRemembered fails unless the pointer of table is remembered as the store holds it.
func wantRemembered(f *catalogkit.Fixture, table string) {
	f.T.Helper()
	known, ok := catalog.DirectoryOf(f.Catalog).Known(ident(table))
	if !ok {
		f.T.Fatalf("%s is not remembered", table)
	}
	records, err := f.Store.Get(f.Ctx, known.Record.Key)
	if err != nil {
		f.T.Fatal(err)
	}
	if !reflect.DeepEqual(known.Record, records[0]) {
		f.T.Errorf("%s is remembered as %s, and is %s", table, known.Record.Value, records[0].Value)
	}
	stored, err := registry.Decode[registry.Pointer](records[0])
	if err != nil {
		f.T.Fatal(err)
	}
	walked, err := f.Other(f.Store).Directory.Find(f.Ctx, directory.Table(), ident(table))
	if err != nil {
		f.T.Fatal(err)
	}
	path, err := catalog.DirectoryOf(f.Catalog).Path(f.Ctx, catalogkit.Warehouse, nil)
	must(f.T, err)
	if known.Storage != path.Storage || !reflect.DeepEqual(known.Place, walked.Place) {
		f.T.Errorf("%s is remembered in %v, and is in %v", table, known.Place, walked.Place)
	}
	remembered := known.Pointer
	for _, at := range []*time.Time{&stored.Since, &stored.ReplayableUntil, &remembered.Since, &remembered.ReplayableUntil} {
		*at = at.UTC().Round(0)
	}
	if !reflect.DeepEqual(remembered, stored) {
		f.T.Errorf("%s is remembered as %+v, and is %+v", table, remembered, stored)
	}
}

// A node keeps the documents of two versions of a table that is changed again and again. One is the
// present version. The other is the previous version, for calls that read the pointer while it was
// current. So the node never reads a document that it has written itself.
func TestDocumentsOfTwoVersionsAreKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*catalogkit.Fixture, catalog.CommitRequest) error{
		"commit": func(f *catalogkit.Fixture, request catalog.CommitRequest) error {
			_, err := f.Commit(f.Ctx, ident("a"), request)
			return err
		},
		"transaction": func(f *catalogkit.Fixture, request catalog.CommitRequest) error {
			return f.Transact(catalogkit.On("a", request), catalogkit.On("b", request))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("a")
			f.Create("b")
			pointers := []registry.Pointer{f.PointerOf("a")}
			for n := range 4 {
				if err := change(f, catalogkit.SetProperty(t, "n", fmt.Sprint(n))); err != nil {
					t.Fatal(err)
				}
				pointers = append(pointers, f.PointerOf("a"))
			}
			for i, pointer := range pointers {
				if kept := keeps(f, pointer); kept != (i >= len(pointers)-2) {
					t.Errorf("the document of version %d of %d is kept: %t", i, len(pointers), kept)
				}
			}
		})
	}
}

// The same holds for the first version.
func TestDocumentsOfNewTablesAreKept(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Create("c")
	if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.CommitCreateRequest(t, "file:///wh/b"))); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"a", "b", "c"} {
		if !keeps(f, f.PointerOf(table)) {
			t.Errorf("the document of %s is not kept", table)
		}
	}
}

// keeps reports whether the document named in pointer is in the cache.
func keeps(f *catalogkit.Fixture, pointer registry.Pointer) bool {
	return f.Documents().Kept(f.Ctx, documents.RefOf(pointer, f.Files)) != nil
}
