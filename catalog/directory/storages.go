package directory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Bounds for storages that do not respond.
const (
	// OpenStorageMax is how long an operation waits for a storage to be opened.
	OpenStorageMax = 10 * time.Second
	// probesAtOnce is the number of warehouses that ProbeAll probes concurrently. probeMax is how
	// long it waits for each.
	probesAtOnce = 8
	probeMax     = 10 * time.Second
)

// storages keeps one open storage for each place. A storage that does not open delays only the
// requests for it.
type storages struct {
	openPlace   func(place storage.Place) (storage.Store, error)
	borrowPlace func(place storage.Place) (storage.Store, func(), error)
	readSecret  func(ctx context.Context, secret storage.Secret) (storage.Secret, error)

	// mu guards the fields below. No other lock is taken while mu is held, and mu is not held while
	// a storage is opened.
	mu       sync.Mutex
	kept     map[string]storage.Store
	openings map[string]*opening // running openings begun by open
	lendings map[string]*opening // running openings begun by borrow
}

// opening is one call that opens a storage. The call may never return.
type opening struct {
	done chan struct{}

	// The fields below are set before done is closed.
	store    storage.Store
	giveBack func() // never nil
	err      error

	ended, left bool // for borrow: open has ended; the borrower has left. Guarded by storages.mu
}

func newStorages(config Config) *storages {
	s := &storages{
		openPlace: config.OpenStorage, borrowPlace: config.BorrowStorage,
		readSecret: func(ctx context.Context, secret storage.Secret) (storage.Secret, error) {
			return readSecret(ctx, config.Ledger, secret)
		},
		kept: make(map[string]storage.Store), openings: make(map[string]*opening), lendings: make(map[string]*opening),
	}
	if s.borrowPlace == nil {
		s.borrowPlace = func(place storage.Place) (storage.Store, func(), error) {
			store, err := s.openPlace(place)
			return store, func() {}, err
		}
	}
	return s
}

// open returns the storage that reaches place. It waits at most OpenStorageMax, and no longer than
// ctx. If the storage is still not open, it returns storage.ErrUnavailable.
func (s *storages) open(ctx context.Context, place storage.Place) (storage.Store, error) {
	key := PlaceKey(place)
	s.mu.Lock()
	store, ok := s.kept[key]
	s.mu.Unlock()
	if ok {
		return store, nil
	}
	ctx, cancel := context.WithTimeout(ctx, OpenStorageMax)
	defer cancel()
	place, err := s.withSecret(ctx, place)
	if err != nil {
		return nil, err
	}
	now := s.joinOpening(key, place)
	if err := now.wait(ctx); err != nil {
		return nil, err
	}
	return now.store, now.err
}

// joinOpening returns the running opening of place, or begins one. The opened storage stays in s.
func (s *storages) joinOpening(key string, place storage.Place) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.kept[key]; ok {
		now := &opening{done: make(chan struct{}), store: store}
		close(now.done)
		return now
	}
	now, ok := s.openings[key]
	if !ok {
		now = begin(func() (storage.Store, func(), error) {
			store, err := s.openPlace(place)
			return store, nil, err
		}, func(now *opening) {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.openings, key)
			if now.err == nil {
				s.kept[key] = now.store
			}
		})
		s.openings[key] = now
	}
	return now
}

// forget makes the next request for a place open it again. Requests that already use the storage
// continue to use it.
func (s *storages) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
}

// begin calls open and then end in a goroutine. Callers may abandon the goroutine, because open may
// hang in a system call that cannot be interrupted. Callers see the result only after end has run.
func begin(open func() (storage.Store, func(), error), end func(*opening)) *opening {
	now := &opening{done: make(chan struct{}), giveBack: func() {}}
	go func() {
		now.err = worker.Safely(context.Background(), func(context.Context) (err error) {
			store, giveBack, err := open()
			if now.store = store; giveBack != nil {
				now.giveBack = giveBack
			}
			return err
		})
		end(now)
		close(now.done)
	}()
	return now
}

// wait waits for the end of an opening. It returns storage.ErrUnavailable if ctx ends first.
func (o *opening) wait(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, ctx.Err())
	}
}

