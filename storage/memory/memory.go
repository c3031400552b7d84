// Package memory keeps files in memory. It is a model of storage.Store for tests. The server does
// not use it: even with --store memory, the server keeps its files in a folder. The package accepts
// locations of every scheme.
//
// The package does not know the contents of files.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage/storage"
)

// Store is a storage.Store that lives as long as the process. It is safe for concurrent use.
type Store struct {
	roots []storage.Location // nil if every location is allowed
	files *files
}

// files holds the files of one New. All stores made from it with Within share them.
type files struct {
	now func() time.Time

	// mu guards byName. No other lock is taken while it is held.
	mu     sync.RWMutex
	byName map[string]file // by normalised location
}

// file is immutable.
type file struct {
	body     []byte
	modified time.Time
}

// New returns an empty store in which every location is allowed.
func New() *Store { return NewWithClock(time.Now) }

// NewWithClock is like New, but the modification times of files come from now.
func NewWithClock(now func() time.Time) *Store {
	return &Store{files: &files{now: now, byName: make(map[string]file)}}
}

// Within returns a store of the same files that is limited to files at and below roots, which are
// locations. It returns ErrLocation if a root is malformed.
func (s *Store) Within(roots []string) (*Store, error) {
	parsed := make([]storage.Location, len(roots))
	for i, root := range roots {
		location, err := storage.Parse(root)
		if err != nil {
			return nil, err
		}
		parsed[i] = location
	}
	return &Store{roots: parsed, files: s.files}, nil
}

// Create writes a new file.
func (s *Store) Create(ctx context.Context, location string, body []byte) error {
	return s.CreateAll(ctx, []storage.File{{Location: location, Body: body}})[0]
}

// CreateAll writes new files.
func (s *Store) CreateAll(ctx context.Context, files []storage.File) []error {
	failures := make([]error, len(files))
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	now := s.files.now()
	for i, created := range files {
		failures[i] = s.createLocked(ctx, created.Location, file{created.Body, now})
	}
	return failures
}

// createLocked writes a new file. The files' mu must be held.
func (s *Store) createLocked(ctx context.Context, location string, created file) error {
	name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	if _, ok := s.files.byName[name]; ok {
		return fmt.Errorf("%w: %s", storage.ErrExists, location)
	}
	s.files.byName[name] = created
	return nil
}

// Open returns the content of a file.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	found, err := s.find(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return io.NopCloser(bytes.NewReader(found.body)), found.info(), nil
}

// ReadRange returns a part of a file.
func (s *Store) ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error) {
	found, err := s.find(ctx, location)
	if err != nil {
		return nil, err
	}
	if size := int64(len(found.body)); offset > size || length > size-offset {
		return nil, fmt.Errorf("read %s: %w", location, io.ErrUnexpectedEOF)
	}
	return bytes.Clone(found.body[offset : offset+length]), nil
}

// Stat describes a file.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	found, err := s.find(ctx, location)
	return found.info(), err
}

// Delete removes files.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	var failures []error
	for _, location := range locations {
		name, err := s.locate(ctx, location)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		s.files.mu.Lock()
		delete(s.files.byName, name)
		s.files.mu.Unlock()
	}
	return errors.Join(failures...)
}

// List implements storage.Lister.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	name, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	prefix := strings.TrimSuffix(name, "/") + "/"
	s.files.mu.RLock()
	defer s.files.mu.RUnlock()
	page := storage.Page{Now: s.files.now()}
	for location, found := range s.files.byName {
		if strings.HasPrefix(location, prefix) && location > after {
			page.Files = append(page.Files, storage.Listed{Location: location, Info: found.info()})
		}
	}
	slices.SortFunc(page.Files, func(a, b storage.Listed) int { return cmp.Compare(a.Location, b.Location) })
	if len(page.Files) > limit {
		page.Files = page.Files[:limit]
		page.Next = page.Files[limit-1].Location
	}
	return page, nil
}

// MayBeGone implements storage.Local with a lookup in a map. It returns true for a location that is
// not in its normalised spelling.
func (s *Store) MayBeGone(location string) bool {
	s.files.mu.RLock()
	defer s.files.mu.RUnlock()
	_, ok := s.files.byName[location]
	return !ok
}

func (s *Store) find(ctx context.Context, location string) (file, error) {
	name, err := s.locate(ctx, location)
	if err != nil {
		return file{}, err
	}
	s.files.mu.RLock()
	defer s.files.mu.RUnlock()
	found, ok := s.files.byName[name]
	if !ok {
		return file{}, fmt.Errorf("%w: %s", storage.ErrNotFound, location)
	}
	return found, nil
}

// locate returns the normalised form of location, which must be well-formed and allowed.
func (s *Store) locate(ctx context.Context, location string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", location, context.Cause(ctx))
	}
	parsed, err := storage.ParseFile(location)
	if err != nil {
		return "", err
	}
	if s.roots == nil || slices.ContainsFunc(s.roots, func(root storage.Location) bool {
		return root.Contains(parsed)
	}) {
		return parsed.Normal(location), nil
	}
	return "", fmt.Errorf("%w: %s", storage.ErrOutside, location)
}

func (f file) info() storage.Info {
	return storage.Info{Bytes: int64(len(f.body)), Modified: f.modified}
}

var (
	_ storage.Store  = (*Store)(nil)
	_ storage.Local  = (*Store)(nil)
	_ storage.Lister = (*Store)(nil)
)
