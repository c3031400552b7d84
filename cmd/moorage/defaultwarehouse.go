package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/storage"
)

const (
	// firstTryMax is the maximum time for which the start waits for the storage of the warehouse
	// default.
	firstTryMax = 15 * time.Second
	// firstTryInterval is the mean pause between two attempts to create the warehouse.
	firstTryInterval = 5 * time.Second
	// firstTriesLogged is the number of attempts that share one log line. That is about one line in
	// ten minutes.
	firstTriesLogged = 120
)

// firstWarehouse creates the warehouse default if it does not exist: at --default-location, or in
// the folder warehouse in the data folder. The locations of --allow-location become allowed
// locations in the warehouse's record. Later starts do not change the record. If the storage fails,
// the server does its other work, and creates the warehouse as soon as the storage answers. A
// firstWarehouse is safe for concurrent use.
type firstWarehouse struct {
	catalog  *catalog.Catalog
	location string            // if empty, ensure sets it to the folder in the data folder
	options  map[string]string // options of its storage
	allowed  []string          // the values of --allow-location, for the record
	data     string
	logger   *slog.Logger

	fails atomic.Bool // the storage failed, and the warehouse does not exist yet
	tries int         // failed attempts; used by one goroutine only
}

func newFirstWarehouse(c cli.Config, made *catalog.Catalog, logger *slog.Logger) *firstWarehouse {
	return &firstWarehouse{
		catalog: made.As(moorage.System(whoServes)), location: storage.Trim(c.DefaultLocation),
		options: c.DefaultStorageOptions, data: c.Data,
		allowed: seededLocations(c, logger), logger: logger,
	}
}

// seededLocations returns the values of --allow-location for the record of the warehouse default.
// It leaves out the server's own folders and folders within them. It accepts a folder that contains
// them, because that is the operator's choice.
func seededLocations(c cli.Config, logger *slog.Logger) (allowed []string) {
	folders := newLocalFolders(c)
	for _, location := range c.AllowLocations {
		parsed, err := storage.Parse(location)
		if err == nil && parsed.Scheme == storage.SchemeFile && folders.holds(parsed.Path) {
			logger.Warn("tables cannot live at a location of --allow-location: the server keeps files of its own there",
				"location", location)
			continue
		}
		allowed = append(allowed, location)
	}
	return allowed
}

// ensure returns the warehouse default, and creates it if it does not exist. It returns nil if the
// storage fails. The error is one of the store.
func (f *firstWarehouse) ensure(ctx context.Context) (*warehouses.Warehouse, error) {
	if f.location == "" {
		location, err := folderLocation(filepath.Join(f.data, "warehouse"))
		if err != nil {
			return nil, err
		}
		f.location = location
	}
	found, err := f.find(ctx)
	if err != nil || found != nil {
		if err == nil && found.Location != f.location {
			// Tables name their files by absolute locations, so moving the folder would not help.
			f.logger.Warn("the warehouse default was made elsewhere and stays there", "location", found.Location)
		}
		return found, err
	}
	trying, cancel := context.WithTimeout(ctx, firstTryMax)
	defer cancel()
	made := f.try(trying)
	if made == nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return made, nil
}

// find returns the warehouse default, or nil if it does not exist. It does not use the storage.
func (f *firstWarehouse) find(ctx context.Context) (*warehouses.Warehouse, error) {
	found, err := f.catalog.Warehouses().Load(ctx, defaultWarehouse)
	switch {
	case err == nil:
		return &found.Warehouse, nil
	case moorage.KindOf(err) == moorage.KindNoSuchWarehouse:
		return nil, nil
	}
	return nil, err
}

// try creates the warehouse, unless another node or an operator has created it. If that fails, it
// logs the reason and returns nil.
func (f *firstWarehouse) try(ctx context.Context) *warehouses.Warehouse {
	found, err := f.find(ctx)
	if err == nil && found == nil {
		var made warehouses.Details
		made, err = f.catalog.Warehouses().Create(ctx, warehouses.Spec{
			Name: defaultWarehouse, Location: f.location, AllowedLocations: f.allowed, Storage: f.options,
		})
		found = &made.Warehouse
	}
	if moorage.KindOf(err) == moorage.KindAlreadyExists { // another node has just created it
		found, err = f.find(ctx)
	}
	if err == nil {
		f.fails.Store(found == nil)
		return found
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil // the server ends
	}
	f.fails.Store(true)
	if f.tries%firstTriesLogged == 0 {
		f.logger.Error("the warehouse default cannot be made, and the server goes on without it: "+
			"mend its storage, or make it elsewhere with moorage warehouse create",
			"location", f.location, "error", moorage.OneLine(err.Error()))
	}
	f.tries++
	return nil
}

// keepTrying repeats try in the background until the warehouse exists, or until stop is called.
func (f *firstWarehouse) keepTrying() (stop func()) {
	if !f.fails.Load() {
		return func() {}
	}
	trying := worker.New(worker.Config{
		Name: "warehouse default", Interval: firstTryInterval, Jitter: newJitter(), Logger: f.logger,
		Run: func(ctx context.Context) error {
			if !f.fails.Load() {
				return nil
			}
			if made := f.try(ctx); made != nil {
				f.logger.Info("there is a warehouse default now", "location", made.Location)
			}
			return nil
		},
	})
	trying.Start()
	return trying.Stop
}

// addNotice adds a notice for /readyz to notices if there is no warehouse default because its
// storage fails. The reason is only in the log, because every caller may read /readyz.
func (f *firstWarehouse) addNotice(notices map[string]string) map[string]string {
	if !f.fails.Load() {
		return notices
	}
	all := map[string]string{"warehouse default": "it could not be made yet; the log says why"}
	maps.Copy(all, notices)
	return all
}
