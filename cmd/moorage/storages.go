package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"moorage/storage"
	"moorage/storage/file"
)

// storages opens the storage of each set of roots, by their scheme, and closes what it opened. It is
// safe for concurrent use.
type storages struct {
	mu     sync.Mutex // guards the field below; leaf
	opened []io.Closer
}

// open returns the storage that reaches the locations below roots.
func (s *storages) open(roots []string) (storage.Store, error) {
	for _, root := range roots {
		if err := checkLocation(root); err != nil {
			return nil, err
		}
	}
	store, err := file.New(roots)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, store)
	return store, nil
}

// close closes what was opened.
func (s *storages) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var faults []error
	for _, store := range s.opened {
		faults = append(faults, store.Close())
	}
	s.opened = nil
	return errors.Join(faults...)
}

// checkLocation says what is wrong with a location that a user gave.
func checkLocation(uri string) error {
	location, err := storage.Parse(uri)
	if err != nil {
		return err
	}
	if location.Scheme != storage.SchemeFile {
		return fmt.Errorf("%q: only locations on local disks are supported, such as file:///srv/lake", uri)
	}
	return nil
}

// folderLocation returns a folder's location as the server spells it. Nothing is percent-encoded, because
// no engine decodes what is behind file://.
func folderLocation(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	location := storage.Location{Scheme: storage.SchemeFile, Path: filepath.ToSlash(absolute)}.String()
	return location, checkLocation(location)
}
