package purge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"moorage/catalog/claims"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

const (
	// AttemptsMax is the number of failures after which a purge is given up.
	AttemptsMax = 50
	// BlockedPause is the time between two retries by a worker of a purge that was given up. So an
	// operator has nothing to do after repairing the storage.
	BlockedPause = time.Hour
	// CountPause is the interval at which a worker counts the waiting purges.
	CountPause = 5 * time.Minute
	// StallMax is the longest time without progress before a purge fails. Progress is a byte read
	// or a batch deleted. There is no limit on the duration of a whole purge: a retry starts from
	// the beginning, so with a limit a large table might never be finished. Clients of storages on
	// a network mostly give up earlier, with a better error.
	StallMax = 2 * time.Minute
	// AssignmentLife is the lifetime of a purge's assignment after its last renewal. Until it ends,
	// other nodes leave the purge alone, even if its node is slow to renew.
	AssignmentLife = time.Minute

	// atOnce is the number of purges that run at once. ofWarehouse is the maximum of these in one
	// warehouse. So a storage that hangs delays only its own warehouse.
	atOnce      = 6
	ofWarehouse = 2

	// operation is the name of a purge in change records.
	operation = "purge"
	// taskPrefix begins the names of the assignments of purges.
	taskPrefix = "purge/"
)

// Tables is the part of the catalog that a Worker needs.
type Tables interface {
	// StorageOf borrows a storage for the table's files and for the locations in also. table and
	// state are the table's record. The caller gives the storage back by calling the returned
	// function.
	StorageOf(ctx context.Context, table registry.Pointer, state registry.State, also ...string) (
		storage.Store, func(), error)
	// ReadMetadata reads the metadata file of a table's record from its storage. It returns
	// KindNotFound if the file does not exist.
	ReadMetadata(ctx context.Context, table registry.Pointer, files storage.Store) (*metadata.Document, error)
}

// Config configures a Worker. Fields without a default are required.
type Config struct {
	ledger.Deps
	Tables Tables
	// Doubt explains why the store's clock cannot be trusted. It returns "" if the clock can be
	// trusted. While the clock is in doubt, nothing is purged. By default the clock is trusted.
	Doubt func(ctx context.Context) (string, error)
	// Interval is the mean pause between two searches for tasks. Default 1 minute.
	Interval time.Duration
	// Stall and Life are StallMax and AssignmentLife by default; tests set other values.
	Stall, Life time.Duration
}

// Worker runs purges in a loop. Every node has one. It is safe for concurrent use.
type Worker struct {
	config   Config
	tables   Tables
	ledger   *ledger.Ledger
	assigner *ledger.Assigner
	// locations releases the locations of a table that is gone.
	locations *claims.Claims
	// transactions identifies the tasks that belong to transactions, which package recovery
	// handles.
	transactions *txlog.Log
	now          func() time.Time
	log          *slog.Logger
	loop         *worker.Worker

	blockedTried time.Time // when given-up purges were last tried; only a run uses it
	counted      time.Time // when waiting purges were last counted; only a run uses it

	mu         sync.Mutex // guards the fields below; no lock is taken under it
	stats      Stats
	unreadable map[registry.Key]bool // tasks that the last search could not read; the map is replaced, never changed
}

// Stats counts the work of this process's Worker. Unfinished and Blocked come from its last search,
// and later work updates them.
type Stats struct {
	Unfinished int // unfinished purges, including purges that wait for their time
	Blocked    int // purges that were given up, or whose task cannot be read

	// Waiting is the number of dropped tables whose purge waits for its time. WaitingBytes is the
	// total size of their files, as far as it is known. A worker updates both every CountPause.
	Waiting      int
	WaitingBytes int64

	Failures int64 // attempts that failed
}

// New returns a worker that is not started. It fails if the source of random bits fails.
func New(config Config) (*Worker, error) {
	if config.Ledger == nil || config.Tables == nil {
		panic("purge: Deps and Tables are required")
	}
	if config.Interval <= 0 {
		config.Interval = time.Minute
	}
	if config.Stall <= 0 {
		config.Stall = StallMax
	}
	if config.Life <= 0 {
		config.Life = AssignmentLife
	}
	if config.Doubt == nil {
		config.Doubt = func(context.Context) (string, error) { return "", nil }
	}
	jitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	w := &Worker{
		config: config, tables: config.Tables, ledger: config.Ledger, assigner: config.Assigner(),
		locations: claims.New(config.Ledger), transactions: txlog.New(config.Ledger),
		now: config.Now, log: config.Logger,
	}
	w.loop = worker.New(worker.Config{
		Name: "purge", Run: w.round, Interval: config.Interval, Jitter: jitter, Logger: config.Logger,
	})
	return w, nil
}

// Start starts the loop. The first round begins at once, because the last process may have left
// purges. A caller may call Start again after Stop.
func (w *Worker) Start() {
	w.loop.Start()
	w.loop.Kick()
}

// Stop ends the loop and waits for it. A second call does nothing.
func (w *Worker) Stop() { w.loop.Stop() }

// Kick makes the loop search for tasks at once. It never blocks.
func (w *Worker) Kick() { w.loop.Kick() }

// RunOnce works on every due purge that is not assigned to another node, and returns when it has
// tried all of them.
func (w *Worker) RunOnce(ctx context.Context) error { return w.loop.RunOnce(ctx) }

// Stats returns the worker's counts.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// noteFound records the existing tasks with their states, and the unreadable tasks.
func (w *Worker) noteFound(states map[registry.ID]registry.State, unreadable map[registry.Key]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unreadable = unreadable
	w.stats.Unfinished, w.stats.Blocked = len(states)+len(unreadable), len(unreadable)
	for _, state := range states {
		if state == registry.StateBlocked {
			w.stats.Blocked++
		}
	}
}

// foundUnreadable returns the unreadable tasks of the last search.
func (w *Worker) foundUnreadable() map[registry.Key]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unreadable
}

func (w *Worker) noteFailed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Failures++
}
