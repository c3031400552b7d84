package catalog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog/activity"
	"moorage/catalog/browse"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/catalog/history"
	"moorage/catalog/rebase"
	"moorage/catalog/rows"
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
	// Guard authorizes requests if access control is enabled in the store. If it is nil, every
	// caller may do everything.
	Guard *gate.Guard
	// Gate is called before Guard, and audits the outcome of each request. Default: Guard, or
	// gate.AdmitAll, which admits every caller, if Guard is nil.
	Gate gate.Authorizer
	// OpenStorage returns a storage that reaches only the given place. It must not send requests to
	// the storage. The catalog calls it once for each place in use, and keeps the result until the
	// place of the warehouse changes.
	OpenStorage func(place storage.Place) (storage.Store, error)
	// BorrowStorage returns a storage as OpenStorage does, for one piece of work. It creates no
	// folders. The function that it returns gives the storage back. Default: OpenStorage, with a
	// function that does nothing.
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)

	// Sealer seals the secrets of warehouses. If it is nil, warehouses cannot have secrets.
	Sealer secrets.Sealer

	// The catalog calls Given with each credential or signature that it gives to an engine. Given
	// must not block. Default: does nothing.
	Given func(ctx context.Context, given vending.Given)

	// LocalFolder checks a folder of this machine for a warehouse that a caller over the network
	// creates, changes or validates. It gets an absolute path. It returns why the warehouse may not
	// use the folder, or nil. Default: every folder is allowed.
	LocalFolder func(path string) error

	// CacheBytes bounds the memory of cached documents. Default 256 MiB.
	CacheBytes int64
	// AbortPending means that no other process uses the store. Then every unfinished transaction
	// that began before this catalog was created belongs to a dead process. The catalog aborts such
	// a transaction without waiting for its deadline.
	AbortPending bool
	// IdempotencyLifetime is how long a client may repeat a mutation with the same key, from its
	// first attempt on; see ChangeRetentionMin. Default 30 minutes.
	IdempotencyLifetime time.Duration
	// TransactionWait is how long a transaction waits for a table that is locked by another
	// operation. After that, the transaction is refused. At most TransactionWaitMax. Default: 0, so
	// the transaction does not wait.
	TransactionWait time.Duration
	// CommitGroup is the maximum number of waiting commits to one table that share a version. One
	// file and one Apply commit all of them. With 1, each commit has its own version. Default 64.
	CommitGroup int
	// HedgeWrites affects a commit of one table or view on network storage. If the first write of
	// its metadata file takes unusually long, the commit writes the file a second time, under
	// another name. In that case, one of the writes may still be running after the commit has
	// returned. Documents().Close cancels such writes.
	HedgeWrites bool
	// The catalog calls CommitsCarried for each new version, with the number of commits in it.
	// CommitsCarried must not block. Default: does nothing.
	CommitsCarried func(commits int)
	// The catalog calls RaceLost when a commit must be planned again, because another commit
	// changed the pointer first. The argument is the pointer of the table or view. The other commit
	// is nearly always on another node. RaceLost must not block. Default: does nothing.
	RaceLost func(pointer registry.ID)
	// The catalog calls AppendsMoved for a new version with rebased appends, with the number of
	// these appends. AppendsMoved must not block. Default: does nothing.
	AppendsMoved func(appends int)
	// The catalog calls AppendRefused with the reason when it cannot rebase an append, although the
	// table and the request consent to a rebase. AppendRefused must not block. Default: does
	// nothing.
	AppendRefused func(why metadata.Misfit)
	// TransactionBytes bounds the total size of the metadata of one transaction's tables. Default
	// 512 MiB.
	TransactionBytes int64
	// UndropWindow is how long a table that was dropped without a purge can be restored. Package
	// maintenance/retention enforces it. Default 7 days.
	UndropWindow time.Duration
	// PurgeDelay is how long the purge of a dropped table waits if the table's warehouse has no
	// setting. While it waits, the table can be restored. Default: 0, so the purge does not wait.
	PurgeDelay time.Duration
	// The catalog calls KickPurge when a purge may begin. Package maintenance/purge must then carry
	// it out. KickPurge must not block. Default: does nothing.
	KickPurge func()
	// The catalog calls AwaitOldNodes after it has raised the version that the store requires, and
	// when it first reads such a raised version. AwaitOldNodes must return once all nodes have
	// ended that know only older versions. By default, there are no such nodes.
	AwaitOldNodes func(ctx context.Context) error
	// The catalog calls StagedFolder after it has created a folder for a staged table. Package
	// maintenance/retention must remove the folder if it stays empty. Default: does nothing.
	StagedFolder func(warehouse string, store storage.Folders, location string)
	// The catalog calls KickRecovery when package recovery must end a transaction. KickRecovery
	// must not block. Default: does nothing.
	KickRecovery func()
}

