package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/storage"
)

const (
	// firstTryMax bounds how long the start waits for the storage of the warehouse default.
	firstTryMax = 15 * time.Second
	// firstTryInterval is the mean pause between two tries to make it.
	firstTryInterval = 5 * time.Second
	// firstTriesLogged is how many tries one log line stands for: one in about ten minutes.
	firstTriesLogged = 120
)

// firstWarehouse makes the warehouse default where there is none: where --default-location says, or
// in the folder warehouse below the data. A storage that fails keeps the server from nothing else:
// the warehouse is made as soon as the storage answers. It is safe for concurrent use.
type firstWarehouse struct {
	catalog  *catalog.Catalog
	location string // as --default-location has it; ensure names the folder below the data if it is empty
	data     string
	logger   *slog.Logger

	fails atomic.Bool // the storage failed, and there is no such warehouse yet
	tries int         // that failed; of the one goroutine that tries
}

func newFirstWarehouse(c cli.Config, made *catalog.Catalog, logger *slog.Logger) *firstWarehouse {
	return &firstWarehouse{
		catalog: made.As(moorage.System("node")), location: storage.Trim(c.DefaultLocation), data: c.Data,
		logger: logger,
	}
}

// ensure returns the warehouse default, which it makes if there is none; nil if its storage fails.
// The error is that of the store.
func (f *firstWarehouse) ensure(ctx context.Context) (*catalog.Warehouse, error) {
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
			// Tables name their files by absolute locations, so moving the folder would not do.
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

// find returns the warehouse default, and nil if there is none. It does not touch the storage.
func (f *firstWarehouse) find(ctx context.Context) (*catalog.Warehouse, error) {
	all, err := f.catalog.Warehouses(ctx)
	i := slices.IndexFunc(all, func(w catalog.Warehouse) bool { return w.Name == defaultWarehouse })
	if err != nil || i < 0 {
		return nil, err
	}
	return &all[i], nil
}

// try makes the warehouse, unless another node or an operator has made it. It returns nil, and has
// logged why, if that fails.
func (f *firstWarehouse) try(ctx context.Context) *catalog.Warehouse {
	found, err := f.find(ctx)
	if err == nil && found == nil {
		var made catalog.Warehouse
		made, err = f.catalog.CreateWarehouse(ctx, catalog.WarehouseSpec{Name: defaultWarehouse, Location: f.location})
		found = &made
	}
	if moorage.KindOf(err) == moorage.KindAlreadyExists { // at this moment
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

// again tries until there is a warehouse, until stop is called.
func (f *firstWarehouse) again() (stop func()) {
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

// with returns notices, for /readyz, and that there is no warehouse default because its storage
// fails. Why is for the log: anybody may ask /readyz.
func (f *firstWarehouse) with(notices map[string]string) map[string]string {
	if !f.fails.Load() {
		return notices
	}
	all := map[string]string{"warehouse default": "it could not be made yet; the log says why"}
	maps.Copy(all, notices)
	return all
}
