package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"moorage"
	"moorage/registry"
	"moorage/storage"
)

// storages keeps one open storage for each place.
type storages struct {
	openPlace   func(place storage.Place) (storage.Store, error)
	borrowPlace func(place storage.Place) (storage.Store, func(), error)

	// mu guards kept; a leaf. It is held while a storage is opened, which reads no files.
	mu   sync.Mutex
	kept map[string]storage.Store
}

func newStorages(config Config) *storages {
	s := &storages{openPlace: config.OpenStorage, borrowPlace: config.BorrowStorage, kept: make(map[string]storage.Store)}
	if s.borrowPlace == nil {
		s.borrowPlace = func(place storage.Place) (storage.Store, func(), error) {
			store, err := s.openPlace(place)
			return store, func() {}, err
		}
	}
	return s
}

// open returns the storage that reaches place.
func (s *storages) open(place storage.Place) (storage.Store, error) {
	key := placeKey(place)
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.kept[key]; ok {
		return store, nil
	}
	store, err := s.openPlace(place)
	if err != nil {
		return nil, err
	}
	s.kept[key] = store
	return store, nil
}

// borrow returns the storage that reaches place for one piece of work, and how to give it back: the one that is kept, or else
// one that is opened for this alone and makes no folders. It is for places that only records name, such as those of a
// warehouse that is gone: of those there is no end.
func (s *storages) borrow(place storage.Place) (store storage.Store, giveBack func(), err error) {
	s.mu.Lock()
	store, ok := s.kept[placeKey(place)]
	s.mu.Unlock()
	if ok {
		return store, func() {}, nil
	}
	return s.borrowPlace(place)
}

// placeKey joins what a place is made of with bytes that none of it may contain.
func placeKey(place storage.Place) string {
	key := strings.Join(place.Roots, "\x00")
	for _, name := range slices.Sorted(maps.Keys(place.Options)) {
		key += "\x01" + name + "\x00" + place.Options[name]
	}
	return key
}

// placeOf returns where the tables of a warehouse may live, and how that is reached.
func (c *Catalog) placeOf(warehouse registry.Warehouse) storage.Place {
	return storage.Place{Roots: c.roots(warehouse), Options: warehouse.Storage}
}

// ProbeStorage checks that the storage of every warehouse can be reached. It returns, joined, an error for
// each that cannot; what a storage lacks without being useless it logs itself.
func (c *Catalog) ProbeStorage(ctx context.Context) error {
	const op = "catalog.ProbeStorage"
	var failures []error
	err := c.scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		value, err := decode[registry.Warehouse](record)
		if err != nil {
			return true, err
		}
		if err := c.probe(ctx, value); err != nil {
			failures = append(failures, fmt.Errorf("warehouse %s at %s: %w", record.Key.ID, value.Location, err))
		}
		return true, nil
	})
	return moorage.Annotate(op, "", errors.Join(append(failures, err)...))
}

// probe checks that a warehouse's storage can be reached, where that is a question.
func (c *Catalog) probe(ctx context.Context, warehouse registry.Warehouse) error {
	store, err := c.storages.open(c.placeOf(warehouse))
	if err != nil {
		return err
	}
	if remote, ok := store.(storage.Remote); ok {
		return remote.Probe(ctx)
	}
	return nil
}
