package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/management"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
	"moorage/rest"
	"moorage/storage"
)

// node is a catalog with the parts that it is made of.
type node struct {
	store    registry.Store
	locks    nodeLocks
	storages *storages
	catalog  *catalog.Catalog
	outgrown *outgrown
	handler  http.Handler
	metrics  *prometheus.Registry // that the handler shows
}

// defaultWarehouse is the warehouse that the first start makes, and that requests without a
// prefix mean.
const defaultWarehouse = rest.DefaultWarehouse

// openNode opens the store, which it makes if it is to be in a folder and is not there, and a catalog over it.
func openNode(ctx context.Context, c config, logger *slog.Logger) (*node, error) {
	// Who else may look into it is for the umask to say: engines may run as other users.
	if err := os.MkdirAll(c.Data, 0o777); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := openStore(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	return newNodeOver(ctx, c, store, logger)
}

// newNodeOver is newNode that closes the store if it fails.
func newNodeOver(ctx context.Context, c config, store registry.Store, logger *slog.Logger) (*node, error) {
	made, err := newNode(ctx, c, store, logger)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return made, nil
}

// openStopped opens a database, or the store of a server that is stopped; it makes nothing that is not there.
func openStopped(ctx context.Context, c config, env environment) (*node, error) {
	store, err := openStoppedStore(ctx, c, env)
	if err != nil {
		return nil, err
	}
	return newNodeOver(ctx, c, store, stoppedLogger(env))
}

// openStoppedStore opens the store of openStopped.
func openStoppedStore(ctx context.Context, c config, env environment) (registry.Store, error) {
	switch {
	case c.Store == storeMemory:
		return nil, &usageError{faults: []string{"--store: a store in memory is gone when its server ends"}}
	case c.inDatabase(), pebble.IsUnfinished(c.storeDir()): // which openStore refuses, be it there or not
	default:
		there, err := pebble.Exists(c.storeDir())
		if err != nil {
			return nil, fmt.Errorf("look for the store: %w", err)
		}
		if !there {
			return nil, fmt.Errorf("there is no store in %s: moorage serve makes it; --data or --store says where it is", c.storeDir())
		}
	}
	opened, err := openStore(ctx, c, stoppedLogger(env))
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w: stop the server first", err)
	}
	return opened, err
}

// stoppedLogger returns the log of commands that do not serve.
func stoppedLogger(env environment) *slog.Logger {
	return newLogger(config{LogLevel: slog.LevelWarn}, env.stderr)
}

// openStore opens what --store names.
func openStore(ctx context.Context, c config, logger *slog.Logger) (registry.Store, error) {
	switch {
	case c.Store == storeMemory:
		return memory.New(rand.Reader), nil
	case c.inDatabase():
		if err := awaitDatabase(ctx, c, logger); err != nil {
			return nil, err
		}
		if c.Migrate {
			if _, err := postgres.Migrate(ctx, c.Store); err != nil {
				return nil, err
			}
		}
		return openDatabase(ctx, c, logger)
	}
	if pebble.IsUnfinished(c.storeDir()) {
		return nil, fmt.Errorf("%s is of a backup that did not end, which may delete files of the store that it is a copy of; it can be removed", c.storeDir())
	}
	return pebble.Open(c.storeDir(), pebble.Options{Random: rand.Reader, Logger: logger})
}

