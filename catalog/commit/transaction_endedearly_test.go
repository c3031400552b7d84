package commit_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// around has functions that are called once, before and after the next file is created.
type around struct {
	due    atomic.Bool
	before func()
	after  func(location string)
}

// aroundFiles is a storage that calls these functions.
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

// A transaction is ended by others while its coordinator is about to write a file. Once that file
// is two minutes old, any client may register it. So the coordinator deletes the file only before
// that time.
func TestEndedBeforeItsFilesWereWritten(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]struct {
		then func(f *catalogkit.Fixture, node *catalogkit.Instance, name, file string) error
		kept bool
	}{
		"nothing": {func(*catalogkit.Fixture, *catalogkit.Instance, string, string) error { return nil }, false},
		"registered": {func(f *catalogkit.Fixture, node *catalogkit.Instance, name, file string) error {
			return f.RegisterOn(node, name, file, true)
		}, true},
		"registered and logged since": {func(f *catalogkit.Fixture, node *catalogkit.Instance, name, file string) error {
			must(f.T, f.RegisterOn(node, name, file, true))
			return catalogkit.CommitTable(ident(name), catalogkit.SetProperty(f.T, "other", "1"))(f.Ctx, node)
		}, true},
		"dropped, and taken back with it": {func(f *catalogkit.Fixture, node *catalogkit.Instance, name, file string) error {
			must(f.T, node.DropTable(f.Ctx, ident(name), catalog.DropOptions{}))
			return f.RegisterOn(node, name, file, false)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := new(around)
			f := catalogkit.New(t, func(c *catalog.Config) {
				catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return &aroundFiles{inner, first} })
			})
			f.Create("a")
			f.Create("b")
			node := f.Unlocked(f.Store)
			var file string
			first.before = func() {
				for entry, err := range node.Transactions.All(f.Ctx) {
					must(t, err)
					_, err = node.Recovery().Abort(f.Ctx, entry.ID.String())
					must(t, err)
				}
				must(t, node.Recovery().RunOnce(f.Ctx))
				f.WantNoTransactions()
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
			catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))), moorage.KindUnavailable)
			if kept := len(f.Present([]string{file})) > 0; kept != others.kept {
				t.Errorf("its file is there: %t, want %t", kept, others.kept)
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}
