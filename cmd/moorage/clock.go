package main

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/clocks"
	"moorage/storage"
)

const (
	// clockWait is how long a storage may take to report the time.
	clockWait = 10 * time.Second
	// clockStorages bounds how many storages are asked for the time, all at once.
	clockStorages = 16
)

// newClock returns the clock of a store. made returns the catalog, whose storages report the time.
func newClock(deps ledger.Deps, made func() *catalog.Catalog) *clocks.Clock {
	return clocks.New(clocks.Config{
		Deps: deps, Boot: sinceBoot(),
		Ask: func(ctx context.Context) []clocks.Said {
			return askStorages(ctx, made().As(moorage.System("node")), deps.Logger)
		},
	})
}

// askStorages returns the times of the warehouses' storages that are reached over the network. Each
// time comes from the answer to a list request.
func askStorages(ctx context.Context, made *catalog.Catalog, logger *slog.Logger) []clocks.Said {
	warehouses, err := made.Warehouses(ctx)
	if err != nil {
		logger.WarnContext(ctx, "no storage was asked for the time", "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	var (
		mu     sync.Mutex // guards said
		said   []clocks.Said
		asking sync.WaitGroup
		asked  = make(map[string]bool)
	)
	for _, each := range warehouses {
		location, err := storage.Parse(each.Location)
		if err != nil || location.Scheme == storage.SchemeFile {
			continue // it uses the clock of this machine
		}
		name := location.Scheme + "://" + location.Authority
		if asked[name] || len(asked) == clockStorages {
			continue
		}
		asked[name] = true
		asking.Go(func() {
			now, ok := timeOf(ctx, catalog.TablesOf(made), each.Name)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said = append(said, clocks.Said{Who: name, Time: now})
		})
	}
	asking.Wait()
	return said
}

// timeOf returns the present time of a warehouse's storage. It returns false if the storage does
// not report it now.
func timeOf(ctx context.Context, tables *catalog.Tables, warehouse string) (time.Time, bool) {
	location, store, err := tables.WarehouseLocation(ctx, warehouse)
	if err != nil {
		return time.Time{}, false
	}
	lister, ok := store.(storage.Lister)
	if !ok {
		return time.Time{}, false
	}
	page, err := lister.List(ctx, storage.Join(location, "~moorage"), "", 1)
	return page.Now, err == nil && !page.Now.IsZero()
}

// withClock adds to notices, for /readyz, that nothing is deleted because the clock is in doubt.
func withClock(notices map[string]string, clock *clocks.Clock) map[string]string {
	if clock.Last() == "" {
		return notices
	}
	all := map[string]string{"clock": "nothing is deleted, because the store's clock is in doubt; the log says why"}
	maps.Copy(all, notices)
	return all
}
