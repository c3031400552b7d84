package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/registry"
)

const (
	// outgrownInterval is the mean pause between two checks of what the store needs; the longest is
	// half as much again. A process that raises the store's needs waits longer than that before it
	// writes records that older nodes cannot read.
	outgrownInterval = 2 * time.Second
	// outgrownTimeout bounds one check. A store that does not answer reports nothing about its
	// needs.
	outgrownTimeout = 5 * time.Second
	// outgrownLinger is how long a server refuses requests before it ends. By then a load balancer
	// has called /readyz, and clients that were refused know that nothing happened.
	outgrownLinger = 5 * time.Second
)

// outgrown checks whether the store comes to need a newer version. Another node may have raised its
// format, or run a migration step that this binary does not support. Then this node must not write
// any more. It is safe for concurrent use.
type outgrown struct {
	look    func(ctx context.Context) error // registry.ErrNewer if the store needs a newer version
	log     *slog.Logger
	worker  *worker.Worker
	reason  atomic.Pointer[error] // why this node ends; nil while it does not
	noticed chan struct{}         // closed when there is a reason
}

// watchStore returns the watch over store, not started.
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

// run checks once.
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
	o.reason.Store(&err) // first: so the log line is already true
	o.log.ErrorContext(ctx, "the store needs a newer version of moorage: this server refuses requests, "+
		"and ends when those under way have; start that version",
		"error", err, "version", version())
	close(o.noticed)
	return nil
}

// refusal returns why a request is refused, once the store was found to need a newer version. It
// returns nil before that.
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

// cause returns why this node ends. It returns nil if the store is not the reason.
func (o *outgrown) cause() error {
	reason := o.reason.Load()
	if reason == nil {
		return nil
	}
	return fmt.Errorf("%w; start that version", *reason)
}

// version describes the build in one line: the version of the module, and the version of Go. The
// first names the commit, and marks whether files had changed since.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
