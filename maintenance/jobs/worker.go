package jobs

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// atOnce is how many jobs one node works on.
const atOnce = 4

// Worker is the loop that takes jobs as far as they go, and the one that deletes what ended jobs
// have left. Every node runs one.
type Worker struct{ loop, sweep *worker.Worker }

// NewWorker returns a worker that is not started.
func (j *Jobs) NewWorker() *Worker {
	return &Worker{
		loop: worker.New(worker.Config{
			Name: "maintenance jobs", Run: j.RunOnce, Interval: j.interval, Jitter: j.jitter, Logger: j.log,
		}),
		sweep: worker.New(worker.Config{
			Name: "files of maintenance jobs", Run: j.Sweep, Interval: sweepEvery, Jitter: j.sweepJitter, Logger: j.log,
		}),
	}
}

// Start starts the loops, the first with a look at once: the last process may have left jobs. It
// may be called again after Stop.
func (w *Worker) Start() {
	w.loop.Start()
	w.loop.Kick()
	w.sweep.Start()
}

// Stop ends the loop and waits for it. It may be called again.
func (w *Worker) Stop() {
	w.loop.Stop()
	w.sweep.Stop()
}

// Kick has the loop look for jobs now. It never blocks.
func (w *Worker) Kick() { w.loop.Kick() }

// RunOnce takes every job as far as it goes now, and returns when all were tried. What fails is
// noted in the jobs; the error is that of the look for them.
func (j *Jobs) RunOnce(ctx context.Context) error {
	group := new(errgroup.Group)
	group.SetLimit(atOnce)
	err := j.ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		due, err := isDue(ctx, j.ledger, record)
		if err != nil {
			j.log.WarnContext(ctx, "a maintenance job is skipped", "job", record.Key.ID, "error", err)
		}
		if !due {
			return true, nil
		}
		group.Go(func() error {
			err := worker.Safely(ctx, func(ctx context.Context) error { return j.Step(ctx, record.Key) })
			if err != nil && ctx.Err() == nil {
				j.log.WarnContext(ctx, "maintenance job did not finish", "job", record.Key.ID, "error", err)
			}
			return nil
		})
		return ctx.Err() == nil, nil
	})
	return errors.Join(err, group.Wait())
}

// isDue reports whether there is something to do for a job: it is neither blocked, paused nor in
// other hands, and its time has come if it waits for that.
func isDue(ctx context.Context, l *ledger.Ledger, record registry.Record) (bool, error) {
	switch record.State {
	case registry.StateCollecting, registry.StateDeleting, registry.StateWaiting:
	default:
		return false, nil
	}
	value, err := ledger.Decode[registry.Job](record)
	if err != nil || value.Paused || record.State != registry.StateWaiting {
		return err == nil && !value.Paused, err
	}
	now, err := l.Time(ctx)
	return err == nil && !now.Before(value.NotBefore), err
}
