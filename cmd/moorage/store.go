package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
)

// openStoppedStore opens the store for openStopped.
func openStoppedStore(ctx context.Context, c cli.Config, logger *slog.Logger) (registry.Store, error) {
	if !c.InDatabase() && !pebble.IsUnfinished(c.StoreDir()) { // openStore refuses unfinished stores
		there, err := pebble.Exists(c.StoreDir())
		if err != nil {
			return nil, fmt.Errorf("look for the store: %w", err)
		}
		if !there {
			return nil, fmt.Errorf("there is no store in %s: moorage serve makes it; "+
				"--data or --store says where it is", c.StoreDir())
		}
	}
	return openStore(ctx, c, logger)
}

// stoppedLogger returns the log of commands other than serve.
func stoppedLogger(env cli.Environment) *slog.Logger {
	return newLogger(cli.Config{LogLevel: slog.LevelWarn}, env.Stderr)
}

// openStore opens the store of --store.
func openStore(ctx context.Context, c cli.Config, logger *slog.Logger) (registry.Store, error) {
	switch {
	case c.Store == cli.StoreMemory:
		return memory.New(rand.Reader), nil
	case c.InDatabase():
		if err := awaitDatabase(ctx, c, logger); err != nil {
			return nil, err
		}
		if c.Migrate {
			if _, err := postgres.Migrate(ctx, c.Store); err != nil {
				return nil, err
			}
		}
		return openDatabase(ctx, c, logger)
	}
	if pebble.IsUnfinished(c.StoreDir()) {
		return nil, fmt.Errorf("%s is of a backup that did not end: serving it could delete files that the original "+
			"store still needs; delete the folder", c.StoreDir())
	}
	store, err := pebble.Open(c.StoreDir(), pebble.Options{Random: rand.Reader, Logger: logger})
	if err == nil {
		keepOut(c.StoreDir(), logger)
	}
	return store, err
}

// keepOut removes other users' access to the folder of a store. The parent folder may be open to
// other users, because their engines may use a warehouse in it.
func keepOut(folder string, logger *slog.Logger) {
	info, err := os.Stat(folder)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(folder, 0o700)
	}
	if err != nil {
		logger.Warn("other users may be able to read the store", "folder", folder, "error", err)
	}
}

// storeReady returns a readiness check that calls healthy. Its error is safe for every caller of
// /readyz. The reason may contain names of files, so only the log has it.
func storeReady(healthy func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := healthy(ctx)
		message := ""
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			message = "The disk of the store is full: changes are refused. Make room: the server goes on by itself"
		case errors.Is(err, registry.ErrFailed):
			message = "The store has failed: changes are refused. The log says why. " +
				"Restart the server when its disk is sound"
		default:
			return err
		}
		return &moorage.Error{Kind: moorage.KindUnavailable, Message: message, Err: err}
	}
}

