package catalog_test

import (
	"context"
	"io"
	"sync"

	"moorage/catalog"
	"moorage/storage"
)

// hook does something once, when the next file is about to be written, read or deleted. It is set
// up for one of the three.
type hook struct {
	mu sync.Mutex // guards do; a leaf
	do func()
}

// once sets what is done.
func (h *hook) once(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do = do
}

// run does what was set, if it was not done yet.
func (h *hook) run() {
	h.mu.Lock()
	do := h.do
	h.do = nil
	h.mu.Unlock()
	if do != nil {
		do()
	}
}

// onCreate makes the storage of a fixture run the hook.
func (h *hook) onCreate(config *catalog.Config) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return &hookedFiles{inner, h} })
}

type hookedFiles struct {
	storage.Store
	hook *hook
}

func (f *hookedFiles) Create(ctx context.Context, location string, body []byte) error {
	f.hook.run()
	return f.Store.Create(ctx, location, body)
}

// onOpen makes the storage of a fixture run the hook.
func (h *hook) onOpen(config *catalog.Config) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return &hookedReads{inner, h} })
}

type hookedReads struct {
	storage.Store
	hook *hook
}

func (f *hookedReads) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	f.hook.run()
	return f.Store.Open(ctx, location)
}

// onDelete makes the storage of a fixture run the hook.
func (h *hook) onDelete(config *catalog.Config) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return &hookedDeletes{inner, h} })
}

type hookedDeletes struct {
	storage.Store
	hook *hook
}

func (f *hookedDeletes) Delete(ctx context.Context, locations ...string) error {
	f.hook.run()
	return f.Store.Delete(ctx, locations...)
}

// wrapStorage puts wrap around each storage of a fixture.
func wrapStorage(config *catalog.Config, wrap func(storage.Store) storage.Store) {
	open := config.OpenStorage
	config.OpenStorage = func(place storage.Place) (storage.Store, error) {
		inner, err := open(place)
		if err != nil {
			return nil, err
		}
		return wrap(inner), nil
	}
}

// countFiles makes the storage of a fixture note in count which files there are.
func countFiles(count *fileCount) func(*catalog.Config) {
	return func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return &countedFiles{inner, count} })
	}
}
