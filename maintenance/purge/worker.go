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
	// BlockedPause is the pause after which each worker retries a purge that was given up, once. So
	// an operator who repairs the storage need do nothing else.
	BlockedPause = time.Hour
	// CountPause is the interval at which a worker counts the waiting purges.
	CountPause = 5 * time.Minute
	// StallMax is the longest time without progress before a purge fails. Progress is a byte read
	// or a batch deleted. The duration of a whole purge has no bound. A retry starts from the
	// beginning, so with a bound a large table might never be finished. Storages over a network
	// mostly give up earlier, with a better reason.
	StallMax = 2 * time.Minute
	// AssignmentLife is how long an assignment of a purge lasts after its last renewal. Until then,
	// other nodes leave the purge to its node, even if that node is slow to renew.
	AssignmentLife = time.Minute

	// atOnce is how many purges run at once. ofWarehouse is how many of them may be in one
	// warehouse. So a storage that hangs delays only its own warehouse.
	atOnce      = 6
	ofWarehouse = 2

	// operation is the name of a purge in change records.
	operation = "purge"
	// taskPrefix begins the names of the assignments of purges.
	taskPrefix = "purge/"
)

// Tables has what a Worker needs from the catalog.
type Tables interface {
	// StorageOf borrows a storage for the files of the table with this record and state, and for
	// the locations in also. The caller gives the storage back by calling the returned function.
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

// Stats counts what the Worker of this process has seen and done. Unfinished and Blocked are from
// its last search, updated by its later work.
type Stats struct {
	Unfinished int // purges that must still be done, including those that wait for their time
	Blocked    int // purges that were given up, or whose task cannot be read

	// Waiting counts the dropped tables whose purge waits for its time. WaitingBytes is the size of
	// their files, as far as the tables state it. A worker counts both every CountPause.
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

// Start starts the loop. The first round begins at once, because the last process may have left
// purges. A caller may call Start again after Stop.
func (w *Worker) Start() {
	w.loop.Start()
	w.loop.Kick()
}

// Stop ends the loop and waits for it. A second call does nothing.
func (w *Worker) Stop() { w.loop.Stop() }

// Kick makes the loop search for tasks now. It never blocks.
func (w *Worker) Kick() { w.loop.Kick() }

// RunOnce works on every due purge that is not assigned to another node, and returns when it has
// tried all.
func (w *Worker) RunOnce(ctx context.Context) error { return w.loop.RunOnce(ctx) }

// Stats returns what the worker has seen and done.
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
