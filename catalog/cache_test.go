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
)

// After a write, a node remembers of a pointer what a reader would find. So nobody has to read it.
func TestNamesRememberWhatWasWritten(t *testing.T) {
	t.Parallel()
	mutations := map[string]func(context.Context, catalog.Verbs) error{
		"commit": func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.Commit(ctx, ident("a"), moveTo(t, "file:///wh/far"))
			return err
		},
		"transaction": func(ctx context.Context, c catalog.Verbs) error {
			return c.CommitTransaction(ctx, testWarehouse, []catalog.TableChange{
				on("new", commitCreateRequest(t, "file:///wh/new")), on("a", moveTo(t, "file:///wh/far")),
				on("asked", commitRequest(t, `[]`, `[]`)), on("b", setProperty(t, "x", "1")),
			})
		},
	}
	for name, mutate := range mutations {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/keyed=%t", name, keyed), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				for _, table := range []string{"a", "b", "asked"} {
					f.create(table)
					if _, err := f.Commit(f.ctx, ident(table), setProperty(t, "first", "1")); err != nil {
						t.Fatal(err)
					}
				}
				do := func(ctx context.Context, c catalog.Verbs) (reply, error) {
					return reply{}, mutate(ctx, c)
				}
				var err error
				if keyed {
					_, err = f.once(f.ctx, keyOf(name), do)
				} else {
					_, err = do(f.ctx, f.instance)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, table := range []string{"a", "b"} {
					f.wantRemembered(table)
				}
			})
		}
	}
}

// So is what a transaction makes of a table that it follows past the version that it found first.
func TestNamesRememberWhatWasFollowed(t *testing.T) {
	t.Parallel()
	transactDuring(t, func(f *fixture) error {
		_, err := f.Commit(f.ctx, ident("a"), setProperty(t, "meanwhile", "1"))
		return err
	}, func(f *fixture, _ bool, err error) {
		if err != nil {
			f.t.Fatal(err)
		}
		f.wantRemembered("a")
		f.wantRemembered("b")
		f.wantProperty("a", "meanwhile", "1")
	})
}

// wantRemembered fails unless the pointer of table is remembered as the store holds it.
func (f *fixture) wantRemembered(table string) {
	f.t.Helper()
	known, ok := catalog.DirectoryOf(f.Catalog).Known(ident(table))
	if !ok {
		f.t.Fatalf("%s is not remembered", table)
	}
	records, err := f.store.Get(f.ctx, known.Record.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	if !reflect.DeepEqual(known.Record, records[0]) {
		f.t.Errorf("%s is remembered as %s, and is %s", table, known.Record.Value, records[0].Value)
	}
	stored, err := registry.Decode[registry.Pointer](records[0])
	if err != nil {
		f.t.Fatal(err)
	}
	walked, err := f.other(f.store).directory.Find(f.ctx, directory.Table(), ident(table))
	if err != nil {
		f.t.Fatal(err)
	}
	path, err := catalog.DirectoryOf(f.Catalog).Path(f.ctx, testWarehouse, nil)
	must(f.t, err)
	if known.Storage != path.Storage || !reflect.DeepEqual(known.Place, walked.Place) {
		f.t.Errorf("%s is remembered in %v, and is in %v", table, known.Place, walked.Place)
	}
	remembered := known.Pointer
	for _, at := range []*time.Time{&stored.Since, &stored.ReplayableUntil, &remembered.Since, &remembered.ReplayableUntil} {
		*at = at.UTC().Round(0)
	}
	if !reflect.DeepEqual(remembered, stored) {
		f.t.Errorf("%s is remembered as %+v, and is %+v", table, remembered, stored)
	}
}

// A node keeps the documents of two versions of a table that is changed again and again. One is the
// present version. The other is the one before it, for calls that read the pointer when it was
// current. Nobody has to read what this node has written.
func TestDocumentsOfTwoVersionsAreKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture, catalog.CommitRequest) error{
		"commit": func(f *fixture, request catalog.CommitRequest) error {
			_, err := f.Commit(f.ctx, ident("a"), request)
			return err
		},
		"transaction": func(f *fixture, request catalog.CommitRequest) error {
			return f.transact(on("a", request), on("b", request))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("a")
			f.create("b")
			pointers := []registry.Pointer{f.pointerOf("a")}
			for n := range 4 {
				if err := change(f, setProperty(t, "n", fmt.Sprint(n))); err != nil {
					t.Fatal(err)
				}
				pointers = append(pointers, f.pointerOf("a"))
			}
			for i, pointer := range pointers {
				if kept := f.keeps(pointer); kept != (i >= len(pointers)-2) {
					t.Errorf("the document of version %d of %d is kept: %t", i, len(pointers), kept)
				}
			}
		})
	}
}

// So it is with the first version.
func TestDocumentsOfNewTablesAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("a")
	f.create("c")
	if err := f.transact(on("a", setProperty(t, "n", "1")), on("b", commitCreateRequest(t, "file:///wh/b"))); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"a", "b", "c"} {
		if !f.keeps(f.pointerOf(table)) {
			t.Errorf("the document of %s is not kept", table)
		}
	}
}

func (f *fixture) pointerOf(table string) registry.Pointer {
	f.t.Helper()
	found, err := f.directory.Find(f.ctx, directory.Table(), ident(table))
	if err != nil {
		f.t.Fatal(err)
	}
	return found.Pointer
}

// keeps reports whether the document that pointer names is kept.
func (f *fixture) keeps(pointer registry.Pointer) bool {
	return f.Documents().Kept(f.ctx, documents.RefOf(pointer, f.files)) != nil
}
