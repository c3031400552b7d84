package catalog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/catalog/rebase"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/metadata"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
	"moorage/txlog"
)

// Config holds the parts and settings of a Catalog. Fields without a default are required.
type Config struct {
	ledger.Deps
	Locks locks.Manager
	// Guard authorizes requests, once access control is on in the store. Nil: every caller may do
	// everything.
	Guard *gate.Guard
	// Gate is called before Guard, and audits the outcome of each request. Default: Guard, else
	// gate.AdmitAll, which admits every caller.
	Gate gate.Authorizer
	// OpenStorage returns the storage that reaches a place, and nothing else. It sends nothing to
	// the storage. It is called once for each place in use; the result is kept until the place of
	// its warehouse changes.
	OpenStorage func(place storage.Place) (storage.Store, error)
	// BorrowStorage is OpenStorage for one piece of work. It creates nothing that does not exist. A
	// call of the function that it returns gives the storage back. Default: OpenStorage, and
	// nothing is given back.
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)

	// Sealer seals the secrets of warehouses. Nil: warehouses cannot have secrets.
	Sealer secrets.Sealer

	// Given is called with each credential or signature for files that an engine gets. It must not
	// block. Default: does nothing.
	Given func(ctx context.Context, given vending.Given)

	// LocalFolder returns why a warehouse that is created over the network may not use a folder of
	// this machine, or nil if it may. It gets an absolute path. Default: every folder is allowed.
	LocalFolder func(path string) error

	// CacheBytes bounds the memory of cached documents. Default 256 MiB.
	CacheBytes int64
	// AbortPending means that no other process uses the store. Then every transaction under way
	// that began before this catalog was created belongs to a dead process. It is aborted without
	// waiting for its deadline.
	AbortPending bool
	// IdempotencyLifetime is how long a client may repeat a mutation with the same key, from its
	// first attempt on; see ChangeRetentionMin. Default 30 minutes.
	IdempotencyLifetime time.Duration
	// TransactionWait is how long a transaction waits for a table that another operation has
	// locked, before it is refused. Default: not at all. At most TransactionWaitMax.
	TransactionWait time.Duration
	// CommitGroup is how many commits that wait at one table share a version at most: one file
	// and one Apply commit all of them. 1: each has its own version. Default 64.
	CommitGroup int
	// HedgeWrites affects a commit of one table or view on network storage. If the first write of
	// its metadata file takes unusually long, the commit writes the file a second time, under
	// another name. Documents().Close ends such background writes.
	HedgeWrites bool
	// CommitsCarried is called with the number of commits that a new version carried out. It must
	// not block. Default: does nothing.
	CommitsCarried func(commits int)
	// RaceLost is called with the pointer of a table or view when a commit lost the compare-and-set
	// on it and is planned again. The winner is nearly always on another node. It must not block.
	// Default: does nothing.
	RaceLost func(pointer registry.ID)
	// AppendsMoved is called with the number of appends that a new version moved on top of a newer
	// snapshot. It must not block. Default: does nothing.
	AppendsMoved func(appends int)
	// AppendRefused is called with the reason when an append whose branch has moved is refused
	// although its table and request consent to moving it. It must not block. Default: does
	// nothing.
	AppendRefused func(why metadata.Misfit)
	// TransactionBytes bounds the metadata of the tables of one transaction. Default 512 MiB.
	TransactionBytes int64
	// UndropWindow is how long a table that was dropped without a purge can come back, as package
	// maintenance/retention enforces it. Default 7 days.
	UndropWindow time.Duration
	// PurgeDelay is how long the purge of a dropped table waits if its warehouse has no setting, so
	// that the table can come back. Default: not at all.
	PurgeDelay time.Duration
	// KickPurge is called when a purge may begin, which package maintenance/purge has to carry out.
	// It must not block. Default: does nothing.
	KickPurge func()
	// StagedFolder is called when a folder was created for a staged table. Package
	// maintenance/retention has to remove it if it stays empty. Default: does nothing.
	StagedFolder func(warehouse string, store storage.Folders, location string)
	// KickRecovery is called when package recovery has to end a transaction. It must not block.
	// Default: does nothing.
	KickRecovery func()
}