// TransactionWaitMax bounds Config.TransactionWait.
const TransactionWaitMax = commit.TransactionWaitMax

// Key is an idempotency key. A mutation with a key happens once, however often a client sends it:
// see Catalog.For.
type Key = commit.Key

// Catalog is the service for one caller: see As. It is safe for concurrent use.
type Catalog struct {
	*parts
	caller moorage.Caller
	key    *Key // the request's idempotency key; nil if it has none
	lease  *Lease
}

// parts holds the parts shared by all Catalogs from one call of New. Its methods build the intents
// of verbs, and read the records on which the intents depend. The methods change nothing, with one
// exception: a create may begin a waiting purge (forwarding).
type parts struct {
	ledger    *ledger.Ledger
	pipeline  *commit.Pipeline
	directory *directory.Directory
	claims    *claims.Claims
	documents *documents.Documents
	rebaser   *rebase.Rebaser
	guard     *gate.Guard
	guarded   bool // whether there is a guard that checks privileges
	gate      gate.Authorizer
	// grants and warehouses have no caller yet: Catalog.Grants and Catalog.Warehouses set it.
	grants     *grants.Grants
	warehouses *warehouses.Warehouses
	history    *history.Feed
	rows       *rows.Reader
	vending    *vending.Vending
	labels     *labelTexts
	browse     *browse.Browse // has no caller
	activity   *activity.Activity

	now     func() time.Time
	random  io.Reader
	log     *slog.Logger
	keyLife time.Duration // how long outcomes are kept, including commit.KeyGrace
	// undropWindow, purgeDelay, kickPurge and awaitOldNodes are the fields of Config.
	undropWindow, purgeDelay time.Duration
	kickPurge                func()
	awaitOldNodes            func(ctx context.Context) error
	// oldNodesEnded is the greatest required version for which awaitOldNodes has returned. Each
	// call of awaitOldNodes begins after this process has read that the store requires the version.
	oldNodesEnded atomic.Int32
}

// ChangeRetentionMin returns the minimum retention of change records for a
// Config.IdempotencyLifetime. It is needed because a request with a key looks for the change record
// of an earlier attempt.
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
		kickPurge: config.KickPurge, awaitOldNodes: config.AwaitOldNodes,
	}
	p.activity = activity.New(config.Now())
	p.labels, p.rows = newLabelTexts(records, config.Logger), rows.New()
	p.browse = browse.New(browse.Config{
		Ledger: records, Directory: names, Documents: p.documents, Guard: config.Guard, Store: config.Store,
		Now: config.Now, Random: config.Random, Activity: p.activity,
	})
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
		Activity: p.activity,
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
	p.history = history.New(history.Config{
		Ledger: records, Store: config.Store, Directory: names, Guard: config.Guard, Now: config.Now,
		Logger: config.Logger, Files: p.filesOf, UndropWindow: config.UndropWindow,
	})
	return &Catalog{parts: p}, nil
}

// As returns the catalog for caller.
func (c *Catalog) As(caller moorage.Caller) *Catalog { return &Catalog{c.parts, caller, c.key, nil} }

