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
	// BlockedPause is the pause before each worker retries a purge that was given up, once. So an
	// operator who repairs its storage need do nothing else.
	BlockedPause = time.Hour
	// CountPause is the interval at which a worker counts the waiting purges.
	CountPause = 5 * time.Minute
	// StallMax is the longest time without progress (a byte read or a batch deleted) before a purge
	// fails. A whole purge has no bound: a retry starts from the beginning, so a large table might
	// never be finished. Storages over a network mostly give up earlier, with a better reason.
	StallMax = 2 * time.Minute
	// AssignmentLife is how long other nodes leave a purge to its node after the last renewal. So a
	// busy node keeps its purges for that long.
	AssignmentLife = time.Minute

	// atOnce is the number of purges at once, and ofWarehouse the number of them in one warehouse.
	// So a storage that hangs holds up only its own warehouse.
	atOnce      = 6
	ofWarehouse = 2

	// operation is the name that change records have for a purge.
	operation = "purge"
	// taskPrefix begins the names of the assignments of purges.
	taskPrefix = "purge/"
)

// Tables has what a Worker needs from the catalog.
type Tables interface {
	// StorageOf borrows a storage for the files of the table with this record and state, and for
	// files below also. The caller returns it by calling the function.
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
	// Doubt returns why the store's clock cannot be trusted, and the empty string if it can. While
	// it is in doubt, nothing is purged. By default the clock is trusted.
	Doubt func(ctx context.Context) (string, error)
	// Interval is the mean pause between two searches for tasks. Default 1 minute.
	Interval time.Duration
	// Stall and Life are StallMax and AssignmentLife by default; tests set others.
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
	// transactions identifies the tasks of transactions, which recovery handles.
	transactions *txlog.Log
	now          func() time.Time
	log          *slog.Logger
	loop         *worker.Worker

	blockedTried time.Time // when purges that were given up were tried last; only a run touches it
	counted      time.Time // when those that wait were counted last; only a run touches it

	mu         sync.Mutex // guards the fields below; leaf
	stats      Stats
	unreadable map[registry.Key]bool // the tasks that the last look could not read; replaced, never changed
}

// Stats counts what the Worker of this process has seen and done. Unfinished and Blocked are from
// its last search, updated by what it did since.
type Stats struct {
	Unfinished int // purges that are to be done, those that wait for their time included
	Blocked    int // those that were given up, or whose task cannot be read

	// Waiting counts the dropped tables with a waiting purge, and WaitingBytes the size of their
	// files as far as the tables state it. Both are counted every CountPause.
	Waiting      int
	WaitingBytes int64

	Failures int64 // attempts that failed
}

// New returns a worker that is not started. It fails if the source of random bits does.
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

// Start starts the loop with a round at once, because the last process may have left purges. It may
// be called again after Stop.
func (w *Worker) Start() {
	w.loop.Start()
	w.loop.Kick()
}

// Stop ends the loop and waits for it. It may be called again.
func (w *Worker) Stop() { w.loop.Stop() }

// Kick makes the loop search for tasks now. It never blocks.
func (w *Worker) Kick() { w.loop.Kick() }

// RunOnce works on every due purge that is not assigned to another node, and returns when all were
// tried.
func (w *Worker) RunOnce(ctx context.Context) error { return w.loop.RunOnce(ctx) }

// Stats returns what the worker has seen and done.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// noteFound records the existing tasks with their states, and the unreadable ones.
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
