package txlog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"moorage/internal/worker"
	"moorage/registry"
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

// ErrBusy is what Resolve returns while others work on what the transaction needs. The worker then
// tries again and does not count a failure, so Resolve must not return it for ever.
var ErrBusy = errors.New("txlog: others work on the transaction's tables")

// RecoveryConfig is what a Recovery is made from. Fields without a default are required.
type RecoveryConfig struct {
	Log *Log
	// Resolve brings a transaction that is due to its end, as far as it can: it aborts it if it is
	// PENDING, deletes its surplus, and finishes it. e is as it was a moment before. The worker may
	// call Resolve again after any failure, on several nodes at once. It calls it at the same time
	// for transactions of different warehouses. A panic is a failure.
	Resolve func(ctx context.Context, e Entry) error
	// Now is the time that deadlines are held against. It is called from several goroutines.
	Now func() time.Time
	// AbandonedBefore makes every PENDING transaction that began earlier due, whatever its deadline
	// says. A process that has the store to itself knows that the coordinators of an earlier
	// process are gone. Zero means no transaction.
	AbandonedBefore time.Time
	// Interval is the mean pause between two looks at the log.
	Interval time.Duration
	// Jitter draws the pauses. It belongs to the recovery from now on.
	Jitter *rand.Rand

	Logger *slog.Logger // default: discards
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
	config RecoveryConfig
	log    *slog.Logger
	worker *worker.Worker

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

// NewRecovery returns a recovery that is not started. It panics if a required field of config is
// missing.
func NewRecovery(config RecoveryConfig) *Recovery {
	if config.Log == nil || config.Resolve == nil || config.Now == nil || config.Interval <= 0 || config.Jitter == nil {
		panic("txlog: Log, Resolve, Now, Interval and Jitter are required")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recovery{
		config: config, log: config.Logger, jitter: config.Jitter, tries: make(map[registry.ID]*tries),
		underWay: make(map[string]*turn), givenUp: make(map[string]int), wake: make(chan struct{}, 1),
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

// Due reports whether others than its coordinator may end a transaction: COMMITTED, ABORTED, or
// past its deadline. Nobody may end one that cannot be read.
func (r *Recovery) Due(e Entry) bool {
	if e.Unreadable != nil {
		return false
	}
	return e.State != registry.StatePending || e.Began.Before(r.config.AbandonedBefore) ||
		r.config.Now().After(e.Deadline)
}

// run looks at the log again and again until no transaction that is due needs another try.
func (r *Recovery) run(ctx context.Context) error {
	for n := 1; ; n++ {
		again, err := r.round(ctx)
		if err != nil || !again {
			return err
		}
		timer := time.NewTimer(r.pause(n))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// pause returns how long to wait after the nth round, drawn between half of it and all of it.
func (r *Recovery) pause(n int) time.Duration {
	limit := min(pauseMin<<min(n-1, 10), pauseMax)
	return limit/2 + time.Duration(r.jitter.Int64N(int64(limit/2)+1))
}
