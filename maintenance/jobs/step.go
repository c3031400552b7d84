package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/manifests"
	"moorage/registry"
	"moorage/storage"
)

// Step continues the job at key until it ends or has to wait. It does nothing while another node
// holds the job. It records a failure in the job, and returns the error.
func (j *Jobs) Step(ctx context.Context, key registry.Key) error {
	err := j.assigner.Assign(ctx, jobPrefix+key.ID, jobLife, func(ctx context.Context) error {
		return stepAll(ctx, j, key)
	})
	if errors.Is(err, ledger.ErrAssigned) {
		return nil
	}
	return moorage.Annotate("jobs.Step", key.ID, err)
}

// stepAll takes steps until the job ends or waits.
func stepAll(ctx context.Context, j *Jobs, key registry.Key) error {
	began, err := j.ledger.Time(ctx)
	if err != nil {
		return err
	}
	for {
		at, err := j.read(ctx, key)
		if err != nil || at == nil {
			return err
		}
		err = noteBegun(ctx, j, at)
		before := at.record
		if err == nil {
			err = j.step(ctx, at)
		}
		switch {
		case errors.Is(err, errPaused), errors.Is(err, errDropped), err != nil && ctx.Err() != nil:
			takeBack(context.WithoutCancel(ctx), j, at)
			return ctx.Err()
		case errors.Is(err, errMoved):
			return nil
		case err != nil:
			return j.fail(ctx, at, began, err)
		case at.record.ETag == before.ETag && at.record.State == before.State:
			return nil // the job waits, or is gone
		}
	}
}

// errDeaths means that earlier tries killed their processes.
var errDeaths = fmt.Errorf("the server ended %d times in a row while it worked on this job; check its memory "+
	"limit and the size of the table's manifests", registry.BegunMax)

// noteBegun records in a job that a try begins, before the try reads or deletes files. It returns
// errDeaths if too many tries ended with neither progress nor a failure.
func noteBegun(ctx context.Context, j *Jobs, at *job) error {
	switch at.record.State {
	case registry.StateCollecting, registry.StateDeleting:
	default:
		return nil
	}
	if at.value.Begun >= registry.BegunMax {
		return errDeaths
	}
	at.value.Begun++
	return j.put(ctx, at, at.record.State)
}

// takeBackMax is the maximum time that a stopping process still works on its jobs.
const takeBackMax = 5 * time.Second

// takeBack undoes noteBegun if the process ends the try without dying. If takeBack fails, the try
// counts as one whose process died.
func takeBack(ctx context.Context, j *Jobs, at *job) {
	if at.value.Begun == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeBackMax)
	defer cancel()
	at.value.Begun--
	if err := j.put(ctx, at, at.record.State); err != nil && !errors.Is(err, errMoved) {
		j.log.WarnContext(ctx, "maintenance: could not note that a try ended early", "job", at.value.ID, "error", err)
	}
}

// step takes one step of a job.
func (j *Jobs) step(ctx context.Context, at *job) error {
	switch at.record.State {
	case registry.StateCollecting, registry.StateWaiting, registry.StateDeleting:
	default:
		return nil
	}
	if at.value.Paused {
		return errPaused
	}
	if at.record.State != registry.StateCollecting {
		if why, err := j.doubt(ctx); err != nil || why != "" {
			return cmp.Or(err, errPaused) // the planner logs this error
		}
	}
	_, store, err := j.storeOf(ctx, at)
	if called, ok := errors.AsType[*calledOff](err); ok {
		return j.end(ctx, at, OutcomeCalledOff, called.why)
	}
	if err != nil {
		return err
	}
	switch at.record.State {
	case registry.StateCollecting:
		err = j.collect(ctx, at, store)
	case registry.StateWaiting:
		err = j.begin(ctx, at)
	default:
		err = j.deleteAll(ctx, at, store)
	}
	if called, ok := errors.AsType[*calledOff](err); ok {
		return j.endWith(ctx, at, store, OutcomeCalledOff, called.why)
	}
	return err
}

// begin starts the deletions of a job if its time has come.
func (j *Jobs) begin(ctx context.Context, at *job) error {
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return err
	}
	if value, moved := at.value.AsOf(now); moved {
		at.value = value
		return j.put(ctx, at, registry.StateWaiting)
	}
	if now.Before(at.value.NotBefore) {
		return nil
	}
	return j.put(ctx, at, registry.StateDeleting)
}

// storeOf returns the location and the storage of the warehouse of a job's table.
func (j *Jobs) storeOf(ctx context.Context, at *job) (string, storage.Store, error) {
	_, table, err := j.tables.TableByID(ctx, at.value.Pointer)
	if moorage.KindOf(err) == moorage.KindNoSuchTable {
		return "", nil, absent(ctx, j, at.value.Pointer)
	}
	if err != nil {
		return "", nil, err
	}
	return j.tables.WarehouseLocation(ctx, table.Warehouse)
}

// fail records the progress of a job, and the reason why its step failed. began is when the try
// began. If another process has changed the job in the meantime, fail records nothing. It returns
// cause.
func (j *Jobs) fail(ctx context.Context, at *job, began time.Time, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return cause
	}
	state, blocks := at.record.State, false
	row := FailureRow{Count: at.value.Laters, Since: at.value.LaterSince, Until: at.value.RestsUntil}
	at.value.LastError = moorage.Cut(moorage.OneLine(cause.Error()), 1000)
	switch {
	case errors.Is(cause, storage.ErrSlowDown): // the storage works, but is busy
		row = FailureRow{Until: now.Add(LaterPause)}
	case isLasting(cause):
		at.value.Tries++
		blocks = at.value.Tries >= TriesMax || errors.Is(cause, errDeaths)
	default:
		row = row.Again(began, now)
		blocks = row.Blocks()
	}
	at.value.Laters, at.value.LaterSince, at.value.RestsUntil = row.Count, row.Since, row.Until
	at.value.Begun = 0
	if blocks {
		at.value.Before, state = state, registry.StateBlocked
	}
	err = j.put(ctx, at, state)
	if moorage.KindOf(err) == moorage.KindInternal && !errors.Is(err, errMoved) {
		j.log.ErrorContext(ctx, "the failure of a maintenance job cannot be recorded", "job", at.value.ID, "error", err)
	}
	if err == nil && state == registry.StateBlocked {
		j.log.ErrorContext(ctx, "maintenance job is blocked until an operator acts", "job", at.value.ID,
			"kind", at.value.Kind, "pointer", at.value.Pointer, "error", at.value.LastError)
	}
	return cause
}

// isLasting reports whether another try would meet the same failure.
func isLasting(err error) bool {
	if _, ok := errors.AsType[*unreadableError](err); ok || errors.Is(err, manifests.ErrTooMuch) {
		return true
	}
	if _, ok := errors.AsType[*DamagedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*BlockedError](err)
	return ok || errors.Is(err, errDeaths)
}

// BlockedError explains why a job needs an operator.
type BlockedError struct{ Why string }

// Error returns the text of the error.
func (e *BlockedError) Error() string { return e.Why }