// TransactionWaitMax bounds Config.TransactionWait.
const TransactionWaitMax = commit.TransactionWaitMax

// Key makes a mutation happen once, however often it is sent: see Catalog.For.
type Key = commit.Key

// Catalog is the service for one caller: see As. It is safe for concurrent use.
type Catalog struct {
	*parts
	caller moorage.Caller
	key    *Key // the request's idempotency key; nil if it has none
	lease  *Lease
}

// parts are the parts that all Catalogs of one New share. Its methods build the intents of verbs,
// and read the records that they depend on. They change nothing, with one exception: a create may
// begin a waiting purge (forwarding).
type parts struct {
	ledger    *ledger.Ledger
	pipeline  *commit.Pipeline
	directory *directory.Directory
	claims    *claims.Claims
	documents *documents.Documents
	rebaser   *rebase.Rebaser
	guard     *gate.Guard
	guarded   bool // there is a guard, so privileges are checked
	gate      gate.Authorizer
	// These have no caller: see Catalog.Grants and Catalog.Warehouses.
	grants     *grants.Grants
	warehouses *warehouses.Warehouses
	vending    *vending.Vending

	now     func() time.Time
	random  io.Reader
	log     *slog.Logger
	keyLife time.Duration // of outcomes, including the grace
	// undropWindow, purgeDelay and kickPurge are the fields of Config.
	undropWindow, purgeDelay time.Duration
	kickPurge                func()
}

// ChangeRetentionMin returns the minimum retention of change records for a
// Config.IdempotencyLifetime. An attempt with a key looks for the change of an earlier one.
func ChangeRetentionMin(lifetime time.Duration) time.Duration { return lifetime + commit.KeyGrace }

// New returns a catalog over the parts of config. It has no caller yet: see As.
func New(config Config) (*Catalog, error) {
	if config.Ledger == nil || config.Locks == nil || config.OpenStorage == nil {
		return nil, errors.New("catalog: Deps, Locks and OpenStorage are required")
	}
	setDefaults(&config)
	records := config.Ledger
	names := directory.New(directory.Config{
		Ledger: records, OpenStorage: config.OpenStorage, BorrowStorage: config.BorrowStorage,
		Now: config.Now, Logger: config.Logger, Gate: config.Gate,
		Guard: config.Guard,
	})
	p := &parts{
		ledger: records, directory: names, claims: claims.New(records),
		documents: documents.New(records, names, config.CacheBytes, config.Now, config.Logger),
		now:       config.Now, random: config.Random, guard: config.Guard, guarded: config.Guard != nil,
		gate:    config.Gate,
		keyLife: config.IdempotencyLifetime + commit.KeyGrace,
		log:     config.Logger, undropWindow: config.UndropWindow, purgeDelay: config.PurgeDelay,
		kickPurge: config.KickPurge,
	}
	p.rebaser = rebase.New(names, p.documents, rebase.Config{
		Refused: config.AppendRefused, Now: config.Now,
	})
	if config.HedgeWrites {
		p.documents.HedgeWrites(config.Now)
	}
	p.pipeline = commit.New(commit.Config{
		Gate: config.Gate, Ledger: records, Locks: config.Locks, Directory: names, Claims: p.claims,
		Documents: p.documents, Now: config.Now, Logger: config.Logger,
		IdempotencyLifetime: config.IdempotencyLifetime, AbortPending: config.AbortPending,
		TransactionWait: min(config.TransactionWait, TransactionWaitMax),
		KickPurge:       config.KickPurge, KickRecovery: config.KickRecovery, StagedFolder: config.StagedFolder,
		TransactionBytes: config.TransactionBytes, CommitGroup: config.CommitGroup, Carried: config.CommitsCarried,
		RaceLost: config.RaceLost, Moved: config.AppendsMoved,
	})
	p.vending = vending.New(vending.Config{
		Directory: names, Claims: p.claims, Documents: p.documents, Gate: config.Gate, Given: config.Given,
		Now: config.Now, Random: config.Random,
	})
	p.grants = grants.New(grants.Config{
		Ledger: records, Pipeline: p.pipeline, Directory: names, Guard: config.Guard, Now: config.Now,
		Random: config.Random, Views: p.vending.Views, IsDefiner: p.vending.IsDefiner,
	})
	p.warehouses = warehouses.New(warehouses.Config{
		Ledger: records, Pipeline: p.pipeline, Directory: names, Claims: p.claims, Guard: config.Guard,
		Sealer: config.Sealer, LocalFolder: config.LocalFolder, Now: config.Now,
	})
	return &Catalog{parts: p}, nil
}

