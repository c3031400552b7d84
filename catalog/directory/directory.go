// Package directory finds what names stand for: warehouses, namespaces, and the pointers of tables
// and views. It keeps the storage of each warehouse open.
//
// # How a name is resolved
//
// A name leads through records. Each has the id by which the next one is found:
//
//	warehouse ─► namespace ─► namespace ─► entry ─► pointer
//
// The directory remembers which records a path and a name led to. So it reads a path, or a pointer,
// that it knows in one call of the store. It always reads: what it remembers only says where. A
// record says itself what it is called and whether it is live, so a memory that is wrong is
// noticed, and the name is resolved from the warehouse down. That something is missing is always
// the result of such reads.
//
// How the files of a table are reached is in the record of its warehouse, which a read of a pointer
// alone does not show. So each pointer that is remembered shares the version of that record
// (homes.go), and a request that finds the version too old reads it along.
//
// Find and FindAll lead from a name to its pointer (names.go), and Path to a namespace (path.go).
// Resolve is the door of verbs that read: it asks the gate first (door.go).
//
// # What it must not know
//
// It knows nothing of metadata files, locks or commits. It writes only one thing: a namespace or
// warehouse that a drop left in the middle is made live again.
package directory

import (
	"context"
	"log/slog"
	"time"

	"moorage/catalog/guard"
	"moorage/catalog/verb"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// requestTimeout bounds one resolution, from its first read to its last.
const requestTimeout = 30 * time.Second

// Config is what a Directory is made of. Fields without a default are required.
type Config struct {
	Ledger *ledger.Ledger
	// OpenStorage and BorrowStorage are those of catalog.Config.
	OpenStorage   func(place storage.Place) (storage.Store, error)
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)
	// AllowedLocations are URIs below which tables of every warehouse may live, besides the
	// warehouse's own.
	AllowedLocations []string
	Now              func() time.Time
	Logger           *slog.Logger
	// Gate hears of each read, and refuses callers who are not let in at all. Default: verb.Open.
	Gate verb.Gate
	// Guard decides who may read what. Nil: everybody may read everything.
	Guard *guard.Guard
}

// Directory resolves names. It is safe for concurrent use.
type Directory struct {
	ledger           *ledger.Ledger
	now              func() time.Time
	log              *slog.Logger
	allowedLocations []string
	gate             verb.Gate
	guard            *guard.Guard
	storages         *storages
	homes            *homes
	names            *names
	paths            *paths
}

// New returns a directory over the records of config.Ledger, which remembers nothing yet.
func New(config Config) *Directory {
	if config.Gate == nil {
		config.Gate = verb.Open()
	}
	opened := newStorages(config)
	return &Directory{
		gate: config.Gate, guard: config.Guard,
		ledger: config.Ledger, now: config.Now, log: config.Logger, allowedLocations: config.AllowedLocations,
		storages: opened, homes: newHomes(opened.forget), names: newNames(), paths: newPaths(),
	}
}

// get reads the records at keys and, where decisions need that, the epoch of policy in the same
// call: what is decided on these records is decided by policy that is no older.
func (d *Directory) get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	epoch, wanted := d.guard.Key()
	if !wanted {
		return d.ledger.Get(ctx, keys...)
	}
	records, err := d.ledger.Get(ctx, append(keys[:len(keys):len(keys)], epoch)...)
	if err != nil {
		return nil, err
	}
	d.guard.Saw(records[len(keys)])
	return records[:len(keys):len(keys)], nil
}
