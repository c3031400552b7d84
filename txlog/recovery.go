package txlog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
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
	// attemptsMax and patience are how often, and for how long, an attempt may fail before the transaction is given up.
	attemptsMax = 50
	patience    = 5 * time.Minute
	// attemptTimeout bounds one attempt: a storage that does not answer must not keep other transactions waiting.
	attemptTimeout = 30 * time.Second
	// recoveryPage is how many transactions are looked at in one call to the store.
	recoveryPage = 1000
)

// ErrBusy is returned by Resolve while others work on what the transaction needs. It is tried again, and that is
// no failure: Resolve must not return it for ever.
var ErrBusy = errors.New("txlog: others work on the transaction's tables")

// RecoveryConfig is what a Recovery is made of. Fields without a default are required.
type RecoveryConfig struct {
	Log *Log
	// Resolve brings a transaction that is due to its end, as far as it goes: it aborts it if it is PENDING, deletes its surplus,
	// and finishes it. It may be called again after any failure, and on several nodes at once.
	Resolve func(ctx context.Context, e Entry) error
	// Now is the time that deadlines are held against.
	Now func() time.Time
	// AbandonedBefore makes every PENDING transaction that began earlier due, whatever its deadline says: a process
	// that has the store to itself knows that the coordinators of an earlier one are gone. Zero: none.
	AbandonedBefore time.Time
	// Interval is the mean pause between two looks at the log.
	Interval time.Duration
	// Jitter draws the pauses. It belongs to the recovery from now on.
	Jitter *rand.Rand

	Logger *slog.Logger // default: discards
}

// Recovery is the worker that ends transactions whose coordinators did not. Every node runs one; that two end the same
// transaction at once is normal. It is safe for concurrent use.
//
// A transaction that cannot be ended is tried again after 50 ms to 1 s, at most 50 times in 5 minutes. Then it gets a
// blocker, a task in state blocked with its id, and is left alone until an operator has removed that.
type Recovery struct {
	config RecoveryConfig
	log    *slog.Logger
	worker *worker.Worker

	// Only a run touches the fields below, and runs never overlap.
	jitter *rand.Rand
	tries  map[registry.ID]*tries

	mu    sync.Mutex // guards stats; leaf
	stats Stats
}

// tries is what a Recovery remembers of a transaction that it could not end yet.
type tries struct {
	failures int
	first    time.Time // when it was tried first
}

// Stats is what a Recovery has seen and done. The first two are as of its last look at the log.
type Stats struct {
	Unfinished int // transactions in the log, those under way included
	Blocked    int // those that were given up

	Attempts  int64 // attempts to end a transaction
	Failures  int64 // those that failed
	Recovered int64 // those that succeeded
}

// NewRecovery returns a recovery that is not started. It panics if a required field of config is missing.
func NewRecovery(config RecoveryConfig) *Recovery {
	if config.Log == nil || config.Resolve == nil || config.Now == nil || config.Interval <= 0 || config.Jitter == nil {
		panic("txlog: Log, Resolve, Now, Interval and Jitter are required")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recovery{config: config, log: config.Logger, jitter: config.Jitter, tries: make(map[registry.ID]*tries)}
	// The worker draws its pauses while no run is under way, a run draws its own within it; but RunOnce may be called by
	// others at any time, so each needs a generator.
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

// Stop ends the worker and waits for it. It may be called again; Start may follow.
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

// Due tells whether a transaction may be ended by others than its coordinator: COMMITTED, ABORTED, or past its deadline.
func (r *Recovery) Due(e Entry) bool {
	return e.State != registry.StatePending || e.Began.Before(r.config.AbandonedBefore) || r.config.Now().After(e.Deadline)
}

// run looks at the log again and again until nothing of what is due has to be tried again.
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

// outcome is what became of a transaction that a round looked at.
type outcome uint8

const (
	ended   outcome = iota // nothing is left to do
	left                   // to its coordinator
	failed                 // to be tried again
	blocked                // to an operator
)

// round looks at the whole log once, tries all that is due, and tells whether some of it is to be tried again.
func (r *Recovery) round(ctx context.Context) (again bool, err error) {
	seen := make(map[registry.ID]bool)
	var counts [blocked + 1]int
	for after := (registry.ID{}); ; {
		entries, err := r.config.Log.Unfinished(ctx, after, recoveryPage)
		if err != nil {
			return false, err
		}
		blockers, err := r.config.Log.blockers(ctx, entries)
		if err != nil {
			return false, err
		}
		for i, e := range entries {
			seen[e.ID] = true
			became := left
			switch {
			case blockers[i].Exists():
				became = blocked
			case r.Due(e):
				if became, err = r.try(ctx, e); err != nil {
					return false, err
				}
			}
			counts[became]++
		}
		if len(entries) < recoveryPage {
			break
		}
		after = entries[len(entries)-1].ID
	}
	maps.DeleteFunc(r.tries, func(id registry.ID, _ *tries) bool { return !seen[id] })
	r.count(func(s *Stats) { s.Unfinished, s.Blocked = len(seen)-counts[ended], counts[blocked] })
	return counts[failed] > 0, nil
}

// try resolves a transaction, and gives it up if that failed too often. An error means that ctx has ended, or
// that the store failed.
func (r *Recovery) try(ctx context.Context, e Entry) (outcome, error) {
	t := r.tries[e.ID]
	if t == nil {
		t = &tries{first: r.config.Now()}
		r.tries[e.ID] = t
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	cause := r.config.Resolve(attempt, e)
	cancel()
	if ctx.Err() != nil {
		return failed, ctx.Err()
	}
	r.count(func(s *Stats) { s.Attempts++ })
	switch {
	case cause == nil:
		delete(r.tries, e.ID)
		r.count(func(s *Stats) { s.Recovered++ })
		r.log.InfoContext(ctx, "transaction recovered", "commit", e.ID, "warehouse", e.Warehouse, "was", e.State, "began", e.Began)
		return ended, nil
	case errors.Is(cause, ErrBusy):
		return failed, nil
	}
	t.failures++
	r.count(func(s *Stats) { s.Failures++ })
	if t.failures == 1 {
		r.log.WarnContext(ctx, "recovery of a transaction failed and is tried again", "commit", e.ID, "warehouse", e.Warehouse, "error", cause)
	}
	if t.failures < attemptsMax && r.config.Now().Sub(t.first) < patience {
		return failed, nil
	}
	if err := r.giveUp(ctx, e, t.failures, cause); err != nil {
		return failed, err
	}
	delete(r.tries, e.ID)
	return blocked, nil
}

func (r *Recovery) giveUp(ctx context.Context, e Entry, attempts int, cause error) error {
	given, err := r.config.Log.block(ctx, e.ID, registry.Task{
		ID: e.ID, Kind: registry.TaskRecovery, Created: r.config.Now(), Attempts: attempts, LastError: cause.Error(),
	})
	if given {
		r.log.ErrorContext(ctx, "recovery of a transaction is given up until an operator looks; see moorage recover",
			"commit", e.ID, "warehouse", e.Warehouse, "attempts", attempts, "error", cause)
	}
	return err
}