// As returns the catalog for caller.
func (c *Catalog) As(caller moorage.Caller) *Catalog { return &Catalog{c.parts, caller, c.key, nil} }

// For returns the catalog for caller and one request with an idempotency key, which is nil if the
// request has none. One mutation is called on it. If an attempt with the same key has ended before,
// that mutation changes nothing, and returns the answer of the earlier one. Only a table or view
// may be in a newer state.
//
// A mutation that was refused for good (see moorage.Kind.Final) is refused again with the same key.
// A mutation that failed otherwise left nothing behind, and may be repeated with the key. The key
// identifies a request of the caller.
//
// lease is a lease that the caller must hold on the table of the mutation, or on one of its tables.
// Nil if no lease is required. The Apply of the mutation checks it.
//
// Further errors: KindCommitFailed if the caller does not hold the lease. Then nothing was changed.
// KindUnprocessable if the key was used for another request. KindCommitUnknown if the outcome of an
// attempt cannot be determined, or if a success cannot be returned again. Source: REST
// specification, Idempotency-Key.
func (c *Catalog) For(caller moorage.Caller, key *Key, lease *Lease) Verbs {
	return &Catalog{c.parts, caller, key, lease}
}

// Grants returns the verbs for managing access, for the caller of c.
func (c *Catalog) Grants() *grants.Grants { return c.grants.As(c.caller) }

// Warehouses returns the verbs on warehouses, for the caller of c.
func (c *Catalog) Warehouses() *warehouses.Warehouses { return c.warehouses.As(c.caller) }

// Documents returns the metadata files of the catalog, for the packages that maintain them.
func (c *Catalog) Documents() *documents.Documents { return c.documents }

// DeleteSurplus deletes the files of a transaction that no pointer names, ever named or will name.
func (c *Catalog) DeleteSurplus(ctx context.Context, t txlog.Transaction) error {
	return c.documents.DeleteSurplus(ctx, commit.PlaceOf(t.Place), t.Surplus())
}

// Refuse refuses a request for v that could not be decoded, with the reason why. With a key it
// returns the answer of an earlier attempt if there was one: nil if that succeeded.
func (c *Catalog) Refuse(ctx context.Context, v gate.Verb, on moorage.Identifier, why error) error {
	_, err := c.submit(ctx, refusal(v, on, why))
	return err
}

// Sees reports whether the caller sees a warehouse. The errors are those of the store.
func (c *Catalog) Sees(ctx context.Context, v gate.Verb, warehouse string) (bool, error) {
	return c.directory.Sees(ctx, c.asker(v), warehouse)
}

// Admit returns nil if the caller sees a warehouse, or if this cannot be determined now. Otherwise
// it refuses a request for v like a request in a warehouse that does not exist.
func (c *Catalog) Admit(ctx context.Context, v gate.Verb, warehouse string) error {
	if sees, err := c.Sees(ctx, v, warehouse); err != nil || sees {
		return nil
	}
	missing := gate.NoSuchWarehouse(warehouse)
	return cmp.Or(c.Refuse(ctx, v, moorage.Identifier{Warehouse: warehouse}, missing), missing)
}

// refusal returns an intent that fails with why before anything is read.
func refusal(v gate.Verb, on moorage.Identifier, why error) commit.Intent {
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
		config.Gate = gate.AdmitAll()
		if config.Guard != nil {
			config.Gate = config.Guard
		}
	}
	if config.CacheBytes <= 0 {
		config.CacheBytes = 256 << 20
	}
	if config.IdempotencyLifetime <= 0 {
		config.IdempotencyLifetime = 30 * time.Minute
	}
	if config.AppendRefused == nil {
		config.AppendRefused = func(metadata.Misfit) {}
	}
	if config.Given == nil {
		config.Given = func(context.Context, vending.Given) {}
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
