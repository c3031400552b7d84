package patience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"moorage/maintenance/patience"
	"moorage/storage"
)

// TestBatch: no file is deleted later than the limit after the look that let it go, and all are
// deleted unless one alone takes longer. Time in which the look reads much leads to another look.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		each, looks time.Duration // of a file, and of the first look
		fails       bool
	}{
		"fast":        {each: time.Millisecond},
		"slow":        {each: time.Second},
		"very slow":   {each: 15 * time.Second},
		"too slow":    {each: 21 * time.Second, fails: true},
		"a long look": {each: 15 * time.Second, looks: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				files := make([]int, 1000)
				for i := range files {
					files[i] = i
				}
				gone := make(map[int]bool)
				looks := 0
				err := patience.Batch(t.Context(), patience.LookMax, files, func(part []int, look func() context.Context) error {
					within, looked := look(), time.Now()
					if looks++; looks == 1 {
						time.Sleep(row.looks)
					}
					for _, file := range part {
						if gone[file] {
							continue
						}
						timer := time.NewTimer(row.each)
						select {
						case <-within.Done():
							return within.Err()
						case <-timer.C:
						}
						if gone[file] = true; time.Since(looked) > patience.LookMax {
							t.Fatalf("a file went %s after the look", time.Since(looked))
						}
					}
					return nil
				})
				if row.fails != errors.Is(err, storage.ErrUnavailable) || row.fails != (len(gone) < len(files)) {
					t.Errorf("%d of %d files are gone, %v", len(gone), len(files), err)
				}
			})
		})
	}
	other := errors.New("another")
	if err := patience.Batch(t.Context(), time.Hour, []int{1, 2}, func([]int, func() context.Context) error { return other }); !errors.Is(err, other) {
		t.Error(err)
	}
}