// openDatabase opens the database of --store, and warns of settings that would lose commits.
func openDatabase(ctx context.Context, c cli.Config, logger *slog.Logger) (registry.Store, error) {
	store, err := postgres.Open(ctx, c.Store, postgres.Options{Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	warnings, err := store.Warnings(ctx)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, warning := range warnings {
		logger.Warn("the database is not set up as it should be", "warning", warning)
	}
	return store, nil
}

const (
	// storeWaitLogged is the time between two log lines while the start waits for the database.
	storeWaitLogged = 5 * time.Second
	// reachPause is the pause between two attempts to reach the database, and reachTimeout is the
	// timeout of one attempt. A database server may accept the connection but not answer. The start
	// must then soon try again, because another server may have replaced that one.
	reachPause   = 250 * time.Millisecond
	reachTimeout = 10 * time.Second
)

// awaitDatabase returns when the database of --store is reachable. If the database does not answer,
// awaitDatabase waits for at most --store-wait, and logs that it is waiting. If the database
// returns a permanent error, awaitDatabase returns that at once.
func awaitDatabase(ctx context.Context, c cli.Config, logger *slog.Logger) error {
	err := reachDatabase(ctx, c)
	if err == nil || c.StoreWait == 0 || !postgres.IsAway(err) {
		return err
	}
	waiting := new(databaseWait)
	waiting.last.Store(&err)
	bounded, cancel := context.WithTimeout(ctx, c.StoreWait)
	defer cancel()
	var telling sync.WaitGroup
	telling.Go(func() { waiting.tell(bounded, c.StoreWait, logger) })
	defer telling.Wait()
	defer cancel() // runs before the wait for tell
	for worker.Sleep(bounded, reachPause) {
		err := reachDatabase(bounded, c)
		if err == nil || !postgres.IsAway(err) && bounded.Err() == nil {
			return err
		}
		// A timeout may only mean that the wait is over. In that case the earlier error is more
		// useful.
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
			waiting.last.Store(&err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped while the database did not answer: %s", waiting.reason())
	}
	return fmt.Errorf("the database did not answer within %s, which --store-wait says: %s",
		c.StoreWait, waiting.reason())
}

// reachDatabase makes one attempt to reach the database.
func reachDatabase(ctx context.Context, c cli.Config) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return postgres.Reach(ctx, c.Store)
}

// databaseWait is the state of a start that waits for its database. It is safe for concurrent use.
type databaseWait struct {
	last atomic.Pointer[error] // why the database is not reachable
}

// reason returns the last error as one line. The driver's error has a line for each host.
func (w *databaseWait) reason() string {
	return strings.Join(strings.Fields((*w.last.Load()).Error()), " ")
}

// tell writes a log line at once, and then another each storeWaitLogged, until ctx ends.
func (w *databaseWait) tell(ctx context.Context, limit time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(storeWaitLogged)
	defer ticker.Stop()
	for ctx.Err() == nil {
		logger.Warn("waiting for the database, which does not answer", "limit", limit, "error", w.reason())
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// newLogger returns the log of a command, with the level and format of the settings. It writes to
// out.
func newLogger(c cli.Config, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

const (
	// outgrownInterval is the mean pause between two checks of the version that the store needs.
	// The longest pause is 1.5 times as long. A process that raises the version waits even longer
	// before it writes records that older nodes cannot read.
	outgrownInterval = 2 * time.Second
	// outgrownTimeout is the timeout of one check. If the store does not answer, the check has no
	// result.
	outgrownTimeout = 5 * time.Second
	// outgrownLinger is how long a server refuses requests before it ends. In this time, a load
	// balancer can learn from /readyz that the server is not ready. A client whose request is
	// refused knows that nothing happened.
	outgrownLinger = 5 * time.Second
)

// outgrown checks whether the store now needs a newer version of Moorage. Another node may have
// raised the store's format, or run a migration step that this binary does not support. In both
// cases this node must stop writing. It is safe for concurrent use.
type outgrown struct {
	look    func(ctx context.Context) error // returns registry.ErrNewer if the store needs a newer version
	log     *slog.Logger
	worker  *worker.Worker
	reason  atomic.Pointer[error] // why this node must end; nil if it need not
	noticed chan struct{}         // closed when reason is set
}

// watchStore returns the checks of store, and does not start them.
func watchStore(store registry.Store, logger *slog.Logger) (*outgrown, error) {
	o := &outgrown{log: logger, noticed: make(chan struct{})}
	o.look = func(ctx context.Context) error { return registry.CheckFormat(ctx, store) }
	if database, ok := store.(interface {
		CheckFit(ctx context.Context) error
	}); ok {
		o.look = database.CheckFit
	}
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("seed the watch over the store: %w", err)
	}
	o.worker = worker.New(worker.Config{
		Name: "outgrown", Run: o.run, Interval: outgrownInterval, Logger: logger,
		Jitter: mathrand.New(mathrand.NewChaCha8(seed)),
	})
	return o, nil
}

// run makes one check.
func (o *outgrown) run(ctx context.Context) error {
	if o.reason.Load() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, outgrownTimeout)
	defer cancel()
	err := o.look(ctx)
	if !errors.Is(err, registry.ErrNewer) {
		return nil // readiness reports whether the store answers
	}
	o.reason.Store(&err) // before the log line, so that the log line is true when it appears
	o.log.ErrorContext(ctx, "the store needs a newer version of moorage: this server refuses requests, "+
		"and ends when those under way have; start that version",
		"error", err, "version", version())
	close(o.noticed)
	return nil
}

// awaitOldNodes returns a function that waits until older nodes have noticed that the store now
// needs a newer version. It returns nil if no other process can use the store.
func awaitOldNodes(isShared bool) func(ctx context.Context) error {
	if !isShared {
		return nil
	}
	return func(ctx context.Context) error {
		timer := time.NewTimer(outgrownInterval*3/2 + outgrownTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return moorage.E("moorage.awaitOldNodes", "", moorage.KindUnavailable, ctx.Err())
		}
	}
}

// refusal returns the error for every request once a check has found that the store needs a newer
// version. Until then it returns nil.
func (o *outgrown) refusal() error {
	reason := o.reason.Load()
	if reason == nil {
		return nil
	}
	return moorage.E("moorage.refusal", "", moorage.KindUnavailable, *reason)
}

// linger returns after outgrownLinger, or when ctx ends.
func (o *outgrown) linger(ctx context.Context) {
	timer := time.NewTimer(outgrownLinger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cause returns the reason why this node ends, or nil if the store is not the reason.
func (o *outgrown) cause() error {
	reason := o.reason.Load()
	if reason == nil {
		return nil
	}
	return fmt.Errorf("%w; start that version", *reason)
}

const (
	// horizonInterval is the pause between two checks of the database's open transactions.
	horizonInterval = 15 * time.Second
	// horizonAge is how long a transaction may stay open before it is logged. After a minute with
	// an open transaction, commits to a hot table take a third longer.
	horizonAge = time.Minute
	// horizonWarning is the time between two log lines about a transaction that stays open.
	horizonWarning = 10 * time.Minute
)

// watchHorizon returns a worker that finds long-running database transactions, and measures the age
// of the oldest. It returns nil if the store is not a database.
func watchHorizon(store registry.Store, metrics prometheus.Registerer, logger *slog.Logger) *worker.Worker {
	database, ok := store.(*postgres.Store)
	if !ok {
		return nil
	}
	horizon := database.Horizon()
	var oldest atomic.Int64
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "moorage_database_oldest_transaction_seconds",
		Help: "How long the oldest open transaction or replication slot has kept PostgreSQL from vacuuming old rows.",
	}, func() float64 { return time.Duration(oldest.Load()).Seconds() }))
	warned := horizonAge // the next line is logged at this age
	return worker.New(worker.Config{
		Name: "open transactions of the database", Interval: horizonInterval, Jitter: newJitter(), Logger: logger,
		Run: func(ctx context.Context) error {
			found, err := horizon.Oldest(ctx)
			if err != nil {
				return err
			}
			oldest.Store(int64(found.Age))
			switch {
			case found.Age < horizonAge:
				warned = horizonAge
			case found.Age >= warned:
				warned = found.Age + horizonWarning
				logger.WarnContext(ctx, "an open transaction of the database slows commits down",
					"open", found.Age.Round(time.Second), "what", found.What)
			}
			return nil
		},
	})
}
