package directory_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"moorage/catalog/directory"
	"moorage/storage"
)

// A place that hangs is opened by one borrower at a time. If no borrower waits any more, the
// storage is given back.
func TestBorrowOfWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opens, back atomic.Int64
		answers := make(chan struct{})
		s := directory.New(directory.Config{BorrowStorage: func(storage.Place) (storage.Store, func(), error) {
			opens.Add(1)
			<-answers
			return nil, func() { back.Add(1) }, nil
		}})
		place := storage.Place{Roots: []string{"file:///stuck"}}
		for range 3 {
			if _, _, err := s.Borrow(t.Context(), place); !errors.Is(err, storage.ErrUnavailable) {
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
		_, giveBack, err := s.Borrow(t.Context(), place)
		if giveBack(); err != nil || opens.Load() != 2 || back.Load() != 2 {
			t.Errorf("then: %v, opened %d times, given back %d times", err, opens.Load(), back.Load())
		}
	})
}
