package directory_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/warehouses"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// A storage that hangs while it is opened, and ignores its context, delays only its own warehouse.
// A single call opens it for all requests.
func TestStorageThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opens atomic.Int64
		answers := make(chan struct{})
		f := catalogkit.New(t, func(c *catalog.Config) {
			open := c.OpenStorage
			c.OpenStorage = func(place storage.Place) (storage.Store, error) {
				if place.Roots[0] == "file:///stuck" {
					if opens.Add(1) > 1 { // the first call is from CreateWarehouse
						<-answers
					}
				}
				return open(place)
			}
		})
		if _, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "stuck", Location: "file:///stuck"}); err != nil {
			t.Fatal(err)
		}
		f.Create("t")
		f.Instance = f.Other(f.Store) // as after a restart
		began := time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(f.Ctx, time.Second)
				defer cancel()
				_, err := f.LoadWarehouse(ctx, "stuck")
				catalogkit.WantKind(t, err, moorage.KindUnavailable)
			})
		}
		callers.Go(func() {
			if _, err := f.LoadTable(f.Ctx, ident("t")); err != nil || time.Since(began) > 0 {
				t.Errorf("another warehouse: %v after %s", err, time.Since(began))
			}
			_, _, err := f.ListTables(f.Ctx, "w", moorage.Namespace{"ns"}, moorage.Page{})
			must(t, err)
		})
		callers.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("who gave up after a second was answered after %s", took)
		}
		_, err := f.LoadWarehouse(f.Ctx, "stuck")
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
		if took := time.Since(began); took != time.Second+directory.OpenStorageMax {
			t.Errorf("the call that does not give up was answered after %s", took)
		}
		if unreachable := unreachable(f); len(unreachable) != 1 {
			t.Errorf("cannot be reached: %q", unreachable)
		}
		close(answers)
		synctest.Wait()
		if _, err := f.LoadWarehouse(f.Ctx, "stuck"); err != nil || opens.Load() != 2 {
			t.Errorf("when it answers: %v, after %d calls, want 2", err, opens.Load())
		}
	})
}