// borrow returns the storage that reaches place for one piece of work, and a function to give it
// back. It returns the kept storage if there is one. Otherwise it opens a storage for this use,
// without creating folders. Use it for places that occur only in records, such as places of deleted
// warehouses: their number is unbounded. It waits as long as open does. The wait includes the time
// for other borrowers of the same place to finish.
func (s *storages) borrow(ctx context.Context, place storage.Place) (
	store storage.Store, giveBack func(), err error) {
	key := PlaceKey(place)
	ctx, cancel := context.WithTimeout(ctx, OpenStorageMax)
	defer cancel()
	if place, err = s.withSecret(ctx, place); err != nil {
		return nil, func() {}, err
	}
	for {
		s.mu.Lock()
		if store, ok := s.kept[key]; ok {
			s.mu.Unlock()
			return store, func() {}, nil
		}
		others, busy := s.lendings[key]
		if busy {
			s.mu.Unlock()
			if err := others.wait(ctx); err != nil {
				return nil, func() {}, err
			}
			continue
		}
		lending := s.lendLocked(key, place)
		s.mu.Unlock()
		if err := lending.wait(ctx); err != nil {
			s.leave(lending)
			return nil, func() {}, err
		}
		return lending.store, lending.giveBack, lending.err
	}
}

// lendLocked begins to open a storage for one borrower. s.mu must be held, and no other opening of
// the place may be running.
func (s *storages) lendLocked(key string, place storage.Place) *opening {
	lending := begin(func() (storage.Store, func(), error) { return s.borrowPlace(place) }, func(now *opening) {
		s.mu.Lock()
		left := now.left
		now.ended = true
		delete(s.lendings, key)
		s.mu.Unlock()
		if left {
			now.giveBack()
		}
	})
	s.lendings[key] = lending
	return lending
}

// leave is called for a borrower that no longer waits. It gives the storage back as soon as the
// storage is open.
func (s *storages) leave(lending *opening) {
	s.mu.Lock()
	lending.left = true
	ended := lending.ended
	s.mu.Unlock()
	if ended {
		lending.giveBack()
	}
}

// Borrow returns the storage that reaches place for one piece of work, and a function to give it
// back. See storages.borrow.
func (d *Directory) Borrow(ctx context.Context, place storage.Place) (storage.Store, func(), error) {
	return d.storages.borrow(ctx, place)
}

// PlaceKey returns a text that is unique for each place. It joins the parts with bytes that no part
// can contain.
func PlaceKey(place storage.Place) string {
	key := strings.Join(place.Roots, "\x00")
	for _, name := range slices.Sorted(maps.Keys(place.Options)) {
		key += "\x01" + name + "\x00" + place.Options[name]
	}
	if place.Secret.ID != "" {
		key += "\x02" + place.Secret.ID + "\x00" + strconv.FormatUint(place.Secret.Version, 10)
	}
	return key
}

// PlaceOf returns the allowed locations of a warehouse's tables, and how to reach their storage.
func (d *Directory) PlaceOf(warehouse registry.Warehouse) storage.Place {
	return storage.Place{
		Roots: warehouse.Roots(), Options: warehouse.Storage,
		Secret: SecretOf(warehouse.Secret.ID, warehouse.ID, warehouse.Secret.Version),
	}
}

// ProbeAll probes the storage of every warehouse, several concurrently. As soon as it knows that a
// storage cannot be reached, it calls unreachable. It never makes two calls of unreachable at the
// same time. A storage that can be reached logs its missing features itself. The error comes from
// the store or from ctx.
func (d *Directory) ProbeAll(ctx context.Context, unreachable func(warehouse, location string, err error)) error {
	const op = "directory.ProbeAll"
	var mu sync.Mutex // one call of unreachable at a time
	var probes errgroup.Group
	probes.SetLimit(probesAtOnce)
	err := d.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Warehouse](record)
		if err != nil {
			return true, err
		}
		probes.Go(func() error {
			err := worker.Safely(ctx, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, probeMax)
				defer cancel()
				place := d.PlaceOf(value)
				place.Warehouse = record.Key.ID
				return d.Probe(ctx, place)
			})
			if err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				unreachable(record.Key.ID, value.Location, err)
			}
			return nil
		})
		return true, ctx.Err()
	})
	_ = probes.Wait() // unreachable has received the failures
	return moorage.Annotate(op, "", cmp.Or(err, ctx.Err()))
}

// Probe checks that the storage of a place can be reached, if the storage supports that.
func (d *Directory) Probe(ctx context.Context, place storage.Place) error {
	store, err := d.storages.open(ctx, place)
	if err != nil {
		return err
	}
	if prober, ok := store.(storage.Prober); ok {
		return prober.Probe(ctx)
	}
	return nil
}
