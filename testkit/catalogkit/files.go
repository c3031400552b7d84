package catalogkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit"
)

// MetadataFiles makes n commits to a table. It returns the metadata files of the new versions,
// oldest first.
func (f *Fixture) MetadataFiles(name string, n int) []string {
	f.T.Helper()
	var locations []string
	for i := range n {
		table, err := f.Commit(f.Ctx, testkit.Ident(name), SetProperty(f.T, "n", fmt.Sprint(i)))
		if err != nil {
			f.T.Fatal(err)
		}
		locations = append(locations, table.MetadataLocation)
	}
	return locations
}

// Present returns the locations at which a file exists.
func (f *Fixture) Present(locations []string) []string {
	f.T.Helper()
	return slices.DeleteFunc(slices.Clone(locations), func(location string) bool {
		_, err := f.Files.Stat(f.Ctx, location)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			f.T.Fatal(err)
		}
		return err != nil
	})
}

// FileCount keeps track of the existing files.
type FileCount struct {
	Mu    sync.Mutex // guards There; a leaf
	There map[string]bool
}

// Set records whether a file exists at location.
func (c *FileCount) Set(location string, there bool) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if there {
		c.There[location] = true
	} else {
		delete(c.There, location)
	}
}

// CountedFiles is a storage whose files are counted.
type CountedFiles struct {
	storage.Store
	Count *FileCount
}

// Create implements storage.Store.
func (c *CountedFiles) Create(ctx context.Context, location string, body []byte) error {
	err := c.Store.Create(ctx, location, body)
	if err == nil {
		c.Count.Set(location, true)
	}
	return err
}

// Delete implements storage.Store.
func (c *CountedFiles) Delete(ctx context.Context, locations ...string) error {
	for _, location := range locations {
		c.Count.Set(location, false)
	}
	return c.Store.Delete(ctx, locations...)
}

// RaceClient is the action of one client in a race.
type RaceClient func(ctx context.Context, c catalog.Verbs) error

// filesIn returns the files that lie within claims.
func filesIn(files map[string]bool, claims []string) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(files)), func(location string) bool {
		return !documents.WithinClaims(claims, location)
	})
}

// WantOnlyNamedFiles fails the test if a file exists that no live or dropped table refers to.
func (f *Fixture) WantOnlyNamedFiles(files *FileCount) {
	f.T.Helper()
	unnamed := maps.Clone(files.There)
	err := f.Ledger.Scan(f.Ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			return false, err
		}
		delete(unnamed, pointer.MetadataLocation)
		document, err := f.Documents().Of(f.Ctx, documents.RefOf(pointer, f.Files))
		if table, ok := document.(*metadata.Document); ok {
			for _, entry := range table.MetadataLog() {
				delete(unnamed, entry.MetadataLocation)
			}
			return true, err
		}
		earlier := filesIn(unnamed, pointer.Claims)
		if len(earlier) == documents.VersionNumber(pointer.MetadataLocation) {
			for _, location := range earlier { // one of each version: a view names none but its last
				delete(unnamed, location)
			}
		}
		return true, err
	})
	if err != nil {
		f.T.Fatal(err)
	}
	for location := range unnamed {
		f.T.Errorf("nothing names %s", location)
	}
}

// lateReads runs the hook after a file was opened. The reader gets the content from before the
// hook.
type lateReads struct {
	storage.Store
	hook *Hook
}

func (f lateReads) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	body, info, err := f.Store.Open(ctx, location)
	f.hook.Run()
	return body, info, err
}

// AfterOpen makes the storage of a fixture run the hook after a file was opened. The reader gets
// the content from before the hook.
func (h *Hook) AfterOpen(config *catalog.Config) {
	WrapStorage(config, func(inner storage.Store) storage.Store { return lateReads{inner, h} })
}

// Hook calls a function once, when the next file is about to be written, read or deleted. Which of
// these it is depends on the method with which the hook was installed.
type Hook struct {
	mu sync.Mutex // guards do; a leaf
	do func()
}

// Once sets the function to call.
func (h *Hook) Once(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do = do
}

// Run calls the function that was set, unless it was already called.
func (h *Hook) Run() {
	h.mu.Lock()
	do := h.do
	h.do = nil
	h.mu.Unlock()
	if do != nil {
		do()
	}
}

// OnCreate makes the storage of a fixture run the hook before it writes a file.
func (h *Hook) OnCreate(config *catalog.Config) {
	WrapStorage(config, func(inner storage.Store) storage.Store { return &hookedFiles{inner, h} })
}

type hookedFiles struct {
	storage.Store
	hook *Hook
}

func (f *hookedFiles) Create(ctx context.Context, location string, body []byte) error {
	f.hook.Run()
	return f.Store.Create(ctx, location, body)
}

// OnOpen makes the storage of a fixture run the hook before it opens a file.
func (h *Hook) OnOpen(config *catalog.Config) {
	WrapStorage(config, func(inner storage.Store) storage.Store { return &hookedReads{inner, h} })
}

type hookedReads struct {
	storage.Store
	hook *Hook
}

func (f *hookedReads) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	f.hook.Run()
	return f.Store.Open(ctx, location)
}

// OnDelete makes the storage of a fixture run the hook before it deletes files.
func (h *Hook) OnDelete(config *catalog.Config) {
	WrapStorage(config, func(inner storage.Store) storage.Store { return &hookedDeletes{inner, h} })
}

type hookedDeletes struct {
	storage.Store
	hook *Hook
}

func (f *hookedDeletes) Delete(ctx context.Context, locations ...string) error {
	f.hook.Run()
	return f.Store.Delete(ctx, locations...)
}

// WrapStorage wraps each storage of a fixture with wrap.
func WrapStorage(config *catalog.Config, wrap func(storage.Store) storage.Store) {
	open := config.OpenStorage
	config.OpenStorage = func(place storage.Place) (storage.Store, error) {
		inner, err := open(place)
		if err != nil {
			return nil, err
		}
		return wrap(inner), nil
	}
}

// CountFiles makes the storage of a fixture keep track of the existing files in count.
func CountFiles(count *FileCount) func(*catalog.Config) {
	return func(config *catalog.Config) {
		WrapStorage(config, func(inner storage.Store) storage.Store { return &CountedFiles{inner, count} })
	}
}
