package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// blockersMax bounds the number of blockers that a search counts.
const blockersMax = 1000

// Worker runs jobs in loops, one for each lane. Another loop sweeps files left by jobs that have
// ended. Every node has a Worker.
type Worker struct {
	jobs  *Jobs
	lanes []*worker.Worker
	sweep *worker.Worker
}

// NewWorker returns a worker that is not started.
func (j *Jobs) NewWorker() *Worker {
	w := &Worker{jobs: j, sweep: worker.New(worker.Config{
		Name: "files of maintenance jobs", Run: j.Sweep, Interval: sweepEvery, Jitter: j.sweepJitter, Logger: j.log,
	})}
	for i, kind := range lanes {
		w.lanes = append(w.lanes, worker.New(worker.Config{
			Name: "maintenance jobs, " + kind, Interval: j.interval, Jitter: j.jitters[i], Logger: j.log,
			Run: func(ctx context.Context) error {
				return errors.Join(runLane(ctx, j, kind), countBlockers(ctx, j))
			},
		}))
	}
	return w
}

// Start starts the loops. They search at once, because the last process may have left jobs. A
// caller may call Start again after Stop.
func (w *Worker) Start() {
	for _, lane := range w.lanes {
		lane.Start()
		lane.Kick()
	}
	w.sweep.Start()
}

// Stop ends the loops and waits for them. A second call does nothing.
func (w *Worker) Stop() {
	var stopping sync.WaitGroup
	for _, loop := range append(w.lanes[:len(w.lanes):len(w.lanes)], w.sweep) {
		stopping.Go(loop.Stop)
	}
	stopping.Wait()
}

// Kick makes the loops search for jobs at once. It never blocks.
func (w *Worker) Kick() {
	for _, lane := range w.lanes {
		lane.Kick()
	}
}

// Stats returns the counts for the jobs of this process.
func (w *Worker) Stats() Stats { return w.jobs.stats.get() }

// RunOnce continues each job as far as possible, one at a time, and returns when it has tried all
// of them. It records failures in the jobs. The only error it returns is a failure of the search
// for jobs.
func (j *Jobs) RunOnce(ctx context.Context) error { return runLane(ctx, j, "") }

// runLane runs the jobs of a kind, one at a time, except jobs that this process is already running.
// If kind is empty, it runs jobs of all kinds. The only error it returns is a failure of the search
// for jobs.
func runLane(ctx context.Context, j *Jobs, kind string) error {
	found, stop := make(map[Of]int64), stops{jobs: j}
	err := j.ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Job](record)
		if err != nil {
			j.log.WarnContext(ctx, "a maintenance job cannot be read", "job", record.Key.ID, "error", err)
			return true, nil
		}
		found[Of{value.Kind, strings.ToLower(record.State.String())}]++
		if kind != "" && value.Kind != kind {
			return true, nil
		}
		due, err := isDue(ctx, j.ledger, record.State, value)
		if err != nil || !due {
			return true, err
		}
		return ctx.Err() == nil, stop.tryStep(ctx, record, value.Kind, value.Pointer)
	})
	if err == nil {
		j.stats.found(found)
	}
	return err
}

// countBlockers counts the blockers for the metrics.
func countBlockers(ctx context.Context, j *Jobs) error {
	blockers, err := j.ledger.ListKeys(ctx, registry.TableDue, registry.DueBlockedPrefix(), "", blockersMax)
	if err == nil {
		j.stats.blocked(int64(len(blockers)))
	}
	return err
}

// stops holds the reasons to stop due jobs: pauses, and doubt about the clock. It reads them once
// per search, at the first due job. So stopped jobs cost the search no write.
type stops struct {
	jobs   *Jobs
	isRead bool
	pauses registry.Record
	doubt  string
}

// tryStep continues a job as far as possible. It does nothing if a reason stops the job, or if this
// process is already busy with its table or warehouse.
func (s *stops) tryStep(ctx context.Context, job registry.Record, kind string, table registry.ID) error {
	j := s.jobs
	pointer, state, err := pointerOf(ctx, j.ledger, table)
	if err != nil || state.IsDropped() {
		return err // see errDropped
	}
	if stopped, err := s.stop(ctx, job.State, pointer); stopped || err != nil {
		return err
	}
	if !j.busy.enter(kind, table, pointer.Warehouse, j.now()) {
		return nil
	}
	ctx, span := j.tracer.Work(ctx, "maintenance.", kind)
	span.On(moorage.Identifier{Warehouse: pointer.Warehouse})
	err = worker.Safely(ctx, func(ctx context.Context) error { return j.Step(ctx, job.Key) })
	span.End(err)
	j.busy.leave(kind, table, pointer.Warehouse, j.now(), errors.Is(err, ErrStalled))
	if err != nil && ctx.Err() == nil {
		j.log.WarnContext(ctx, "maintenance job did not finish", "job", job.Key.ID, "error", err)
	}
	return nil
}

// stop reports whether a job of table in the given state must not continue. It returns true if an
// operator has paused the table's scope, or if the clock is in doubt and the job would delete
// files.
func (s *stops) stop(ctx context.Context, state registry.State, table registry.Pointer) (bool, error) {
	if !s.isRead {
		records, err := s.jobs.ledger.Get(ctx, registry.PauseKey())
		if err != nil {
			return false, err
		}
		if s.doubt, err = s.jobs.doubt(ctx); err != nil {
			return false, err
		}
		s.pauses, s.isRead = records[0], true
	}
	return isPaused(ctx, s.jobs, s.pauses, table) || s.doubt != "" && state != registry.StateCollecting, nil
}

// pointerOf returns the pointer of a table and the state of its record. If the table is gone or
// unreadable, it returns the zero pointer, and the step of the job reports that.
func pointerOf(ctx context.Context, l *ledger.Ledger, table registry.ID) (registry.Pointer, registry.State, error) {
	records, err := l.Get(ctx, registry.PointerKey(table))
	if err != nil || !records[0].Exists() {
		return registry.Pointer{}, registry.StateNone, err
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return registry.Pointer{}, records[0].State, nil
	}
	return pointer, records[0].State, nil
}

// isDue reports whether a job can run. A job cannot run while another node or program holds it, or
// while it is blocked or paused. It also waits for the end of its pause after a failure, and for
// its time.
func isDue(ctx context.Context, l *ledger.Ledger, state registry.State, job registry.Job) (bool, error) {
	switch state {
	case registry.StateCollecting, registry.StateWaiting, registry.StateDeleting:
	default:
		return false, nil
	}
	if job.Paused {
		return false, nil
	}
	now, err := l.Time(ctx)
	if err != nil || rests(job, now) {
		return false, err
	}
	return state != registry.StateWaiting || !now.Before(job.NotBefore) || registry.IsAhead(job.WaitsFrom, now), nil
}

// rests reports whether, at time now, a job still pauses after a failure. A pause longer than any
// that jobs make does not count, because it was written while the store's clock was ahead.
func rests(job registry.Job, now time.Time) bool {
	left := job.RestsUntil.Sub(now)
	return left > 0 && left <= LaterPauseMax
}
