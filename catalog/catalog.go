package catalog

import (
	"cmp"
	"context"
	"errors"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/guard"
	"moorage/catalog/rebase"
	"moorage/catalog/sealing"
	"moorage/catalog/verb"
	"moorage/ledger"
	"moorage/locks"
	"moorage/metadata"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
	"moorage/txlog"
)

// Config is what a Catalog is made of. Fields without a default are required.
type Config struct {
	ledger.Deps
	Locks locks.Manager
	// Guard decides who may do what, once access is on in the store. Nil: everybody may do
	// everything.
	Guard *guard.Guard
	// Gate is asked before Guard, and hears how each request ended. Default: Guard, else verb.Open,
	// which refuses nobody.
	Gate verb.Gate
	// OpenStorage returns the storage that reaches a place, and nothing else. It sends nothing to
	// the storage. It is called once for each place in use; the result is kept until the place of
	// its warehouse changes.
	OpenStorage func(place storage.Place) (storage.Store, error)
	// BorrowStorage is OpenStorage for one piece of work. It makes nothing that is not there. A
	// call of the function that it returns gives the storage back. Default: OpenStorage, and
	// nothing is given back.
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)

	// Sealer seals the secrets of warehouses. Nil: no warehouse can have one.
	Sealer secrets.Sealer

	// Given hears what engines are given to reach files with. It must not block. Default: does
	// nothing.
	Given func(ctx context.Context, given Given)

	// AllowedLocations are URIs below which tables of every warehouse may live, besides
	// the warehouse's own.
	AllowedLocations []string
	// LocalFolder returns why no warehouse that is made over the network may lie in a folder of
	// this machine; nil: one may. It gets an absolute path. Default: one may lie anywhere.
	LocalFolder func(path string) error

	// DocumentCacheBytes bounds the memory of cached documents. Default 256 MiB.
	DocumentCacheBytes int64
	// AbortPending says that nobody else uses the store. Then every transaction under way that
	// began before this catalog was made belongs to a process that is gone. It is aborted without
	// waiting for its deadline.
	AbortPending bool
	// IdempotencyLifetime is how long a client may repeat a mutation with the same key, from its
	// first attempt on; see ChangeRetentionMin. Default 30 minutes.
	IdempotencyLifetime time.Duration
	// TransactionLockWait is how long a transaction waits for a table that another operation has
	// locked, before it is refused. Default: not at all. At most TransactionLockWaitMax.
	TransactionLockWait time.Duration
	// CommitGroupMax is how many commits that wait at one table share a version at most: one file
	// and one Apply make all of them true. 1: each has its own. Default 64.
	CommitGroupMax int
	// HedgeWrites says that a commit of one table or view on storage behind a network writes its
	// metadata file a second time, under another name, if the first write takes unusually long.
	// Documents().Close ends what goes on behind answers then.
	HedgeWrites bool
	// CommitsCarried is called with the number of commits that a new version carried out. It must
	// not block. Default: does nothing.
	CommitsCarried func(commits int)
	// RaceLost is called with the pointer of a table or view when a commit lost the compare-and-set
	// on it and is planned again, nearly always to another node. It must not block. Default: does
	// nothing.
	RaceLost func(pointer registry.ID)
	// NoAppendRebase refuses every append whose branch has moved, whatever its table and request
	// consent to.
	NoAppendRebase bool
	// AppendsMoved is called with the number of appends that a new version put on top of another
	// snapshot than they were sent for. It must not block. Default: does nothing.
	AppendsMoved func(appends int)
	// AppendRefused is called when an append whose branch has moved is refused although somebody
	// asked for moving it, with the reason. It must not block. Default: does nothing.
	AppendRefused func(why metadata.Misfit)
	// TransactionBytes bounds the metadata of the tables of one transaction. Default 512 MiB.
	TransactionBytes int64
	// UndropWindow is how long a table that was dropped without a purge can come back, as package
	// maintenance/retention has it. Default 7 days.
	UndropWindow time.Duration
	// PurgeDelay is how long the purge of a dropped table waits where its warehouse does not say
	// it, so that the table can come back. Default: not at all.
	PurgeDelay time.Duration
	// KickPurge is called when a purge may begin, which package maintenance/purge has to
	// carry out. It must not block. Default: does nothing.
	KickPurge func()
	// StagedFolder is called when a folder was made for a staged table, which package
	// maintenance/retention has to remove if it stays empty. Default: does nothing.
	StagedFolder func(warehouse string, store storage.Folders, location string)
	// KickRecovery is called when a transaction is left that package recovery has to end. It must
	// not block. Default: does nothing.
	KickRecovery func()
}

