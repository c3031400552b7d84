// Package retention removes old records: dropped tables whose undrop window is over, change
// records, outcomes of idempotency keys, and empty folders. It also gives positions to new changes
// in a store that does not do so when it writes them.
//
// # What it promises
//
// Nothing is removed early, even if clocks of nodes are wrong. Eventually, all old records are
// removed. While the store's clock is in doubt, nothing is removed because of its age. If a record
// cannot be read, each round that reads it reports that, and continues with other records. No file
// of a table is deleted.
//
// # How it works
//
// Every node runs one loop for each job. Two nodes may do the same work at once, because all writes
// are conditional. A round reads a bounded part of the store (scan.go):
//
//	windows.go  pointers that were dropped longer ago than the undrop window
//	changes.go  change records older than the retention, in their order
//	fences.go   fences among them, which have no order
//	keys.go     outcomes of idempotency keys that have expired
//	folders.go  records of folders without claims
//	staged.go   folders of tables that were staged and never created
//	number.go   positions in the order of changes
//
// # What it must not know
//
// It does not know about names, documents, or how tables change.
package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// week is the default of UndropWindow and ChangeRetention.
const week = 7 * 24 * time.Hour

// ChangesKept returns how long changes are kept: the requested time, or the default if asked is 0.
func ChangesKept(asked, keyLife time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return max(week, keyLife)
}

// Config configures a Retention. Only Deps and KeyLife are required.
type Config struct {
	ledger.Deps
	// KeyLife is the longest time for which the outcome of an idempotency key is kept.
	KeyLife time.Duration
	// UndropWindow is the retention of the records of a dropped table. Default 7 days.
	UndropWindow time.Duration
	// ChangeRetention is the retention of change records. Time in which no node runs does not
	// count. It must not be less than KeyLife, and is at least keptMin. Default 7 days, or KeyLife
	// if that is longer.
	ChangeRetention time.Duration
	// Doubt explains why the store's clock cannot be trusted. It returns "" if the clock can be
	// trusted. While the clock is in doubt, nothing is removed because of its age. By default the
	// clock is trusted.
	Doubt func(ctx context.Context) (string, error)
	// Interval is the mean pause between two rounds of a job. Default 1 minute.
	Interval time.Duration
}

// Job is one kind of work.
type Job string

// The jobs that RunOnce can run.
const (
	Windows Job = "windows"
	Changes Job = "changes"
	Keys    Job = "keys"
	Folders Job = "folders"
	Staged  Job = "staged"
)

// Retention runs the loops. It is safe for concurrent use.
type Retention struct {
	changes *changes
	staged  *staged
	jobs    []job
	number  *worker.Worker // nil if the store gives changes their positions when it writes them
}

// job is one kind of work and its loop. Runs of one job never overlap.
type job struct {
	name Job
	loop *worker.Worker
}

// New returns loops that are not started. It fails if the source of random bits fails. It also
// fails if change records would be removed before the idempotency keys that need them.
func New(config Config) (*Retention, error) {
	if config.Ledger == nil || config.KeyLife <= 0 {
		panic("retention: Deps and KeyLife are required")
	}
	setDefaults(&config)
	if config.ChangeRetention < config.KeyLife {
		return nil, fmt.Errorf("retention: changes are kept for %s, which must not be less than the %s"+
			" for which keys are honoured", config.ChangeRetention, config.KeyLife)
	}
	records := config.Ledger
	r := &Retention{changes: newChanges(config, records), staged: &staged{now: config.Now}}
	for _, made := range []struct {
		name Job
		run  func(context.Context) error
	}{
		{Windows, newWindows(config, records).run},
		{Changes, r.changes.run},
		{Keys, newKeys(config, records).run},
		{Folders, newFolders(records).run},
		{Staged, r.staged.run},
	} {
		run := made.run
		if made.name != Folders { // the removal of folders does not depend on time
			run = unlessInDoubt(config, made.run)
		}
		loop, err := newLoop(config, string(made.name), config.Interval, run)
		if err != nil {
			return nil, err
		}
		r.jobs = append(r.jobs, job{made.name, loop})
	}
	if store, ok := registry.Find[registry.Numberer](config.Store); ok {
		loop, err := newLoop(config, "number", numberInterval, newNumbering(config, store).run)
		if err != nil {
			return nil, err
		}
		r.number = loop
	}
	return r, nil
}

func setDefaults(config *Config) {
	if config.Doubt == nil {
		config.Doubt = func(context.Context) (string, error) { return "", nil }
	}
	if config.UndropWindow <= 0 {
		config.UndropWindow = week
	}
	config.ChangeRetention = ChangesKept(config.ChangeRetention, config.KeyLife)
	if config.Interval <= 0 {
		config.Interval = time.Minute
	}
}

// unlessInDoubt returns a function that calls run, but does nothing while the clock is in doubt.
func unlessInDoubt(config Config, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if why, err := config.Doubt(ctx); err != nil || why != "" {
			return err
		}
		return run(ctx)
	}
}

func newLoop(config Config, name string, interval time.Duration,
	run func(context.Context) error) (*worker.Worker, error) {
	jitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	return worker.New(worker.Config{
		Name: name, Run: run, Interval: interval, Jitter: jitter, Logger: config.Logger,
	}), nil
}

// Start starts the loops. A caller may call it again after Stop.
func (r *Retention) Start() {
	for _, job := range r.jobs {
		job.loop.Start()
	}
	if r.number != nil {
		r.number.Start()
		r.number.Kick()
	}
}

// Stop ends the loops and waits for them. A second call does nothing.
func (r *Retention) Stop() {
	if r.number != nil {
		r.number.Stop()
	}
	for _, job := range r.jobs {
		job.loop.Stop()
	}
}

// RunOnce runs one round of each of the given jobs, or of all jobs if there are none. It returns
// all their errors.
func (r *Retention) RunOnce(ctx context.Context, jobs ...Job) error {
	var failures []error
	for _, job := range r.jobs {
		if len(jobs) == 0 || slices.Contains(jobs, job.name) {
			failures = append(failures, job.loop.RunOnce(ctx))
		}
	}
	return errors.Join(failures...)
}
