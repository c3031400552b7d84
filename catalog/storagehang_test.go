package catalog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/storage"
)

// A storage that does not come open, whatever the context says, holds up its own warehouse only. One call opens it for all who ask.
func TestStorageThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opens atomic.Int64
		answers := make(chan struct{})
		f := newFixture(t, func(c *Config) {
			open := c.OpenStorage
			c.OpenStorage = func(place storage.Place) (storage.Store, error) {
				if place.Roots[0] == "file:///stuck" {
					if opens.Add(1) > 1 { // the first is that of CreateWarehouse
						<-answers
					}
				}
				return open(place)
			}
		})
		if _, err := f.CreateWarehouse(f.ctx, WarehouseSpec{Name: "stuck", Location: "file:///stuck"}); err != nil {
			t.Fatal(err)
		}
		f.create("t")
		f.storages = newStorages(f.config) // as after a start
		began := time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(f.ctx, time.Second)
				defer cancel()
				_, err := f.LoadWarehouse(ctx, "stuck")
				wantKind(t, err, moorage.KindUnavailable)
			})
		}
		callers.Go(func() {
			if _, err := f.LoadTable(f.ctx, ident("t")); err != nil || time.Since(began) > 0 {
				t.Errorf("another warehouse: %v after %s", err, time.Since(began))
			}
			_, _, err := f.ListTables(f.ctx, "w", moorage.Namespace{"ns"}, Page{})
			must(t, err)
		})
		callers.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("who gave up after a second was answered after %s", took)
		}
		_, err := f.LoadWarehouse(f.ctx, "stuck")
		wantKind(t, err, moorage.KindUnavailable)
		if took := time.Since(began); took != time.Second+openStorageMax {
			t.Errorf("who does not give up was answered after %s", took)
		}
		if told := f.unreachable(); len(told) != 1 {
			t.Errorf("cannot be reached: %q", told)
		}
		close(answers)
		synctest.Wait()
		if _, err := f.LoadWarehouse(f.ctx, "stuck"); err != nil || opens.Load() != 2 {
			t.Errorf("when it answers: %v, after %d calls, want 2", err, opens.Load())
		}
	})
}

// A place that hangs is opened by one who borrows it at a time, and what nobody waits for any more is given back.
func TestBorrowOfWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opens, back atomic.Int64
		answers := make(chan struct{})
		s := newStorages(Config{BorrowStorage: func(storage.Place) (storage.Store, func(), error) {
			opens.Add(1)
			<-answers
			return nil, func() { back.Add(1) }, nil
		}})
		place := storage.Place{Roots: []string{"file:///stuck"}}
		for range 3 {
			if _, _, err := s.borrow(t.Context(), place); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("answered %v", err)
			}
		}
		if opens.Load() != 1 {
			t.Errorf("opened %d times", opens.Load())
		}
		close(answers)
		synctest.Wait()
		if back.Load() != 1 {
			t.Errorf("given back %d times", back.Load())
		}
		_, giveBack, err := s.borrow(t.Context(), place)
		if giveBack(); err != nil || opens.Load() != 2 || back.Load() != 2 {
			t.Errorf("then: %v, opened %d times, given back %d times", err, opens.Load(), back.Load())
		}
	})
}
