package jobs

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"moorage/storage"
	memorystorage "moorage/storage/memory"
)

// slow is a storage in which each call, and each read of a part of a file, takes a while. A call
// ends early when its context ends.
type slow struct {
	*memorystorage.Store
	takes time.Duration
}

func (s *slow) wait(ctx context.Context) error {
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (s *slow) Create(ctx context.Context, location string, body []byte) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.Create(ctx, location, body)
}

func (s *slow) Stat(ctx context.Context, location string) (storage.Info, error) {
	if err := s.wait(ctx); err != nil {
		return storage.Info{}, err
	}
	return s.Store.Stat(ctx, location)
}

func (s *slow) Delete(ctx context.Context, locations ...string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, locations...)
}

func (s *slow) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	if err := s.wait(ctx); err != nil {
		return storage.Page{}, err
	}
	return s.Store.List(ctx, folder, after, limit)
}

func (s *slow) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if err := s.wait(ctx); err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := s.Store.Open(ctx, location)
	return &slowBody{body, s, ctx}, info, err
}

type slowBody struct {
	io.ReadCloser
	slow *slow
	ctx  context.Context
}

func (b *slowBody) Read(into []byte) (int, error) {
	if err := b.slow.wait(b.ctx); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(into[:min(len(into), 1)])
}

// TestPatience: every call of a hanging storage ends after the limit. A call that makes progress
// within the limit does not end, however long it takes in all.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hanging := &slow{Store: memorystorage.New(), takes: time.Nanosecond}
		files := patientStore(hanging, AnswerMax)
		const at = "file:///wh/a"
		if err := files.Create(t.Context(), at, []byte("content")); err != nil {
			t.Fatal(err)
		}
		calls := map[string]func() error{
			"create": func() error { return files.Create(t.Context(), "file:///wh/b", nil) },
			"stat":   func() error { _, err := files.Stat(t.Context(), at); return err },
			"delete": func() error { return files.Delete(t.Context(), "file:///wh/c") },
			"list": func() error {
				_, err := files.(storage.Lister).List(t.Context(), "file:///wh", "", 10)
				return err
			},
			"open": func() error {
				body, _, err := files.Open(t.Context(), at)
				if err == nil {
					err = body.Close()
				}
				return err
			},
		}
		for name, call := range calls {
			for _, row := range []struct {
				takes time.Duration
				stall bool
			}{{AnswerMax - time.Second, false}, {time.Hour, true}} {
				hanging.takes = row.takes
				began := time.Now()
				err := call()
				if errors.Is(err, ErrStalled) != row.stall || errors.Is(err, storage.ErrUnavailable) != row.stall {
					t.Errorf("%s that takes %s: %v", name, row.takes, err)
				}
				if took := time.Since(began); row.stall && took != AnswerMax {
					t.Errorf("%s hangs for %s", name, took)
				}
			}
		}
		hanging.takes = AnswerMax - time.Second
		body, _, err := files.Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the reader is busy elsewhere
		if content, err := io.ReadAll(body); err != nil || string(content) != "content" {
			t.Errorf("a slow file is read as %q, %v", content, err)
		}
		if body, _, err = files.Open(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		hanging.takes = time.Hour
		if _, err := io.ReadAll(body); !errors.Is(err, ErrStalled) {
			t.Errorf("a file that hangs: %v", err)
		}
	})
}

// TestBatch: no file is deleted later than the limit after its check. All files are deleted unless
// a single one takes longer than the limit. A check that itself takes too long is repeated.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		each, looks time.Duration // time for a file, and for the first check
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
				err := deleteInTime(t.Context(), checkMax, files, func(part []int, look func() context.Context) error {
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
						if gone[file] = true; time.Since(looked) > checkMax {
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
	if err := deleteInTime(t.Context(), time.Hour, []int{1, 2}, func([]int, func() context.Context) error { return other }); !errors.Is(err, other) {
		t.Error(err)
	}
}