// TransactionLockWaitMax bounds Config.TransactionLockWait.
const TransactionLockWaitMax = commit.LockWaitMax

// Key makes a mutation happen once, however often it is sent: see Catalog.For.
type Key = commit.Key

// Catalog is the service, as one caller has it: see As. It is safe for concurrent use.
type Catalog struct {
	*service
	caller moorage.Caller
	key    *Key // of the request that this value is for; nil: it has none
	lease  *Lease
}

// service is what all Catalogs of one New share.
type service struct {
	planner  *planner
	pipeline *commit.Pipeline
	gate     verb.Gate
}

// ChangeRetentionMin returns the shortest time for which change records may be kept, for a
// Config.IdempotencyLifetime. An attempt with a key looks for the change of an earlier one.
func ChangeRetentionMin(lifetime time.Duration) time.Duration { return lifetime + commit.KeyGrace }

// New returns a catalog over the parts of config. Nobody is its caller yet: see As.
func New(config Config) (*Catalog, error) {
	if config.Ledger == nil || config.Locks == nil || config.OpenStorage == nil {
		return nil, errors.New("catalog: Deps, Locks and OpenStorage are required")
	}
	setDefaults(&config)
	records := config.Ledger
	names := directory.New(directory.Config{
		Ledger: records, OpenStorage: config.OpenStorage, BorrowStorage: config.BorrowStorage,
		AllowedLocations: config.AllowedLocations, Now: config.Now, Logger: config.Logger, Gate: config.Gate,
		Guard: config.Guard,
	})
	p := &planner{
		ledger: records, directory: names, claims: claims.New(records),
		documents: documents.New(records, names, config.DocumentCacheBytes, config.Now, config.Logger),
		now:       config.Now, random: config.Random, guard: config.Guard, guarded: config.Guard != nil,
		vends:   newVends(config.Now, config.Random),
		sealing: newSealing(config, records), given: config.Given, localFolder: config.LocalFolder,
		keyLife: config.IdempotencyLifetime + commit.KeyGrace,
		log:     config.Logger, undropWindow: config.UndropWindow, purgeDelay: config.PurgeDelay,
		kickPurge: config.KickPurge,
	}
	p.rebaser = rebase.New(names, p.documents, rebase.Config{
		Off: config.NoAppendRebase, Refused: config.AppendRefused, Now: config.Now,
	})
	if config.HedgeWrites {
		p.documents.HedgeWrites(config.Now)
	}
	pipeline := commit.New(commit.Config{
		Gate: config.Gate, Ledger: records, Locks: config.Locks, Directory: names, Claims: p.claims,
		Documents: p.documents, Now: config.Now, Logger: config.Logger,
		KeyLifetime: config.IdempotencyLifetime, AbortPending: config.AbortPending,
		LockWait:  min(config.TransactionLockWait, TransactionLockWaitMax),
		KickPurge: config.KickPurge, KickRecovery: config.KickRecovery, StagedFolder: config.StagedFolder,
		TransactionBytes: config.TransactionBytes, GroupMax: config.CommitGroupMax, Carried: config.CommitsCarried,
		RaceLost: config.RaceLost, Moved: config.AppendsMoved,
	})
	return &Catalog{service: &service{p, pipeline, config.Gate}}, nil
}

// newSealing returns what seals the secrets of warehouses.
func newSealing(config Config, records *ledger.Ledger) *sealing.Sealing {
	return sealing.New(sealing.Config{
		Ledger: records, Sealer: config.Sealer, Now: config.Now,
	})
}

// SealingOf returns what seals the secrets of warehouses. It decides nothing about who may.
func SealingOf(c *Catalog) *sealing.Sealing { return c.planner.sealing }

// As returns the catalog as caller has it.
func (c *Catalog) As(caller moorage.Caller) *Catalog { return &Catalog{c.service, caller, c.key, nil} }