// For returns the catalog for one request of caller. key is the request's idempotency key, or nil.
// Call one mutation on the result. If an earlier attempt with the same key has ended, the mutation
// changes nothing, and returns the answer of that attempt. Only a table or view in the answer may
// be in a newer state.
//
// If a mutation was refused for good (see moorage.Kind.Final), it is refused again with the same
// key. If a mutation failed in another way, it changed nothing, and the client may repeat it with
// the same key. The same key from two callers identifies two requests.
//
// lease is a lease that the caller must hold on a table of the mutation. It is nil if no lease is
// required. The Apply of the mutation checks the lease.
//
// Further errors: KindCommitFailed if the caller does not hold the lease. Then nothing was changed.
// KindUnprocessable if the key was used for another request. KindCommitUnknown if the outcome of an
// attempt cannot be determined, or if a success cannot be returned again. Source: REST
// specification, Idempotency-Key.
func (c *Catalog) For(caller moorage.Caller, key *Key, lease *Lease) Verbs {
	return &Catalog{c.parts, caller, key, lease}
}

// Keyed returns the catalog for one request of the caller of c. key is the request's idempotency
// key, or nil: see For.
func (c *Catalog) Keyed(key *Key) *Catalog { return &Catalog{c.parts, c.caller, key, c.lease} }

// Grants returns the verbs for managing access, for the caller of c.
func (c *Catalog) Grants() *grants.Grants { return c.grants.As(c.caller) }

// Warehouses returns the verbs on warehouses, for the caller of c.
func (c *Catalog) Warehouses() *warehouses.Warehouses { return c.warehouses.As(c.caller) }

// Browse returns the verbs for looking at objects, as the caller of c.
func (c *Catalog) Browse() *browse.Browse { return c.browse.As(c.caller) }

// Activity returns this node's memory of recent commits and loads.
func (c *Catalog) Activity() *activity.Activity { return c.activity }

// History returns the feed of the store's changes, with the histories of its objects.
func (c *Catalog) History() *history.Feed { return c.history }

// Documents returns the catalog's access to metadata files, for the packages that maintain these
// files.
func (c *Catalog) Documents() *documents.Documents { return c.documents }

// DeleteSurplus deletes the unused metadata files of a transaction: files that no pointer names,
// has ever named, or will name.
func (c *Catalog) DeleteSurplus(ctx context.Context, t txlog.Transaction) error {
	return c.documents.DeleteSurplus(ctx, commit.PlaceOf(t.Place), t.Surplus())
}

// Refuse refuses a request for v that could not be decoded. why is the error. If an earlier attempt
// with the request's key has ended, Refuse returns the error of that attempt, or nil if it
// succeeded.
func (c *Catalog) Refuse(ctx context.Context, v gate.Verb, on moorage.Identifier, why error) error {
	_, err := c.submit(ctx, refusal(v, on, why))
	return err
}

// Sees reports whether a warehouse is visible to the caller. The errors come from the store.
func (c *Catalog) Sees(ctx context.Context, v gate.Verb, warehouse string) (bool, error) {
	return c.directory.Sees(ctx, c.asker(v), warehouse)
}

// Admit returns nil if a warehouse is visible to the caller, or if this cannot be determined now.
// Otherwise it refuses a request for v with the error for a missing warehouse.
func (c *Catalog) Admit(ctx context.Context, v gate.Verb, warehouse string) error {
	if sees, err := c.Sees(ctx, v, warehouse); err != nil || sees {
		return nil
	}
	missing := gate.NoSuchWarehouse(warehouse)
	return cmp.Or(c.Refuse(ctx, v, moorage.Identifier{Warehouse: warehouse}, missing), missing)
}

// refusal returns an intent that reads nothing and fails with why.
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
	if config.AwaitOldNodes == nil {
		config.AwaitOldNodes = func(context.Context) error { return nil }
	}
	if config.StagedFolder == nil {
		config.StagedFolder = func(string, storage.Folders, string) {}
	}
	if config.KickRecovery == nil {
		config.KickRecovery = func() {}
	}
}
