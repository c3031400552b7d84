package catalog_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// afterCreate makes the storage of a fixture call hook after it has created a file, with the file's
// location.
func afterCreate(config *catalog.Config, hook func(location string)) {
	catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return &lateCreates{inner, hook} })
}

type lateCreates struct {
	storage.Store
	hook func(location string)
}

func (f *lateCreates) Create(ctx context.Context, location string, body []byte) error {
	err := f.Store.Create(ctx, location, body)
	f.hook(location)
	return err
}

// unlooked is a log that forgets the files which the catalog reports as possibly left over, because
// it could not check in time whether they are in use.
type unlooked struct{ files *catalogkit.FileCount }

func (unlooked) Enabled(context.Context, slog.Level) bool { return true }

func (u unlooked) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "location" && record.Message == documents.NoteUnlooked {
			u.files.Set(attr.Value.String(), false)
		}
		return true
	})
	return nil
}

func (u unlooked) WithAttrs([]slog.Attr) slog.Handler { return u }
func (u unlooked) WithGroup(string) slog.Handler      { return u }

// discarding is a commit, and what other clients do with its file after it is written and before
// anything names it.
type discarding struct {
	name   string
	commit catalogkit.RaceClient
	others func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error
	kept   bool // the file
	there  []string
}

func discardings(t *testing.T) []discarding {
	commit := catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
	replace := catalogkit.ReplaceView(ident("v"), catalogkit.SetViewProperty(t, "mine", "yes"))
	unregister := func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
		_, err := node.UnregisterTable(f.Ctx, ident("t"))
		return err
	}
	other := func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
		return catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "other", "yes"))(f.Ctx, node)
	}
	all := []string{"ns", "ns:t", "ns:view v"}
	return []discarding{
		{"overtaken", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error { return other(f, node) }, false, all},
		{"registered", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			return f.RegisterOn(node, "t", file, true)
		}, true, all},
		{"registered in another spelling", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			return f.RegisterOn(node, "t", "file:"+file[len("file://"):], true)
		}, true, all},
		{"registered and logged since", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			if err := f.RegisterOn(node, "t", file, true); err != nil {
				return err
			}
			return other(f, node)
		}, true, all},
		{"dropped", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error {
			return node.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})
		}, false, []string{"ns", "ns:view v"}},
		{"dropped and purged", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error {
			if err := node.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
				return err
			}
			return node.PurgeAll(f.Ctx)
		}, false, []string{"ns", "ns:view v"}},
		{"dropped and taken back with it", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			if err := node.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return err
			}
			return f.RegisterOn(node, "u", file, false)
		}, true, []string{"ns", "ns:u", "ns:view v"}},
		{"made anew", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error {
			if err := node.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return err
			}
			return createTable(ident("t"))(f.Ctx, node)
		}, false, all},
		{"unregistered", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error { return unregister(f, node) }, false, []string{"ns", "ns:view v"}},
		{"unregistered and registered with it", commit, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			if err := unregister(f, node); err != nil {
				return err
			}
			return f.RegisterOn(node, "t", file, false)
		}, true, all},
		{"a create, by the same name", createTable(ident("new")), func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			return f.RegisterOn(node, "new", file, false)
		}, true, []string{"ns", "ns:new", "ns:t", "ns:view v"}},
		{"a create, by another name", createTable(ident("new")), func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			return f.RegisterOn(node, "u", file, false)
		}, true, []string{"ns", "ns:new", "ns:t", "ns:u", "ns:view v"}},
		{"a create, overtaken", createTable(ident("new")), func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error {
			return createTable(ident("new"))(f.Ctx, node)
		}, false, []string{"ns", "ns:new", "ns:t", "ns:view v"}},
		{"a replace, overtaken", replace, func(f *catalogkit.Fixture, node *catalogkit.Instance, _ string) error {
			return catalogkit.ReplaceView(ident("v"), catalogkit.SetViewProperty(t, "other", "yes"))(f.Ctx, node)
		}, false, all},
		{"a replace, dropped and taken back with it", replace, func(f *catalogkit.Fixture, node *catalogkit.Instance, file string) error {
			if err := node.DropView(f.Ctx, ident("v")); err != nil {
				return err
			}
			_, err := node.RegisterView(f.Ctx, ident("v"), file)
			catalogkit.WantKind(f.T, err, moorage.KindUnavailable)
			f.Clock.Advance(2 * time.Minute)
			_, err = node.RegisterView(f.Ctx, ident("v"), file)
			return err
		}, true, all},
	}
}

// The file of a lost commit is deleted, unless the commit took so long that others could have
// registered the file. In that case, the file may be a version, or be named in the log of one.
func TestDiscard(t *testing.T) {
	t.Parallel()
	for _, tt := range discardings(t) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hook := func(string) {}
			f := catalogkit.New(t, func(c *catalog.Config) { afterCreate(c, func(location string) { hook(location) }) })
			f.Create("t")
			f.MakeView("v")
			node := f.Unlocked(f.Store) // a create holds the locks that the other requests take
			var file string
			hook = func(location string) {
				hook = func(string) {}
				file = location
				if err := tt.others(f, node, location); err != nil {
					t.Errorf("others: %v", err)
				}
			}
			err := tt.commit(f.Ctx, f.Instance)
			if kind := moorage.KindOf(err); err != nil && kind != moorage.KindNoSuchTable && kind != moorage.KindAlreadyExists {
				t.Error(err)
			}
			if kept := len(f.Present([]string{file})) > 0; kept != tt.kept {
				t.Errorf("its file is there: %t, want %t", kept, tt.kept)
			}
			if got := inventory(f, []*catalogkit.Instance{f.Instance, node}); fmt.Sprint(got) != fmt.Sprint(tt.there) {
				t.Errorf("there is %v, want %v", got, tt.there)
			}
			f.WantClean()
		})
	}
}

// A commit that loses against another node costs one more read and one more write. Checking whether
// its file is in use adds no request.
func TestLostRaceRoundTrips(t *testing.T) {
	t.Parallel()
	var store *countingStore
	hook := func(string) {}
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
		afterCreate(c, func(location string) { hook(location) })
	})
	f.Create("t")
	if _, err := f.LoadTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	node := f.Other(store.Store)
	hook = func(string) {
		hook = func(string) {}
		must(t, catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "other", "yes"))(f.Ctx, node))
	}
	store.calls.Store(0)
	must(t, catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "mine", "yes"))(f.Ctx, f.Instance))
	if took := store.calls.Load(); took != 4 {
		t.Errorf("%d calls of the store, want 4", took)
	}
}
