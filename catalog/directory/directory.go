// Package directory resolves names: warehouses, namespaces, and the pointers of tables and views.
// It keeps the storage of each warehouse open.
//
// # How a name is resolved
//
// A name is resolved by a chain of records. The ID in each record is part of the key of the next
// record:
//
//	warehouse ─► namespace ─► namespace ─► entry ─► pointer
//
// The directory caches the keys of the records that it found for a path or a name. So it reads a
// known path or pointer in one call of the store. It never answers from the cache alone. A record
// contains its own name and whether it is live. So the directory detects an outdated cache entry,
// and resolves the name again from the warehouse down. It reports an object as missing only after
// it has read from the warehouse down.
//
// The record of a warehouse describes how to reach the files of its tables. A read of a pointer
// alone does not include that record. So each cached pointer refers to a version of the warehouse's
// record (versions.go). If that version was confirmed too long ago, a request also reads the
// warehouse's record.
//
// Find and FindAll resolve a name to its pointer (names.go), and Path resolves a namespace
// (path.go). Resolve is the entry point of verbs that read: it calls the gate first (resolve.go).
//
// # What it must not know
//
// It does not know metadata files, locks or commits. It writes in one case only: it makes a
// namespace or warehouse live again after an unfinished drop.
package directory

import (
	"context"
	"log/slog"
	"time"

	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// requestTimeout bounds one resolution, from its first read to its last.
const requestTimeout = 30 * time.Second

// Config holds the parts and settings of a Directory. Fields without a default are required.
type Config struct {
	Ledger *ledger.Ledger
	// OpenStorage and BorrowStorage have the same meaning as in catalog.Config.
	OpenStorage   func(place storage.Place) (storage.Store, error)
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)
	Now           func() time.Time
	Logger        *slog.Logger
	// Gate audits each read, and refuses callers without any access. Default: gate.AdmitAll.
	Gate gate.Authorizer
	// Guard authorizes reads. If it is nil, every caller may read everything.
	Guard *gate.Guard
}

// Directory resolves names. It is safe for concurrent use.
type Directory struct {
	ledger   *ledger.Ledger
	now      func() time.Time
	log      *slog.Logger
	gate     gate.Authorizer
	guard    *gate.Guard
	storages *storages
	versions *warehouseVersions
	names    *names
	paths    *paths
}

// New returns a directory over the records of config.Ledger, with an empty cache.
func New(config Config) *Directory {
	if config.Gate == nil {
		config.Gate = gate.AdmitAll()
	}
	opened := newStorages(config)
	return &Directory{
		gate: config.Gate, guard: config.Guard,
		ledger: config.Ledger, now: config.Now, log: config.Logger,
		storages: opened, versions: newWarehouseVersions(opened.forget), names: newNames(), paths: newPaths(),
	}
}

// get reads the records at keys. If decisions need the epoch of the policy, it reads the epoch in
// the same call. So decisions about these records use a policy that is at least as new as the
// records.
func (d *Directory) get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	epoch, wanted := d.guard.Key()
	if !wanted {
		return d.ledger.Get(ctx, keys...)
	}
	records, err := d.ledger.Get(ctx, append(keys[:len(keys):len(keys)], epoch)...)
	if err != nil {
		return nil, err
	}
	d.guard.Observe(records[len(keys)])
	return records[:len(keys):len(keys)], nil
}
