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
	// outgrownInterval is the mean pause between two looks at what the store needs; the longest is
	// half as much again. Who raises what a store needs waits longer than that before writing what
	// older nodes cannot read.
	outgrownInterval = 2 * time.Second
	// outgrownTimeout bounds one look. A store that does not answer says nothing about its needs.
	outgrownTimeout = 5 * time.Second
	// outgrownLinger is how long a server goes on to refuse requests before it ends: a balancer has
	// asked /readyz by then, and clients that meet the refusal know that nothing happened.
	outgrownLinger = 5 * time.Second
)

// outgrown watches whether the store comes to need a newer version, because another node raised its
// format or took a step of a migration that shuts this one out. Then this node must not write any
// more. It is safe for concurrent use.
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

// run looks once.
func (o *outgrown) run(ctx context.Context) error {
	if o.reason.Load() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, outgrownTimeout)
	defer cancel()
	err := o.look(ctx)
	if !errors.Is(err, registry.ErrNewer) {
		return nil // whether the store answers is for readiness to say
	}
	o.reason.Store(&err) // first: what the log says is so by then
	o.log.ErrorContext(ctx, "the store needs a newer version of moorage: this server refuses requests, "+
		"and ends when those under way have; start that version",
		"error", err, "version", version())
	close(o.noticed)
	return nil
}

// refusal returns nil, or from the moment on when the store was found to need a newer version why a
// request is refused.
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

// cause returns why this node ends; nil if it is not because of its store.
func (o *outgrown) cause() error {
	reason := o.reason.Load()
	if reason == nil {
		return nil
	}
	return fmt.Errorf("%w; start that version", *reason)
}

// version describes the build in one line: the version of the module and that of Go. The first
// names the commit, and says whether files had changed since.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
