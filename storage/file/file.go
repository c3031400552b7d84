// Package file keeps files in folders of the operating system, and nowhere outside the
// folders that it was given: not by "..", and not by a link.
//
// # What it promises
//
// Create returns after the file, and every folder on the way to it, would
// survive a power cut. A file has its final name only once it is whole, and is found by
// Open and Stat of the same Store only once it is durable.
//
// # What a killed process leaves
//
// Temporary files, beside the files that it was making. Whoever next creates or deletes a file in that folder
// removes them, a minute or more later. A Store looks into each folder until it has found none that is too young, and then no more.
//
// # What it needs
//
// A file system with hard links and with fsync that means it. A folder that others, or another
// Store, remove and make again under the same name while a Store is open may be taken for one
// that is durable already; RemoveEmptyFolder of the Store itself is the way to remove one.
//
// # What it must not know
//
// What is in the files.
package file

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moorage/storage"
)

// Store is a storage.Store, storage.Batcher and storage.Folders over the operating system's files. It is safe
// for concurrent use, also by several processes.
type Store struct {
	roots  []*root
	now    func() time.Time
	atOnce int // how many files one CreateAll works on at a time

	// temporary and serial name files that are being written, as newTemporary does; no two processes draw the same.
	temporary string
	serial    atomic.Uint64
}

// root is an allowed folder and what is known about the folders in it.
type root struct {
	location storage.Location
	files    fileSystem

	// mu orders makers and removers of folders; a leaf. RemoveEmptyFolder holds it while it removes a
	// folder; Create and MakeFolder hold it, shared, to their end: a folder that they found durable
	// cannot be removed and made anew, not yet durable, before they are done.
	mu sync.RWMutex
	// durable are folders, by name, that were there after a sync of all that lead to them.
	durable folders
	// swept are folders, by name, in which no killed process has left anything.
	swept folders
	// writing holds, by name, a *writing for each file that is being made in this process.
	writing sync.Map
}

// New returns a store of the files below roots, which are locations of folders; those that do not
// exist are made. ErrLocation if one is not a file location. Links that lead
// to a root are followed, links inside must be relative and stay inside.
func New(roots []string) (*Store, error) {
	return open(roots, openRoot)
}

// NewExisting is New that makes no folders: below a root that is not there no file is found, none can be made, and there is
// none to delete, also when the folder is made later.
func NewExisting(roots []string) (*Store, error) {
	return openAs(roots, func(folder string) (fileSystem, error) {
		files, err := openRoot(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return absentFS{}, nil
		}
		return files, err
	})
}

func open(roots []string, openFolder func(path string) (fileSystem, error)) (*Store, error) {
	return openAs(roots, func(folder string) (fileSystem, error) { return makeRoot(folder, openFolder) })
}

// openAs returns a store of the files below roots, which openAsRoot opens.
func openAs(roots []string, openAsRoot func(folder string) (fileSystem, error)) (*Store, error) {
	parsed, err := outermost(roots)
	if err != nil {
		return nil, err
	}
	store := &Store{now: time.Now, atOnce: batchAtOnce, temporary: rand.Text()}
	for _, location := range parsed {
		files, err := openAsRoot(location.Path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", location, err), store.Close())
		}
		store.roots = append(store.roots, &root{location: location, files: files})
	}
	return store, nil
}

// outermost parses locations and leaves out those that lie within another.
func outermost(locations []string) ([]storage.Location, error) {
	var roots []storage.Location
	for _, location := range locations {
		parsed, err := storage.Parse(location)
		if err != nil {
			return nil, err
		}
		if parsed.Scheme != storage.SchemeFile {
			return nil, fmt.Errorf("%w: %q: not a file location", storage.ErrLocation, location)
		}
		roots = append(roots, parsed)
	}
	slices.SortFunc(roots, func(a, b storage.Location) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	var outer []storage.Location
	for _, candidate := range roots {
		if !slices.ContainsFunc(outer, func(o storage.Location) bool { return o.Contains(candidate) }) {
			outer = append(outer, candidate)
		}
	}
	return outer, nil
}

// Close gives up the roots. Files that are open stay so; every later call fails.
func (s *Store) Close() error {
	var failures []error
	for _, root := range s.roots {
		failures = append(failures, root.files.Close())
	}
	return errors.Join(failures...)
}

// Open returns the content of a file.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	if root.isHidden(name) {
		return nil, storage.Info{}, notFile(location)
	}
	// Without O_NONBLOCK a named pipe would be waited for.
	file, err := root.files.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, storage.Info{}, translate(location, err)
	}
	found, err := file.Stat()
	if err != nil || !found.Mode().IsRegular() || root.isHidden(name) { // hidden since
		if err == nil {
			err = notFile(location)
		}
		return nil, storage.Info{}, errors.Join(translate(location, err), file.Close())
	}
	return file, info(found), nil
}

