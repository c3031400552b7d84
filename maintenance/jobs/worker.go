package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// blockersMax bounds how many blockers a look counts.
const blockersMax = 1000

// Worker is the loops that take jobs as far as they go, one for each lane, and the one that deletes
// what ended jobs have left. Every node runs one.
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

// Start starts the loops, with a look at once: the last process may have left jobs. It may be
// called again after Stop.
func (w *Worker) Start() {
	for _, lane := range w.lanes {
		lane.Start()
		lane.Kick()
	}
	w.sweep.Start()
}

// Stop ends the loops and waits for them. It may be called again.
func (w *Worker) Stop() {
	var stopping sync.WaitGroup
	for _, loop := range append(w.lanes[:len(w.lanes):len(w.lanes)], w.sweep) {
		stopping.Go(loop.Stop)
	}
	stopping.Wait()
}

// Kick has the loops look for jobs now. It never blocks.
func (w *Worker) Kick() {
	for _, lane := range w.lanes {
		lane.Kick()
	}
}

// Stats returns what the jobs of this process have done.
func (w *Worker) Stats() Stats { return w.jobs.stats.get() }

// RunOnce takes every job as far as it goes now, one after the other, and returns when all were
// tried. What fails is noted in the jobs; the error is that of the look for them.
func (j *Jobs) RunOnce(ctx context.Context) error { return runLane(ctx, j, "") }

// runLane takes the jobs of a kind that nobody else in this process is at, one after the other;
// those of all kinds for none. The error is that of the look for them.
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

// countBlockers counts what is blocked, for the metrics.
func countBlockers(ctx context.Context, j *Jobs) error {
	blockers, err := j.ledger.ListKeys(ctx, registry.TableDue, registry.DueBlockedPrefix(), "", blockersMax)
	if err == nil {
		j.stats.blocked(int64(len(blockers)))
	}
	return err
}

// stops is what keeps jobs that are due from going on, as it is when one look meets the first of
// them. So they cost the look no write.
type stops struct {
	jobs   *Jobs
	isRead bool
	pauses registry.Record
	doubt  string
}

// tryStep takes a job as far as it goes, unless something stops it or this process is busy with its
// table or warehouse.
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
	err = worker.Safely(ctx, func(ctx context.Context) error { return j.Step(ctx, job.Key) })
	j.busy.leave(kind, table, pointer.Warehouse, j.now(), errors.Is(err, ErrStalled))
	if err != nil && ctx.Err() == nil {
		j.log.WarnContext(ctx, "maintenance job did not finish", "job", job.Key.ID, "error", err)
	}
	return nil
}

// stop reports whether a job of table in a state does not go on: an operator has paused what the
// table is in, or files may not be deleted because the clock is in doubt.
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

// pointerOf returns the pointer of a table, and the state of its record; a zero pointer if the
// table is gone or cannot be read, which the step says.
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

// isDue reports whether there is something to do for a job: it is neither blocked, paused nor in
// other hands, does not rest after a failure, and its time has come if it waits for that.
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

// rests reports whether a job rests at now. One that would rest for longer than jobs do was written
// when the store's clock was ahead.
func rests(job registry.Job, now time.Time) bool {
	left := job.RestsUntil.Sub(now)
	return left > 0 && left <= LaterPauseMax
}
