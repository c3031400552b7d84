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
)

// afterCreate makes the storage of a fixture run the hook when a file was made, with its location.
func afterCreate(config *catalog.Config, hook func(location string)) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return &lateCreates{inner, hook} })
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

// unlooked is a log that forgets the files which the catalog says may stay. The catalog could not
// look in time whether they are in use.
type unlooked struct{ files *fileCount }

func (unlooked) Enabled(context.Context, slog.Level) bool { return true }

func (u unlooked) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "location" && record.Message == documents.NoteUnlooked {
			u.files.set(attr.Value.String(), false)
		}
		return true
	})
	return nil
}

func (u unlooked) WithAttrs([]slog.Attr) slog.Handler { return u }
func (u unlooked) WithGroup(string) slog.Handler      { return u }

// discarding is a commit, and what others do with its file once it is written and before anything
// names it.
type discarding struct {
	name   string
	commit raceClient
	others func(f *fixture, node *instance, file string) error
	kept   bool // the file
	there  []string
}

// registerOn registers a file that was written a moment ago. It is refused at first: the commit
// that wrote the file may be about to delete it.
func (f *fixture) registerOn(node *instance, name, file string, overwrite bool) error {
	request := catalog.RegisterRequest{MetadataLocation: file, Overwrite: overwrite}
	_, err := node.RegisterTable(f.ctx, ident(name), request)
	wantKind(f.t, err, moorage.KindUnavailable)
	f.clock.Advance(2 * time.Minute)
	_, err = node.RegisterTable(f.ctx, ident(name), request)
	return err
}

func discardings(t *testing.T) []discarding {
	commit := commitTable(ident("t"), setProperty(t, "mine", "yes"))
	replace := replaceView(ident("v"), setViewProperty(t, "mine", "yes"))
	unregister := func(f *fixture, node *instance) error { _, err := node.UnregisterTable(f.ctx, ident("t")); return err }
	other := func(f *fixture, node *instance) error {
		return commitTable(ident("t"), setProperty(t, "other", "yes"))(f.ctx, node)
	}
	all := []string{"ns", "ns:t", "ns:view v"}
	return []discarding{
		{"overtaken", commit, func(f *fixture, node *instance, _ string) error { return other(f, node) }, false, all},
		{"registered", commit, func(f *fixture, node *instance, file string) error { return f.registerOn(node, "t", file, true) }, true, all},
		{"registered in another spelling", commit, func(f *fixture, node *instance, file string) error {
			return f.registerOn(node, "t", "file:"+file[len("file://"):], true)
		}, true, all},
		{"registered and logged since", commit, func(f *fixture, node *instance, file string) error {
			if err := f.registerOn(node, "t", file, true); err != nil {
				return err
			}
			return other(f, node)
		}, true, all},
		{"dropped", commit, func(f *fixture, node *instance, _ string) error {
			return node.DropTable(f.ctx, ident("t"), catalog.DropOptions{})
		}, false, []string{"ns", "ns:view v"}},
		{"dropped and purged", commit, func(f *fixture, node *instance, _ string) error {
			if err := node.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
				return err
			}
			return node.purgeAll(f.ctx)
		}, false, []string{"ns", "ns:view v"}},
		{"dropped and taken back with it", commit, func(f *fixture, node *instance, file string) error {
			if err := node.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return err
			}
			return f.registerOn(node, "u", file, false)
		}, true, []string{"ns", "ns:u", "ns:view v"}},
		{"made anew", commit, func(f *fixture, node *instance, _ string) error {
			if err := node.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return err
			}
			return createTable(ident("t"))(f.ctx, node)
		}, false, all},
		{"unregistered", commit, func(f *fixture, node *instance, _ string) error { return unregister(f, node) }, false, []string{"ns", "ns:view v"}},
		{"unregistered and registered with it", commit, func(f *fixture, node *instance, file string) error {
			if err := unregister(f, node); err != nil {
				return err
			}
			return f.registerOn(node, "t", file, false)
		}, true, all},
		{"a create, by the same name", createTable(ident("new")), func(f *fixture, node *instance, file string) error {
			return f.registerOn(node, "new", file, false)
		}, true, []string{"ns", "ns:new", "ns:t", "ns:view v"}},
		{"a create, by another name", createTable(ident("new")), func(f *fixture, node *instance, file string) error {
			return f.registerOn(node, "u", file, false)
		}, true, []string{"ns", "ns:new", "ns:t", "ns:u", "ns:view v"}},
		{"a create, overtaken", createTable(ident("new")), func(f *fixture, node *instance, _ string) error {
			return createTable(ident("new"))(f.ctx, node)
		}, false, []string{"ns", "ns:new", "ns:t", "ns:view v"}},
		{"a replace, overtaken", replace, func(f *fixture, node *instance, _ string) error {
			return replaceView(ident("v"), setViewProperty(t, "other", "yes"))(f.ctx, node)
		}, false, all},
		{"a replace, dropped and taken back with it", replace, func(f *fixture, node *instance, file string) error {
			if err := node.DropView(f.ctx, ident("v")); err != nil {
				return err
			}
			_, err := node.RegisterView(f.ctx, ident("v"), file)
			wantKind(f.t, err, moorage.KindUnavailable)
			f.clock.Advance(2 * time.Minute)
			_, err = node.RegisterView(f.ctx, ident("v"), file)
			return err
		}, true, all},
	}
}

// The file of a commit that lost is deleted, unless it took so long that others could register it.
// In that case a version is in it, or logs it.
func TestDiscard(t *testing.T) {
	t.Parallel()
	for _, tt := range discardings(t) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hook := func(string) {}
			f := newFixture(t, func(c *catalog.Config) { afterCreate(c, func(location string) { hook(location) }) })
			f.create("t")
			f.createView("v")
			node := f.unlocked(f.store) // a create holds those that the others take
			var file string
			hook = func(location string) {
				hook = func(string) {}
				file = location
				if err := tt.others(f, node, location); err != nil {
					t.Errorf("others: %v", err)
				}
			}
			err := tt.commit(f.ctx, f.instance)
			if kind := moorage.KindOf(err); err != nil && kind != moorage.KindNoSuchTable && kind != moorage.KindAlreadyExists {
				t.Error(err)
			}
			if kept := len(f.present([]string{file})) > 0; kept != tt.kept {
				t.Errorf("its file is there: %t, want %t", kept, tt.kept)
			}
			if got := f.inventory([]*instance{f.instance, node}); fmt.Sprint(got) != fmt.Sprint(tt.there) {
				t.Errorf("there is %v, want %v", got, tt.there)
			}
			f.wantClean()
		})
	}
}

// A commit that loses against another node costs one read and one write more. The look whether its
// file is in use adds none.
func TestLostRaceRoundTrips(t *testing.T) {
	t.Parallel()
	var store *countingStore
	hook := func(string) {}
	f := newFixture(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
		afterCreate(c, func(location string) { hook(location) })
	})
	f.create("t")
	if _, err := f.LoadTable(f.ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	node := f.other(store.Store)
	hook = func(string) {
		hook = func(string) {}
		must(t, commitTable(ident("t"), setProperty(t, "other", "yes"))(f.ctx, node))
	}
	store.calls.Store(0)
	must(t, commitTable(ident("t"), setProperty(t, "mine", "yes"))(f.ctx, f.instance))
	if took := store.calls.Load(); took != 4 {
		t.Errorf("%d calls of the store, want 4", took)
	}
}