// For returns the catalog as caller has it, for one request with an idempotency key; nil: the
// request has none. One mutation is called on it. If an attempt with the same key has ended before,
// that mutation changes nothing, and answers what the earlier one was answered. Only a table or
// view may be in a newer state.
//
// A mutation that was refused for good (see moorage.Kind.Final) is refused again with the same key.
// One that failed otherwise left nothing behind, and may be repeated with it. The key stands for a
// request of the caller.
//
// lease is one that the caller must hold on the table that the mutation is about, or on one of
// them; nil: none. Whether it holds is decided by the Apply of the mutation.
//
// Further errors: KindCommitFailed if the caller does not hold the lease. Then nothing was changed.
// KindUnprocessable if the key was used for another request. KindCommitUnknown if
// it cannot be told whether an attempt succeeded, or if a success cannot be answered again.
// Source: REST specification, Idempotency-Key.
func (c *Catalog) For(caller moorage.Caller, key *Key, lease *Lease) Verbs {
	return &Catalog{c.service, caller, key, lease}
}

// Documents returns the metadata files of the catalog, for the packages that look after them.
func (c *Catalog) Documents() *documents.Documents { return c.planner.documents }

// DeleteSurplus deletes the files of a transaction that no pointer names, ever named or will name.
func (c *Catalog) DeleteSurplus(ctx context.Context, t txlog.Transaction) error {
	return c.planner.documents.DeleteSurplus(ctx, commit.PlaceOf(t.Place), t.Surplus())
}

// Refuse refuses a request for v that could not even be read, for the reason why. With a key it
// answers as an earlier attempt was answered, if there was one: nil if that succeeded.
func (c *Catalog) Refuse(ctx context.Context, v verb.Verb, on moorage.Identifier, why error) error {
	_, err := c.submit(ctx, refusal(v, on, why))
	return err
}

// Sees reports whether the caller sees a warehouse. The errors are those of the store.
func (c *Catalog) Sees(ctx context.Context, v verb.Verb, warehouse string) (bool, error) {
	return directory.Sees(ctx, c.planner.directory, askerOf(c, v), warehouse)
}

// Admit returns nil if the caller sees a warehouse, or if that cannot be found out now. Else it
// refuses a request for v, as it refuses one in a warehouse that does not exist.
func (c *Catalog) Admit(ctx context.Context, v verb.Verb, warehouse string) error {
	if sees, err := c.Sees(ctx, v, warehouse); err != nil || sees {
		return nil
	}
	missing := guard.NoSuchWarehouse(warehouse)
	return cmp.Or(c.Refuse(ctx, v, moorage.Identifier{Warehouse: warehouse}, missing), missing)
}

// refusal returns an intent that fails with why before anything is read.
func refusal(v verb.Verb, on moorage.Identifier, why error) commit.Intent {
	return commit.Intent{
		Verb: v, On: []moorage.Identifier{on}, Silent: true,
		Look: func(context.Context) (commit.Scope, error) { return commit.Scope{}, why },
	}
}

// submit carries out intent for the caller of c, with its key.
func (c *Catalog) submit(ctx context.Context, intent commit.Intent) (commit.Outcome, error) {
	intent.Caller, intent.Key, intent.Lease = c.caller, c.key, c.lease
	return c.pipeline.Submit(ctx, intent)
}

func setDefaults(config *Config) {
	if config.Gate == nil {
		config.Gate = verb.Open()
		if config.Guard != nil {
			config.Gate = config.Guard
		}
	}
	if config.DocumentCacheBytes <= 0 {
		config.DocumentCacheBytes = 256 << 20
	}
	if config.IdempotencyLifetime <= 0 {
		config.IdempotencyLifetime = 30 * time.Minute
	}
	if config.AppendRefused == nil {
		config.AppendRefused = func(metadata.Misfit) {}
	}
	if config.Given == nil {
		config.Given = func(context.Context, Given) {}
	}
	if config.UndropWindow <= 0 {
		config.UndropWindow = 7 * 24 * time.Hour
	}
	if config.KickPurge == nil {
		config.KickPurge = func() {}
	}
	if config.StagedFolder == nil {
		config.StagedFolder = func(string, storage.Folders, string) {}
	}
	if config.KickRecovery == nil {
		config.KickRecovery = func() {}
	}
}
