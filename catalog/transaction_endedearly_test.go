package catalog_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
)

// around is what is done, once, before and after the next file is made.
type around struct {
	due    atomic.Bool
	before func()
	after  func(location string)
}

// aroundFiles is a storage in which that is done.
type aroundFiles struct {
	storage.Store
	around *around
}

func (f *aroundFiles) Create(ctx context.Context, location string, body []byte) error {
	if !f.around.due.CompareAndSwap(true, false) {
		return f.Store.Create(ctx, location, body)
	}
	f.around.before()
	err := f.Store.Create(ctx, location, body)
	f.around.after(location)
	return err
}

// A transaction was ended while its coordinator was about to write a file. Anybody may register
// that file once it is two minutes old. So the coordinator deletes it only before that.
func TestEndedBeforeItsFilesWereWritten(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]struct {
		then func(f *fixture, node *instance, name, file string) error
		kept bool
	}{
		"nothing": {func(*fixture, *instance, string, string) error { return nil }, false},
		"registered": {func(f *fixture, node *instance, name, file string) error {
			return f.registerOn(node, name, file, true)
		}, true},
		"registered and logged since": {func(f *fixture, node *instance, name, file string) error {
			must(f.t, f.registerOn(node, name, file, true))
			return commitTable(ident(name), setProperty(f.t, "other", "1"))(f.ctx, node)
		}, true},
		"dropped, and taken back with it": {func(f *fixture, node *instance, name, file string) error {
			must(f.t, node.DropTable(f.ctx, ident(name), catalog.DropOptions{}))
			return f.registerOn(node, name, file, false)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := new(around)
			f := newFixture(t, func(c *catalog.Config) {
				wrapStorage(c, func(inner storage.Store) storage.Store { return &aroundFiles{inner, first} })
			})
			f.create("a")
			f.create("b")
			node := f.unlocked(f.store)
			var file string
			first.before = func() {
				for entry, err := range node.transactions.All(f.ctx) {
					must(t, err)
					_, err = node.recovery().Abort(f.ctx, entry.ID.String())
					must(t, err)
				}
				must(t, node.recovery().RunOnce(f.ctx))
				f.wantNoTransactions()
			}
			first.after = func(location string) {
				file = location
				table := "a"
				if strings.Contains(location, "/b/") {
					table = "b"
				}
				must(t, others.then(f, node, table, location))
			}
			first.due.Store(true)
			wantKind(t, f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))), moorage.KindUnavailable)
			if kept := len(f.present([]string{file})) > 0; kept != others.kept {
				t.Errorf("its file is there: %t, want %t", kept, others.kept)
			}
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}
