package commit_test

import (
	"bytes"
	"context"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/internal/worker"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// panickingWrites is a storage that panics on the creation of a file whose content includes fatal.
type panickingWrites struct{ storage.Store }

const fatal = "fatal"

func (f *panickingWrites) Create(ctx context.Context, location string, body []byte) error {
	if bytes.Contains(body, []byte(fatal)) {
		panic(fatal)
	}
	return f.Store.Create(ctx, location, body)
}

// panickingBatches is panickingWrites with creation of several files at once. Like real storages,
// it recovers panics in its goroutines.
type panickingBatches struct{ panickingWrites }

func (f *panickingBatches) CreateAll(ctx context.Context, files []storage.File) []error {
	failures := make([]error, len(files))
	for i, file := range files {
		failures[i] = worker.Safely(ctx, func(ctx context.Context) error { return f.Create(ctx, file.Location, file.Body) })
	}
	return failures
}

// A write of a file panics in its own goroutine. Then the file was not written and the transaction
// has not happened. The transaction gets an answer, and the process continues.
func TestTransactionPanicsAtWrite(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(storage.Store) storage.Store{
		"each alone": func(inner storage.Store) storage.Store { return &panickingWrites{inner} },
		"together":   func(inner storage.Store) storage.Store { return &panickingBatches{panickingWrites{inner}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, func(c *catalog.Config) { catalogkit.WrapStorage(c, wrap) })
			f.Create("a")
			f.Create("b")
			catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", fatal))), moorage.KindInternal)
			for _, name := range []string{"a", "b"} {
				f.WantProperty(name, "n", "")
			}
			f.WantNoTransactions()
			must(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "2")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "2"))))
			f.WantClean()
		})
	}
}
