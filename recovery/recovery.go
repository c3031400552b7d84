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
	// attemptsMax and patience are how often, and for how long, an attempt may fail before the
	// transaction is given up.
	attemptsMax = 50
	patience    = 5 * time.Minute
	// attemptTimeout bounds one attempt: a storage may never answer.
	attemptTimeout = 30 * time.Second
)

// ErrBusy says that the transaction belongs to its coordinator, or that others hold the locks of
// its tables. The worker then tries again and does not count a failure.
var ErrBusy = errors.New("recovery: others work on the transaction's tables")

// Config is what a Recovery is made from. Fields without a default are required.
type Config struct {
	ledger.Deps
	Locks locks.Manager
	// DeleteSurplus deletes the files of a transaction that no pointer names, ever named or will
	// name. It is called on several nodes at once, and at the same time for transactions of
	// different warehouses. A panic is a failure.
	DeleteSurplus func(ctx context.Context, t txlog.Transaction) error
	// RetryPurge has the workers try the purge with this id again from the start. Its errors are
	// those of Retry.
	RetryPurge func(ctx context.Context, id registry.ID) error
	// AbandonedBefore makes every PENDING transaction that began earlier due, whatever its deadline
	// says. A process that has the store to itself knows that the coordinators of an earlier
	// process are gone. Zero means no transaction.
	AbandonedBefore time.Time
	// Jitter draws the pauses. It belongs to the recovery from now on. Default: seeded at random.
	Jitter *rand.Rand
	// Interval is the mean pause between two looks at the log. Default 1 minute.
	Interval time.Duration
}

// Recovery is the worker that ends transactions whose coordinators did not. Every node runs one.
// Two may end the same transaction at once; that is normal. It is safe for concurrent use.
//
// It goes through the log in rounds, with 50 ms to 1 s between two. Each round ends the
// transactions of up to 8 warehouses side by side, because their files may be in different
// storages. It ends those of one warehouse in turn. So a storage that hangs holds up only its own
// warehouse: an attempt must end after 30 s, and the rest of the warehouse waits for the next
// round. That round begins with the transactions that were tried least recently. A turn that lasts
// longer than 10 s gives up its place, and rounds go on during it, whether it ends or not. An
// attempt that has not ended after 5 minutes is given up like one that fails, and its warehouse has
// another turn. When four attempts of a warehouse do not end, the rest of it waits until one does;
// a look at the log every Interval shows that.
//
// The next round tries a transaction again that could not be ended, at most 50 times in 5 minutes.
// Then the transaction gets a blocker, a task in state blocked with its id. Recovery leaves it
// alone until an operator has removed the blocker. It leaves a record that cannot be read alone as
// well, and logs it once.
type Recovery struct {
	config       Config
	ledger       *ledger.Ledger
	transactions *txlog.Log
	log          *slog.Logger
	worker       *worker.Worker

	// Only a run touches the fields below, and runs never overlap.
	jitter     *rand.Rand
	rounds     int64                  // how many were begun
	tries      map[registry.ID]*tries // due in the last round; a turn's goroutine owns those of its warehouse
	unreadable map[registry.ID]bool   // unreadable in the last round, and logged
	underWay   map[string]*turn       // by warehouse, not given up; those that have ended go with takeEnded
	givenUp    map[string]int         // turns that were given up and have not ended, by warehouse

	wake chan struct{} // holds a value once a turn has ended

	mu    sync.Mutex // guards the fields below; leaf
	stats Stats
	ended []*turn // that nobody has taken
}

// tries is what a Recovery remembers about a transaction that it could not end yet.
type tries struct {
	failures int
	first    time.Time // when it was tried first; zero: not yet
	round    int64     // in which it was tried last; zero: not yet
}

// Stats is what a Recovery has seen and done. The first two are from its last look at the log.
type Stats struct {
	Unfinished int // transactions in the log, those under way included
	Blocked    int // those that were given up, or cannot be read

	Attempts  int64 // attempts to end a transaction
	Failures  int64 // those that failed
	Recovered int64 // those that succeeded
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
	// The worker draws its pauses while no run is under way, and a run draws its own within it. But
	// others may call RunOnce at any time, so each needs a generator.
	pauses := rand.New(rand.NewPCG(config.Jitter.Uint64(), config.Jitter.Uint64()))
	r.worker = worker.New(worker.Config{
		Name: "recovery", Run: r.run, Interval: config.Interval, Jitter: pauses, Logger: config.Logger,
	})
	return r
}

// Start starts the worker and makes it look at once.
func (r *Recovery) Start() {
	r.worker.Start()
	r.worker.Kick()
}

// Stop ends the worker and waits for it, but not for attempts that do not end within some seconds.
// It may be called again; Start may follow.
func (r *Recovery) Stop() { r.worker.Stop() }

// Kick makes the worker look at the log soon. It never blocks.
func (r *Recovery) Kick() { r.worker.Kick() }

// RunOnce returns when every transaction that is due was ended or given up, or ctx has ended.
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

// run looks at the log again and again until no transaction that is due needs another try.
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

// finishTransaction brings a transaction whose coordinator is gone to its end, as the package's
// comment shows. entry is as it was a moment before; what became of it since is met here or is
// harmless. It returns ErrBusy, and changes nothing, while others work on it. The caller must hold
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

// abortAbandoned fences the coordinator of a transaction that is PENDING. The locks only spare the
// work of a coordinator that is slow and lives. On tables that are never free, the fence goes
// without them after txlog.LockPatience.
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
