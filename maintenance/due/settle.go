package due

import (
	"context"
	"errors"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/storage"
)

// failed decides how a failed check ends.
func (l *check) failed(ctx context.Context, cause error) error {
	if cause == nil || ctx.Err() != nil {
		return cause // the table stays due
	}
	if why, ok := errors.AsType[*jobs.HeldError](cause); ok {
		l.job.Held = why.Why
		l.required = []registry.Condition{l.version}
		return l.settle(ctx, outcomeHeld, time.Time{}, why.Why)
	}
	if errors.Is(cause, jobs.ErrBusy) {
		l.outcome = outcomeLater
		_, err := l.config.Policies.Reload(ctx) // the policies may have changed; the table stays due
		return err
	}
	text := moorage.Cut(moorage.OneLine(cause.Error()), 1000)
	row := jobs.FailureRow{Count: l.job.Laters, Since: l.job.LaterSince, Until: l.at}
	blocks := false
	switch {
	case errors.Is(cause, storage.ErrSlowDown): // the storage works, but is busy
		row = jobs.FailureRow{Until: l.now.Add(jobs.LaterPause)}
		l.skipFor(l.table.Warehouse, restAfter)
	case isLasting(cause):
		l.job.Tries++
		row.Until = l.now.Add(jobs.FailurePause(l.job.Tries))
		blocks = l.job.Tries >= jobs.TriesMax
	default:
		row = row.Again(l.now, l.now)
		blocks = row.Blocks()
		if l.skipFor(l.table.Warehouse, restAfter); errors.Is(cause, jobs.ErrStalled) {
			l.skipFor(l.table.Warehouse, stallRest)
		}
	}
	l.job.Laters, l.job.LaterSince = row.Count, row.Since
	if !blocks {
		return errors.Join(cause, l.put(ctx, outcomeLater, row.Until, text))
	}
	l.outcome, l.job.Outcome = outcomeBlocked, outcomeBlocked
	change, err := l.schedule.Block(l.job, text, "", l.now)
	if err == nil {
		err = l.apply(ctx, change)
	}
	if err == nil {
		l.log.ErrorContext(ctx, "maintenance of a table is blocked until an operator acts",
			"table", l.table.Identifier().String(), "kind", l.kind, "error", text)
	}
	return err
}

// isLasting reports whether another check would meet the same failure.
func isLasting(err error) bool {
	if _, blocked := errors.AsType[*jobs.BlockedError](err); blocked {
		return true
	}
	switch moorage.KindOf(err) {
	case moorage.KindUnavailable, moorage.KindTooManyRequests, moorage.KindCommitUnknown, moorage.KindCommitFailed,
		moorage.KindNoSuchTable:
		return false
	}
	return true
}

// settle ends a check that did not fail, and resets the count of failures. next is when the kind is
// due again. If it is zero, the kind is no longer due.
func (l *check) settle(ctx context.Context, outcome string, next time.Time, why string) error {
	l.job.Laters, l.job.LaterSince = 0, time.Time{}
	return l.put(ctx, outcome, next, why)
}

// put records how the check ended.
func (l *check) put(ctx context.Context, outcome string, next time.Time, why string) error {
	l.outcome = outcome
	job := l.job
	job.Due, job.Outcome, job.Error = time.Time{}, outcome, why
	if !next.IsZero() {
		job.Due, job.Set = next.UTC().Truncate(time.Second), l.now
	}
	if outcome == outcomeDone || outcome == outcomeNothing {
		job.Held, job.Tries = "", 0
	}
	after := l.schedule.Value.With(job)
	if l.met {
		after.Rules = l.summary.Rules
	}
	change, err := Schedule{
		Pointer: l.pointer, Record: l.schedule.Record, Value: l.read(),
	}.Move(after)
	if err != nil {
		return err
	}
	change.Conditions = append(change.Conditions, l.required...)
	return l.apply(ctx, change)
}

// read returns the schedule from its record.
func (l *check) read() registry.Schedule {
	value, err := registry.Decode[registry.Schedule](l.schedule.Record)
	if err != nil {
		return l.schedule.Value
	}
	return value
}

// apply applies a change. A concurrent change of the schedule is not a failure: the table stays
// due, and the next check repeats the work.
func (l *check) apply(ctx context.Context, change Change) error {
	_, err := l.ledger.Step(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	if _, failed := registry.FailedCondition(err); failed {
		l.outcome = outcomeLater
		return nil
	}
	return ledger.StepError("due.apply", err)
}