// openDatabase opens the database that --store names, and warns of settings that would lose commits.
func openDatabase(ctx context.Context, c config, logger *slog.Logger) (registry.Store, error) {
	store, err := postgres.Open(ctx, c.Store, postgres.Options{Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	warnings, err := store.Warnings(ctx)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	return store, nil
}

// newNode makes the catalog and its HTTP handler over store.
func newNode(ctx context.Context, c config, opened registry.Store, logger *slog.Logger) (*node, error) {
	metrics := newMetrics()
	store := meterStore(opened, metrics)
	locks, err := openLocks(ctx, c, metrics, logger)
	if err != nil {
		return nil, err
	}
	s3Options := c.s3Options()
	s3Options.Logger = logger
	files := newStorages(s3Options)
	made, err := catalog.New(catalog.Config{
		Store:               store,
		Locks:               locks,
		OpenStorage:         files.open,
		BorrowStorage:       files.borrow,
		AllowedLocations:    c.AllowLocations,
		Random:              rand.Reader,
		Logger:              logger,
		DocumentCacheBytes:  c.CacheBytes,
		UndropWindow:        c.UndropWindow,
		IdempotencyLifetime: c.KeyLifetime,
		ChangeRetention:     c.ChangeRetention,
		TransactionLockWait: c.TransactionWait,
		AbortPending:        !c.inDatabase(),
	})
	if err != nil {
		return nil, errors.Join(err, locks.close())
	}
	watch, err := watchStore(opened, logger)
	if err != nil {
		return nil, errors.Join(err, locks.close())
	}
	meterRecovery(metrics, made.RecoveryStats)
	meterPurges(metrics, made.PurgeStats)
	handler := web.New(web.Config{
		Logger:       logger,
		Registry:     metrics,
		Ready:        store.Healthy,
		Refusal:      watch.refusal,
		Hosts:        c.hosts(),
		BodyBytesMax: c.BodyBytesMax,
	})
	rest.Mount(handler, rest.Config{Catalog: made, IdempotencyLifetime: c.KeyLifetime})
	management.Mount(handler, management.Config{Catalog: made, Backup: newBackups(c, opened)})
	return &node{store: store, locks: locks, storages: files, catalog: made, outgrown: watch, handler: handler, metrics: metrics}, nil
}

// ensureDefaultWarehouse returns the warehouse default, and makes it if there is none: where
// --default-location says, or in the folder warehouse below the data.
func (n *node) ensureDefaultWarehouse(ctx context.Context, c config, logger *slog.Logger) (catalog.Warehouse, error) {
	location, err := storage.Trim(c.DefaultLocation), error(nil)
	if location == "" {
		if location, err = folderLocation(filepath.Join(c.Data, "warehouse")); err != nil {
			return catalog.Warehouse{}, err
		}
	}
	found, err := n.catalog.LoadWarehouse(ctx, defaultWarehouse)
	if moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		if err == nil && found.Location != location {
			// Tables name their files by absolute locations, so moving the folder would not do.
			logger.Warn("the warehouse default was made elsewhere and stays there", "location", found.Location)
		}
		return found, err
	}
	made, err := n.catalog.CreateWarehouse(ctx, catalog.WarehouseSpec{Name: defaultWarehouse, Location: location})
	if moorage.KindOf(err) == moorage.KindAlreadyExists { // by a node that started at the same time
		return n.catalog.LoadWarehouse(ctx, defaultWarehouse)
	}
	return made, err
}

// probeStorage logs which warehouses cannot be reached, in the background, until stop is called: they may be reached later,
// and others now.
func (n *node) probeStorage(logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var probing sync.WaitGroup
	probing.Go(func() {
		err := n.catalog.ProbeStorage(ctx, func(warehouse, location string, err error) {
			logger.Warn("the storage of a warehouse cannot be reached: requests for its files are answered 503 until it can",
				"warehouse", warehouse, "location", location, "error", moorage.OneLine(err.Error()))
		})
		if err != nil && ctx.Err() == nil {
			logger.Warn("could not look whether the storage of all warehouses can be reached", "error", err)
		}
	})
	return func() {
		cancel()
		probing.Wait()
	}
}

// close ends the store and what was opened beside it; locks and store at once, because each may have to wait for a database
// that stands still.
func (n *node) close() error {
	var locksErr error
	var closing sync.WaitGroup
	closing.Go(func() { locksErr = n.locks.close() })
	storeErr := n.store.Close()
	closing.Wait()
	return errors.Join(locksErr, storeErr, n.storages.close())
}
