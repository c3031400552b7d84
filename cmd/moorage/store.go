package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
)

// openStoppedStore opens the store for openStopped.
func openStoppedStore(ctx context.Context, c cli.Config, env cli.Environment) (registry.Store, error) {
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
	opened, err := openStore(ctx, c, stoppedLogger(env))
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w: stop the server first", err)
	}
	return opened, err
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

// keepOut removes other users' access to the folder of a store, whatever the parent folder allows:
// engines of other users may use a warehouse next to it.
func keepOut(folder string, logger *slog.Logger) {
	info, err := os.Stat(folder)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(folder, 0o700)
	}
	if err != nil {
		logger.Warn("other users may be able to read the store", "folder", folder, "error", err)
	}
}

// storeReady returns healthy with an answer that is safe for every caller of /readyz. A reason may
// contain names of files, so it goes to the log.
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
	// storeWaitLogged is the time between two log lines of a start that waits for its database.
	storeWaitLogged = 5 * time.Second
	// reachPause is the pause between two attempts to reach it, and reachTimeout bounds one
	// attempt. A server that accepts a connection and does not answer must not keep a start from
	// its successor.
	reachPause   = 250 * time.Millisecond
	reachTimeout = 10 * time.Second
)

// awaitDatabase returns when the database of --store is reachable. If the database does not answer,
// it waits for at most --store-wait, and logs that. It returns permanent errors of the database at
// once.
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
	defer cancel() // before the wait for tell
	for worker.Sleep(bounded, reachPause) {
		err := reachDatabase(bounded, c)
		if err == nil || !postgres.IsAway(err) && bounded.Err() == nil {
			return err
		}
		// A timeout may come from the wait itself. The earlier error is more useful.
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

// reachDatabase tries once to reach the database.
func reachDatabase(ctx context.Context, c cli.Config) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return postgres.Reach(ctx, c.Store)
}

// databaseWait is the state of a start that waits for its database. It is safe for concurrent use.
type databaseWait struct {
	last atomic.Pointer[error] // why the database is not reachable
}

// reason is the last error in one line: the driver puts each host on a separate line.
func (w *databaseWait) reason() string {
	return strings.Join(strings.Fields((*w.last.Load()).Error()), " ")
}

// tell writes a log line at once and then each storeWaitLogged, until ctx ends.
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
