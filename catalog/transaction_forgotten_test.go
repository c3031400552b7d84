package catalog_test

import (
	"context"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// An operator has made the catalog forget a transaction, so its files were left. When the
// coordinator continues afterwards, it deletes none of them, because the operator may have
// registered one.
func TestForgottenCoordinatorDeletesNothing(t *testing.T) {
	t.Parallel()
	f, store, node, _ := newHeldFixture(t, isOf(gate.Transaction))
	f.Create("a")
	f.Create("b")
	answered := make(chan error, 1)
	go func() {
		answered <- f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1")))
	}()
	select {
	case <-store.held:
	case err := <-answered:
		t.Fatalf("answered %v without being held", err)
	}
	var entry txlog.Entry
	for found, err := range node.Transactions.All(f.Ctx) {
		must(t, err)
		entry = found
	}
	giveUp(f, entry)
	aborted, err := node.Recovery().Abort(f.Ctx, entry.ID.String())
	if err != nil || !aborted.Forgotten {
		t.Fatalf("got %+v (%v)", aborted, err)
	}
	f.Clock.Advance(3 * time.Minute) // the file's name is fresh until then
	_, err = node.RegisterTable(f.Ctx, ident("a"), catalog.RegisterRequest{MetadataLocation: entry.Files[0], Overwrite: true})
	must(t, err)
	close(store.release)
	catalogkit.WantKind(t, <-answered, moorage.KindUnavailable)
	wantFiles(f, entry, entry.Files...)
	f.WantProperty("a", "n", "1")
	f.WantClean()
}

// laterStore calls later once, between an Apply that commits a transaction and the answer.
type laterStore struct {
	registry.Store
	later func()
}

func (s *laterStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := s.Store.Apply(ctx, batch)
	if later := s.later; later != nil && err == nil && isOf(gate.Transaction)(batch) {
		s.later = nil
		later()
	}
	return etags, err
}

// A coordinator continues after its transaction was committed. It does not delete the files of an
// earlier try that an operator has made the catalog forget.
func TestForgottenSurplusStays(t *testing.T) {
	t.Parallel()
	store, files := new(laterStore), &catalogkit.Hook{}
	f := catalogkit.New(t, files.OnCreate, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	f.Create("a")
	f.Create("b")
	node := f.Other(store.Store)
	files.Once(func() { // so that the first try fails
		_, err := node.Commit(f.Ctx, ident("a"), catalogkit.SetProperty(t, "other", "1"))
		must(t, err)
	})
	var left recovery.Aborted
	store.later = func() {
		for entry, err := range node.Transactions.All(f.Ctx) {
			must(t, err)
			giveUp(f, entry)
			left, err = node.Recovery().Abort(f.Ctx, entry.ID.String())
			must(t, err)
		}
	}
	must(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))))
	if got := f.Present(left.Left); left.Was != registry.StateCommitted || len(got) != 2 {
		t.Errorf("of %+v there are %q", left, got)
	}
	f.WantNoTransactions()
	f.WantClean()
}
