package catalog

import (
	"strings"
	"sync"

	"moorage/storage"
)

// storages keeps one open storage for each set of roots.
type storages struct {
	openRoots func(roots []string) (storage.Store, error)

	// mu guards kept; a leaf. It is held while a storage is opened, which reads no files.
	mu   sync.Mutex
	kept map[string]storage.Store
}

func newStorages(open func(roots []string) (storage.Store, error)) *storages {
	return &storages{openRoots: open, kept: make(map[string]storage.Store)}
}

// open returns the storage that reaches the locations below roots.
func (s *storages) open(roots []string) (storage.Store, error) {
	key := strings.Join(roots, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.kept[key]; ok {
		return store, nil
	}
	store, err := s.openRoots(roots)
	if err != nil {
		return nil, err
	}
	s.kept[key] = store
	return store, nil
}
