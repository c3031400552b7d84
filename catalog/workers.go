package catalog

import (
	"context"
	"errors"
	"io"
	"time"

	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// workers are the loops that do what operations leave for later. Every node runs them; that two nodes
// do the same work at once is harmless, because all of it is conditional.
type workers struct {
	sweep    *worker.Worker
	staged   *worker.Worker  // apart from sweep, because storages may hang
	number   *worker.Worker  // nil if the store gives changes their places when it writes them
	recovery *txlog.Recovery // kicked by whoever meets an unfinished transaction
}

func newWorkers(c *Catalog, interval time.Duration, random io.Reader) (*workers, error) {
	sweepJitter, err := ledger.NewJitter(random)
	if err != nil {
		return nil, err
	}
	stagedJitter, err := ledger.NewJitter(random)
	if err != nil {
		return nil, err
	}
	w := &workers{
		sweep:    worker.New(worker.Config{Name: "sweep", Run: c.sweepAll, Interval: interval, Jitter: sweepJitter, Logger: c.log}),
		staged:   worker.New(worker.Config{Name: "staged", Run: c.sweepStaged, Interval: interval, Jitter: stagedJitter, Logger: c.log}),
		recovery: c.recovery,
	}
	if store, ok := registry.Find[registry.Numberer](c.store); ok {
		numberJitter, err := ledger.NewJitter(random)
		if err != nil {
			return nil, err
		}
		n := &numbering{Catalog: c, store: store}
		w.number = worker.New(worker.Config{Name: "number", Run: n.run, Interval: numberInterval, Jitter: numberJitter, Logger: c.log})
	}
	return w, nil
}

func (w *workers) start() {
	w.recovery.Start()
	w.sweep.Start()
	w.staged.Start()
	if w.number != nil {
		w.number.Start()
		w.number.Kick()
	}
}

func (w *workers) stop() {
	if w.number != nil {
		w.number.Stop()
	}
	w.sweep.Stop()
	w.staged.Stop()
	w.recovery.Stop()
}

// sweepAll does one round of everything in the store that is due by age.
func (c *Catalog) sweepAll(ctx context.Context) error {
	return errors.Join(c.endWindows(ctx), c.forgetChanges(ctx), c.forgetKeys(ctx), c.sweepFolders(ctx))
}

// sweepStaged removes the folders of tables that were staged long ago and not made. It is the part of the sweep that asks storages.
func (c *Catalog) sweepStaged(ctx context.Context) error { return c.staged.sweep(ctx, c.now()) }
