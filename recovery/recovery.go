package recovery

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/txlog"
)

// Bounds of the recovery of one transaction.
const (
	// pauseMin and pauseMax bound the pause between two attempts, which doubles.
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
	// attemptsMax and patience are how often, and for how long, attempts may fail before the
	// transaction is given up.
	attemptsMax = 50
	patience    = 5 * time.Minute
	// attemptTimeout bounds one attempt, because a storage may never answer.
	attemptTimeout = 30 * time.Second
)

// ErrBusy means that the transaction belongs to its coordinator, or that other operations hold the
// locks of its tables. The worker then tries again and does not count a failure.
var ErrBusy = errors.New("recovery: others work on the transaction's tables")

// Config configures a Recovery. Fields without a default are required.
type Config struct {
	ledger.Deps
	Locks locks.Manager
	// DeleteSurplus deletes the files of a transaction to which no pointer refers, ever referred or
	// will refer. It is called on several nodes at once, and at the same time for transactions of
	// different warehouses. A panic counts as a failure.
	DeleteSurplus func(ctx context.Context, t txlog.Transaction) error
	// RetryPurge makes the workers start the purge with this id again. Its errors are the errors of
	// Retry.
	RetryPurge func(ctx context.Context, id registry.ID) error
	// AbandonedBefore makes every PENDING transaction that began earlier due, whatever its
	// deadline. A process with exclusive use of the store knows that the coordinators of an earlier
	// process are gone. Zero means no transaction.
	AbandonedBefore time.Time
	// Jitter draws the pauses. The recovery owns it from now on. Default: seeded at random.
	Jitter *rand.Rand
	// Interval is the mean pause between two reads of the log. Default 1 minute.
	Interval time.Duration
}

// Recovery is the worker that ends transactions whose coordinators did not. Every node runs one.
// Two may end the same transaction at once, which is normal. It is safe for concurrent use.
//
// It goes through the log in rounds, 50 ms to 1 s apart. Each round ends the transactions of up to
// 8 warehouses concurrently, because their files may be in different storages. It ends the
// transactions of one warehouse in turn. So a storage that hangs holds up only its own warehouse:
// an attempt must end after 30 s, and the rest of the warehouse waits for the next round.
//
// That round begins with the transactions that were tried least recently. A turn that lasts longer
// than 10 s gives up its place in the round, and rounds go on whether the turn ends or not. An
// attempt that has not ended after 5 minutes counts as failed for good, and the rest of its
// warehouse gets a new turn. When four attempts of a warehouse hang, the rest waits until one ends.
// Recovery notices that when it reads the log, every Interval.
//
// The next round retries a transaction that could not be ended, at most 50 times in 5 minutes. Then
// the transaction gets a blocker, a task in state blocked with its id. Recovery leaves it alone
// until an operator has removed the blocker. It also leaves an unreadable record alone, and logs it
// once.
type Recovery struct {
	config       Config
	ledger       *ledger.Ledger
	transactions *txlog.Log
	log          *slog.Logger
	worker       *worker.Worker

	// Only a run uses the fields below, and runs never overlap.
	jitter     *rand.Rand
	rounds     int64                  // how many were begun
	tries      map[registry.ID]*tries // due in the last round; a turn's goroutine owns the entries of its warehouse
	unreadable map[registry.ID]bool   // unreadable in the last round, and logged
	underWay   map[string]*turn       // by warehouse, not given up; takeEnded removes ended ones
	givenUp    map[string]int         // turns that were given up and have not ended, by warehouse

	wake chan struct{} // holds a value once a turn has ended

	mu    sync.Mutex // guards the fields below; leaf
	stats Stats
	ended []*turn // not yet taken
}

// tries is a Recovery's memory of a transaction that it could not end yet.
type tries struct {
	failures int
	first    time.Time // when it was tried first; zero if not yet
	round    int64     // in which it was tried last; zero if not yet
}

// Stats counts what a Recovery has seen and done. The first two fields are from its last read of
// the log.
type Stats struct {
	Unfinished int // transactions in the log, including those in progress
	Blocked    int // transactions that were given up, or cannot be read

	Attempts  int64 // attempts to end a transaction
	Failures  int64 // failed attempts
	Recovered int64 // successful attempts
}

