package rows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog/rows/parquet"
	"moorage/storage"
)

// budgetError is the error of a call that would exceed a budget. Its text describes that budget.
type budgetError string

func (e budgetError) Error() string { return string(e) }

var (
	errBytes    = budgetError(fmt.Sprintf("%d MiB were read", BytesMax>>20))
	errRequests = budgetError(fmt.Sprintf("%d requests were sent to the storage", RequestsMax))
)

// files reads the files of a table, within a budget. It is safe for concurrent use.
type files struct {
	store    storage.Store
	within   func(file string) bool
	left     atomic.Int64 // how many bytes may still be read
	requests atomic.Int64 // how many requests may still be sent
}

func newFiles(table Table) *files {
	f := &files{store: table.Files, within: table.Within}
	f.left.Store(BytesMax)
	f.requests.Store(RequestsMax)
	return f
}

// take checks that the file may be read. It deducts one request and its bytes from the budgets.
func (f *files) take(path string, bytes int64) error {
	if !f.within(path) {
		return notShown("the file %s is outside the locations of the table", moorage.Cut(path, 500))
	}
	if f.requests.Add(-1) < 0 {
		return errRequests
	}
	return f.takeBytes(bytes)
}

// takeBytes deducts bytes from the budget.
func (f *files) takeBytes(bytes int64) error {
	if f.left.Add(-bytes) < 0 {
		return errBytes
	}
	return nil
}

// whole returns the content of a file of size bytes.
func (f *files) whole(ctx context.Context, path string, size int64) ([]byte, error) {
	if err := f.take(path, size); err != nil {
		return nil, err
	}
	raw, err := storage.ReadAll(ctx, f.store, path, size)
	return raw, storageError(path, err)
}

// list returns the content of a manifest list. Its size is not in the snapshot.
func (f *files) list(ctx context.Context, path string) ([]byte, error) {
	if err := f.take(path, 0); err != nil {
		return nil, err
	}
	body, info, err := f.store.Open(ctx, path)
	if err != nil {
		return nil, storageError(path, err)
	}
	defer body.Close()
	if err := f.takeBytes(info.Bytes); err != nil {
		return nil, err
	}
	raw := make([]byte, info.Bytes)
	_, err = io.ReadFull(body, raw)
	return raw, storageError(path, err)
}

// part returns a part of a file.
func (f *files) part(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	if err := f.take(path, length); err != nil {
		return nil, err
	}
	raw, err := f.store.ReadRange(ctx, path, offset, length)
	return raw, storageError(path, err)
}

// ranges returns parts of a file.
func (f *files) ranges(ctx context.Context, path string, ranges []parquet.Range) ([][]byte, error) {
	parts := make([][]byte, len(ranges))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for i, r := range ranges {
		if r.Length == 0 {
			continue
		}
		group.Go(func() (err error) {
			parts[i], err = f.part(within, path, r.Offset, r.Length)
			return err
		})
	}
	return parts, group.Wait()
}

// storageError adds a moorage.Kind to an error of the storage.
func storageError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return notShown("the file %s is missing", path)
	case errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		return notShown("the file %s is outside the locations of the table", moorage.Cut(path, 500))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return notShown("the file %s is shorter than its manifest has it", path)
	}
	return fmt.Errorf("read %s: %w", path, err)
}
