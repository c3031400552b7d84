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
	// pauseMin and pauseMax are the limits of the pause between two attempts, which doubles each
	// time.
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
	// A transaction is given up when attemptsMax attempts have failed. It is also given up when an
	// attempt fails at least patience after the first one.
	attemptsMax = 50
	patience    = 5 * time.Minute
	// attemptTimeout is the timeout of one attempt, because a storage may never answer.
	attemptTimeout = 30 * time.Second
)

// ErrBusy means that the coordinator is still working on the transaction, or that other operations
// hold the locks of its tables. The worker tries again later and does not count a failure.
var ErrBusy = errors.New("recovery: others work on the transaction's tables")

// Config configures a Recovery. Fields without a default are required.
type Config struct {
	ledger.Deps
	Locks locks.Manager
	// DeleteSurplus deletes the files of a transaction to which no pointer refers, ever referred or
	// will refer. Several nodes may call it at once. One node may call it at the same time for
	// transactions of different warehouses. A panic counts as a failure.
	DeleteSurplus func(ctx context.Context, t txlog.Transaction) error
	// RetryPurge makes the workers start the purge with this id again. Errors: as for Retry.
	RetryPurge func(ctx context.Context, id registry.ID) error
	// AbandonedBefore makes every PENDING transaction that began earlier due, even before its
	// deadline. It is for a process with exclusive use of the store, which knows that the
	// coordinators in an earlier process are gone. The zero value makes no transaction due.
	AbandonedBefore time.Time
	// Jitter is the source of random pauses. Only the recovery may use it. Default: seeded at
	// random.
	Jitter *rand.Rand
	// Interval is the mean pause between two reads of the log. Default 1 minute.
	Interval time.Duration
}

// Recovery is the worker that ends transactions whose coordinators did not end them. Every node
// runs one. Two nodes may end the same transaction at once without harm. It is safe for concurrent
// use.
//
// It goes through the log in rounds, 50 ms to 1 s apart. Each round handles up to 8 warehouses
// concurrently, because their files may be in different storages. It ends the transactions of one
// warehouse one at a time. So a storage that hangs delays only its own warehouse. An attempt has a
// timeout of 30 s. After a timeout, the other transactions of the warehouse wait for the next
// round.
//
// The next round begins with the least recently tried transactions. If the turn of a warehouse
// lasts longer than 10 s, another warehouse may take its place in the round. Rounds do not wait for
// such a turn. If an attempt has not ended after 5 minutes, its transaction is given up. Other
// transactions of the warehouse then get a new turn. If four attempts of a warehouse hang, its
// other transactions wait until one of the four ends. Recovery checks for such attempts when it
// reads the log, every Interval.
//
// If an attempt fails, the next round retries it, until 50 attempts have failed or 5 minutes have
// passed. Then the transaction gets a blocker, a task in state blocked with its id. Recovery does
// nothing with the transaction until an operator has removed the blocker. Recovery also skips an
// unreadable record, and logs it once.
type Recovery struct {
	config       Config
	ledger       *ledger.Ledger
	transactions *txlog.Log
	log          *slog.Logger
	worker       *worker.Worker

	// The fields below are used only by a run, and runs never overlap.
	jitter     *rand.Rand
	rounds     int64                  // number of rounds begun
	tries      map[registry.ID]*tries // by due transaction of the last round; a turn owns the entries of its warehouse
	unreadable map[registry.ID]bool   // unreadable in the last round, and logged
	underWay   map[string]*turn       // turns not given up, by warehouse; takeEnded removes ended ones
	givenUp    map[string]int         // turns that were given up and have not ended, by warehouse

	wake chan struct{} // receives a value when a turn has ended

	mu    sync.Mutex // guards the fields below; no lock is taken under it
	stats Stats
	ended []*turn // turns that takeEnded has not taken yet
}

// tries is the state of a Recovery for a transaction that it could not end yet.
type tries struct {
	failures int
	first    time.Time // time of the first try; zero if none
	round    int64     // the round of the last try; zero if none
}

// Stats counts the work of a Recovery. The first two fields are from its last read of the log.
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
	// The worker draws a pause between runs, and a run draws pauses between its rounds. RunOnce may
	// run at any time, so worker and run need separate generators.
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

// Stop ends the worker and waits for it. It does not wait for attempts that do not end within a few
// seconds. A second call does nothing. A caller may call Start again after Stop.
func (r *Recovery) Stop() { r.worker.Stop() }

// Kick makes the worker read the log soon. It never blocks.
func (r *Recovery) Kick() { r.worker.Kick() }

// RunOnce returns when each due transaction has been ended or given up, or when ctx has ended.
func (r *Recovery) RunOnce(ctx context.Context) error { return r.worker.RunOnce(ctx) }

// Stats returns the counts of the recovery.
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

// pause returns how long to wait after the nth round: a random time between half of that round's
// pause and all of it.
func (r *Recovery) pause(n int) time.Duration {
	limit := min(pauseMin<<min(n-1, 10), pauseMax)
	return limit/2 + time.Duration(r.jitter.Int64N(int64(limit/2)+1))
}

// finishTransaction ends a transaction whose coordinator is gone, in the steps of the package
// comment. entry was read a moment ago. Later changes are detected here, or are harmless. If other
// operations work on the transaction, finishTransaction changes nothing and returns ErrBusy. The
// caller must not hold locks.
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

// abortAbandoned fences the coordinator of a PENDING transaction. It takes the locks of the tables
// only to spare a slow coordinator that is still alive. If it cannot get the locks for
// txlog.LockPatience, it fences without them.
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