// New returns a recovery that is not started. It panics if a required field of config is missing.
func New(config Config) *Recovery {
	if config.Ledger == nil || config.Locks == nil || config.DeleteSurplus == nil || config.RetryPurge == nil {
		panic("recovery: Deps, Locks, DeleteSurplus and RetryPurge are required")
	}
	if config.Jitter == nil {
		jitter, err := ledger.NewJitter(cryptorand.Reader)
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		config.Jitter = jitter
	}
	if config.Interval <= 0 {
		config.Interval = time.Minute
	}
	r := &Recovery{
		config: config, ledger: config.Ledger, transactions: txlog.New(config.Ledger), log: config.Logger,
		jitter: config.Jitter, tries: make(map[registry.ID]*tries), underWay: make(map[string]*turn),
		givenUp: make(map[string]int), wake: make(chan struct{}, 1),
	}
	// The worker draws its pauses between runs, and a run draws its own pauses. But RunOnce may be
	// called at any time, so each needs a generator.
	pauses := rand.New(rand.NewPCG(config.Jitter.Uint64(), config.Jitter.Uint64()))
	r.worker = worker.New(worker.Config{
		Name: "recovery", Run: r.run, Interval: config.Interval, Jitter: pauses, Logger: config.Logger,
	})
	return r
}

// Start starts the worker, which reads the log at once.
func (r *Recovery) Start() {
	r.worker.Start()
	r.worker.Kick()
}

// Stop ends the worker and waits for it, but not for attempts that do not end within some seconds.
// It may be called again. Start may follow.
func (r *Recovery) Stop() { r.worker.Stop() }

// Kick makes the worker read the log soon. It never blocks.
func (r *Recovery) Kick() { r.worker.Kick() }

// RunOnce returns when every due transaction was ended or given up, or when ctx has ended.
func (r *Recovery) RunOnce(ctx context.Context) error { return r.worker.RunOnce(ctx) }

// Stats returns what the recovery has seen and done.
func (r *Recovery) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Recovery) count(change func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.stats)
}

// run reads the log repeatedly until no due transaction needs another try.
func (r *Recovery) run(ctx context.Context) error {
	for n := 1; ; n++ {
		again, err := r.round(ctx)
		if err != nil || !again {
			return err
		}
		if !worker.Sleep(ctx, r.pause(n)) {
			return ctx.Err()
		}
	}
}

// pause returns how long to wait after the nth round, drawn between half of it and all of it.
func (r *Recovery) pause(n int) time.Duration {
	limit := min(pauseMin<<min(n-1, 10), pauseMax)
	return limit/2 + time.Duration(r.jitter.Int64N(int64(limit/2)+1))
}

// finishTransaction ends a transaction whose coordinator is gone, as the package comment shows.
// entry was read a moment before; later changes are detected here or are harmless. While other
// operations work on the transaction, it changes nothing and returns ErrBusy. The caller must hold
// no locks.
func (r *Recovery) finishTransaction(ctx context.Context, entry txlog.Entry) error {
	if entry.State == registry.StatePending {
		var err error
		if entry, err = r.abortAbandoned(ctx, entry); err != nil || !entry.Exists() {
			return err
		}
	}
	if err := r.config.DeleteSurplus(ctx, entry.Transaction); err != nil {
		return err
	}
	return r.transactions.Finish(ctx, entry)
}

// abortAbandoned fences the coordinator of a PENDING transaction. The locks only save the work of a
// slow coordinator that is alive. If the tables are never free, it fences without the locks after
// txlog.LockPatience.
func (r *Recovery) abortAbandoned(ctx context.Context, entry txlog.Entry) (txlog.Entry, error) {
	now := r.config.Now()
	if !entry.IsDue(now, r.config.AbandonedBefore) {
		return entry, fmt.Errorf("%w: its coordinator has until %s", ErrBusy, entry.Deadline.UTC().Format(time.RFC3339))
	}
	var request locks.Request
	for _, p := range entry.Participants {
		if !p.Pointer.IsZero() {
			request.Writes = append(request.Writes, locks.Warehouse(entry.Warehouse).Pointer(p.Pointer.String()))
		}
	}
	hold, err := r.config.Locks.Acquire(ctx, request, locks.Options{NonBlocking: true})
	switch {
	case err == nil:
		defer hold.Release()
	case now.Sub(entry.Deadline) < txlog.LockPatience:
		if errors.Is(err, locks.ErrConflict) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return entry, err
	}
	return r.transactions.Abort(ctx, entry)
}