// Stat describes a file.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return storage.Info{}, err
	}
	if root.isHidden(name) {
		return storage.Info{}, notFile(location)
	}
	found, err := root.files.Stat(name)
	if err != nil {
		return storage.Info{}, translate(location, err)
	}
	if !found.Mode().IsRegular() || root.isHidden(name) { // hidden since
		return storage.Info{}, notFile(location)
	}
	return info(found), nil
}

// MayBeGone implements storage.Local.
func (s *Store) MayBeGone(location string) bool {
	root, name, err := s.rootOf(location)
	return err != nil || !root.files.Seen(name) || root.isHidden(name)
}

// Delete removes files, with the checksum files that Hadoop keeps beside those it writes. What is there
// and is no file, such as a folder, is left. A power cut may bring back what it removed. What killed processes left beside
// the files is removed too, as far as it can be.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	var failures []error
	for _, location := range locations {
		if err := s.remove(ctx, location); err != nil {
			failures = append(failures, err)
		}
	}
	s.sweepAround(locations)
	return errors.Join(failures...)
}

// remove deletes the file at location. Of a link to a file the link is removed.
func (s *Store) remove(ctx context.Context, location string) error {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	found, err := root.files.Stat(name)
	if err != nil || !found.Mode().IsRegular() {
		return ignoreMissing(translate(location, err))
	}
	// First, because once the file is gone nobody asks for its checksum again.
	err = ignoreMissing(translate(location, root.files.Remove(checksumOf(name))))
	if err != nil {
		return err
	}
	return ignoreMissing(translate(location, root.files.Remove(name)))
}

// checksumOf returns the name of the file in which Hadoop's local file system keeps the checksum
// of the file called name.
func checksumOf(name string) string { return path.Join(path.Dir(name), "."+path.Base(name)+".crc") }

func ignoreMissing(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// locate returns the root that location lies in, and its name there.
func (s *Store) locate(ctx context.Context, location string) (*root, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", location, err)
	}
	return s.rootOf(location)
}

// rootOf returns the root that location is in, and its name there.
func (s *Store) rootOf(location string) (*root, string, error) {
	parsed, err := storage.Parse(location)
	if err != nil {
		return nil, "", err
	}
	for _, root := range s.roots {
		if root.location.Contains(parsed) {
			name := strings.TrimPrefix(strings.TrimPrefix(parsed.Path, root.location.Path), "/")
			return root, cmp.Or(name, "."), nil
		}
	}
	return nil, "", fmt.Errorf("%w: %s", storage.ErrOutside, location)
}

// translate gives the errors of the operating system the port's meaning.
func translate(location string, err error) error {
	switch {
	case err == nil:
		return nil
	case isEscape(err):
		return fmt.Errorf("%w: %s: %w", storage.ErrOutside, location, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %s: %w", storage.ErrNotFound, location, err)
	}
	return fmt.Errorf("%s: %w", location, err)
}

func notFile(location string) error {
	return fmt.Errorf("%w: %s is not a regular file", storage.ErrNotFound, location)
}

func info(found fs.FileInfo) storage.Info {
	return storage.Info{Bytes: found.Size(), Modified: found.ModTime()}
}

var (
	_ storage.Store   = (*Store)(nil)
	_ storage.Batcher = (*Store)(nil)
	_ storage.Folders = (*Store)(nil)
	_ storage.Local   = (*Store)(nil)
)
