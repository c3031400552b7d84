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
	// AttemptsMax is after how many failures a purge is given up.
	AttemptsMax = 50
	// BlockedPause is how long a purge that was given up rests before each worker tries it again,
	// once: an operator who mends its storage need not say so.
	BlockedPause = time.Hour
	// CountPause is how often a worker counts the purges that wait.
	CountPause = 5 * time.Minute
	// StallMax is how long a purge may get nothing done, not a byte read and no batch deleted,
	// before it fails. As a whole it has no bound: it begins again from the start, so a large table
	// might never come to its end. Storages over a network mostly give up earlier by themselves,
	// with a better reason.
	StallMax = 2 * time.Minute
	// ClaimLife is how long other nodes leave a purge alone after they last heard of its node. A
	// node that is busy keeps its purges for that long.
	ClaimLife = time.Minute

	// atOnce is how many purges run side by side, and ofWarehouse how many of them are of one
	// warehouse. So a storage that hangs holds up its own warehouse only.
	atOnce      = 6
	ofWarehouse = 2

	// operation is the name that change records have for a purge.
	operation = "purge"
	// claimPrefix begins the names of the claims on purges.
	claimPrefix = "purge/"
)

// Tables is what a Worker needs to know about tables.
type Tables interface {
	// StorageOf borrows the storage that has the files of the table with this record and state, and
	// what lies below also. The caller gives it back by a call of the function.
	StorageOf(ctx context.Context, table registry.Pointer, state registry.State, also ...string) (
		storage.Store, func(), error)
	// ReadMetadata reads the metadata file that the record of a table names from its storage:
	// KindNotFound if it is not there.
	ReadMetadata(ctx context.Context, table registry.Pointer, files storage.Store) (*metadata.Document, error)
}

// Config is what a Worker is made from. Fields without a default are required.
type Config struct {
	ledger.Deps
	Tables Tables
	// Doubt returns why the clock of the store cannot be believed; empty if it can. Until then
	// nothing is purged. Default: it can.
	Doubt func(ctx context.Context) (string, error)
	// Interval is the mean pause between two looks for tasks. Default 1 minute.
	Interval time.Duration
	// Stall is StallMax, and Claim is ClaimLife, unless a test shortens or stretches them.
	Stall, Claim time.Duration
}

// Worker is the loop that purges. Every node runs one. It is safe for concurrent use.
type Worker struct {
	config Config
	tables Tables
	ledger *ledger.Ledger
	claims *ledger.Claimer
	// locations gives up the locations of a table that is gone.
	locations *claims.Claims
	// transactions tells the tasks of transactions, which are the recovery's, from those of purges.
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

// Stats is what the Worker of this process has seen and done. Unfinished and Blocked are as of its
// last look at the tasks and what it has done since.
type Stats struct {
	Unfinished int // purges that are to be done, those that wait for their time included
	Blocked    int // those that were given up, or whose task cannot be read

	// Waiting are the dropped tables that can come back until their purges begin, and WaitingBytes
	// what their files take as far as they say it, as counted every CountPause.
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
	if config.Claim <= 0 {
		config.Claim = ClaimLife
	}
	if config.Doubt == nil {
		config.Doubt = func(context.Context) (string, error) { return "", nil }
	}
	jitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	w := &Worker{
		config: config, tables: config.Tables, ledger: config.Ledger, claims: config.Claimer(),
		locations: claims.New(config.Ledger), transactions: txlog.New(config.Ledger),
		now: config.Now, log: config.Logger,
	}
	w.loop = worker.New(worker.Config{
		Name: "purge", Run: w.round, Interval: config.Interval, Jitter: jitter, Logger: config.Logger,
	})
	return w, nil
}

// Start starts the loop with a round at once: the last process may have left purges. It may be
// called again after Stop.
func (w *Worker) Start() {
	w.loop.Start()
	w.loop.Kick()
}

// Stop ends the loop and waits for it. It may be called again.
func (w *Worker) Stop() { w.loop.Stop() }

// Kick has the loop look for tasks now. It never blocks.
func (w *Worker) Kick() { w.loop.Kick() }

// RunOnce works on every purge that is due and that no other node has claimed, and returns when all
// were tried.
func (w *Worker) RunOnce(ctx context.Context) error { return w.loop.RunOnce(ctx) }

// Stats returns what the worker has seen and done.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// noteFound notes the tasks that there are, with their states, and those that cannot be read.
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

// foundUnreadable returns the tasks that the last look could not read.
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
