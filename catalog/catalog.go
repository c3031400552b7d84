package catalog

import (
	cryptorand "crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// Times that bound an operation.
const (
	// requestTimeout bounds one mutation, from its first attempt to its last.
	requestTimeout = 30 * time.Second
	// settleTimeout bounds how long the outcome of one Apply is looked for.
	settleTimeout = 10 * time.Second
)

// Config is what a Catalog is made of. Fields without a default are required.
type Config struct {
	Store registry.Store
	Locks locks.Manager
	// OpenStorage returns the storage that reaches a place, and nothing else. It sends nothing. It
	// is called once for each place in use; the result is kept.
	OpenStorage func(place storage.Place) (storage.Store, error)
	// BorrowStorage is OpenStorage for one piece of work. It makes nothing that is not there. A
	// call of the function that it returns gives the storage back. Default: OpenStorage, and
	// nothing is given back.
	BorrowStorage func(place storage.Place) (storage.Store, func(), error)

	// AllowedLocations are URIs below which tables of every warehouse may live, beside
	// the warehouse's own.
	AllowedLocations []string

	Now    func() time.Time // default time.Now
	Random io.Reader        // ids, file names, jitter; default crypto/rand.Reader
	Logger *slog.Logger     // default: discards

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
	// KickPurge is called when a drop asked for a purge, which package maintenance/purge has to
	// carry out. It must not block. Default: does nothing.
	KickPurge func()
	// StagedFolder is called when a folder was made for a staged table, which package
	// maintenance/retention has to remove if it stays empty. Default: does nothing.
	StagedFolder func(warehouse string, store storage.Folders, location string)
	// KickRecovery is called when a transaction is left that package recovery has to end. It must not
	// block. Default: does nothing.
	KickRecovery func()
}

// Catalog is the service. It is safe for concurrent use. A Catalog that Once passes on is bound to
// the idempotency key of one request.
type Catalog struct {
	*service
	key *keyed // of the request that this value is for; nil: it has none
}

// service is what all Catalogs of one New share.
type service struct {
	ledger          *ledger.Ledger
	store           registry.Store
	locks           locks.Manager
	now             func() time.Time
	random          io.Reader
	log             *slog.Logger
	keyLifetime     time.Duration
	transactionWait time.Duration

	transactionBytesMax int64 // the constant of that name; less in tests

	directory *directory.Directory
	locations *claims.Claims
	documents *documents.Documents
	turns     *turns
	twins     *twins

	kickPurge    func()                                                         // Config.KickPurge
	stagedFolder func(warehouse string, store storage.Folders, location string) // Config.StagedFolder
	transactions *txlog.Log
	kickRecovery func()    // Config.KickRecovery
	made         time.Time // when this catalog was
	abortPending bool      // nobody used the store between its last process and made

	lockTimes locks.Timeouts

	deadSought atomic.Pointer[time.Time] // when somebody looked for dead transactions that hold locks; nil: never
}

// ChangeRetentionMin returns the shortest time for which change records may be kept, for a
// Config.IdempotencyLifetime. An attempt with a key looks for the change of an earlier one.
func ChangeRetentionMin(lifetime time.Duration) time.Duration { return lifetime + keyGrace }

// New returns a catalog over the parts of config.
func New(config Config) (*Catalog, error) {
	if config.Store == nil || config.Locks == nil || config.OpenStorage == nil {
		return nil, errors.New("catalog: Store, Locks and OpenStorage are required")
	}
	setDefaults(&config)
	records, err := ledger.New(ledger.Config{
		Store: config.Store, Now: config.Now, Random: config.Random, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	names := directory.New(directory.Config{
		Ledger: records, OpenStorage: config.OpenStorage, BorrowStorage: config.BorrowStorage,
		AllowedLocations: config.AllowedLocations, Now: config.Now, Logger: config.Logger,
	})
	return &Catalog{service: &service{
		ledger:          records,
		store:           config.Store,
		locks:           config.Locks,
		now:             config.Now,
		random:          config.Random,
		log:             config.Logger,
		keyLifetime:     config.IdempotencyLifetime,
		transactionWait: min(config.TransactionLockWait, TransactionLockWaitMax),

		transactionBytesMax: transactionBytesMax,

		directory:    names,
		locations:    claims.New(records),
		documents:    documents.New(records, names, config.DocumentCacheBytes, config.Logger),
		turns:        newTurns(),
		kickPurge:    config.KickPurge,
		stagedFolder: config.StagedFolder,
		transactions: txlog.New(records),
		kickRecovery: config.KickRecovery,
		made:         config.Now(),
		abortPending: config.AbortPending,
		twins:        newTwins(),
		lockTimes:    locks.NewTimeouts(),
	}}, nil
}

func setDefaults(config *Config) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = cryptorand.Reader
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.DocumentCacheBytes <= 0 {
		config.DocumentCacheBytes = 256 << 20
	}
	if config.IdempotencyLifetime <= 0 {
		config.IdempotencyLifetime = 30 * time.Minute
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
