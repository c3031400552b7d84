package leases

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
)

// AssignmentResult is the result of an assignment.
type AssignmentResult struct {
	Outcome string // OutcomeDone, OutcomeNothing, OutcomeFailed or OutcomeReleased
	Files   int64  // number of rewritten files
	Bytes   int64
	Error   string // only for OutcomeFailed
}

// assignedJob is a job assigned to a program.
type assignedJob struct {
	record registry.Record
	value  registry.Job
}

// Progress renews the lease of an assignment, and returns it.
//
// Errors: KindNotFound; KindForbidden for the work of another caller; KindCommitFailed if the lease
// is lost, after which the program must stop; KindUnavailable and KindCommitUnknown, after which it
// should retry.
func (w *Work) Progress(ctx context.Context, caller moorage.Caller, id registry.ID) (Granted, error) {
	const op = "leases.Progress"
	at, err := w.find(ctx, caller, id)
	if err != nil {
		return Granted{}, moorage.Annotate(op, id.String(), err)
	}
	lease := registry.LeaseID{Pointer: at.value.Pointer, Token: at.value.Lease}
	renewed, _, err := w.config.Leases.Renew(ctx, caller, []ID{lease})
	if err != nil {
		return Granted{}, moorage.Annotate(op, id.String(), err)
	}
	if len(renewed) == 0 {
		return Granted{}, errLost(id)
	}
	return renewed[0], nil
}

func errLost(id registry.ID) error {
	return moorage.Errorf(moorage.KindCommitFailed, "The lease of the job %s is lost: others may work on the table", id)
}

// Finish ends an assignment and its lease. Failed work is due again later, or blocked after
// jobs.TriesMax failures in a row. Released work is due at once, and does not count as a failure.
//
// Errors: as for Progress, and KindBadRequest. A second Finish returns KindNotFound.
func (w *Work) Finish(ctx context.Context, caller moorage.Caller, id registry.ID, ended AssignmentResult) error {
	const op = "leases.Finish"
	switch {
	case ended.Outcome != OutcomeDone && ended.Outcome != OutcomeNothing && ended.Outcome != OutcomeFailed &&
		ended.Outcome != OutcomeReleased:
		return moorage.Errorf(moorage.KindBadRequest, "Invalid outcome %q: done, nothing, failed or released",
			moorage.Cut(ended.Outcome, 50))
	case ended.Files < 0 || ended.Bytes < 0:
		return moorage.Errorf(moorage.KindBadRequest, "Files and bytes are not below zero")
	}
	err := w.config.Ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		at, err := w.find(ctx, caller, id)
		if err != nil {
			return err
		}
		planned, err := w.config.Leases.PlanEnd(ctx, ID{Pointer: at.value.Pointer, Token: at.value.Lease}, id)
		if err != nil {
			return err
		}
		if planned == nil {
			return errLost(id)
		}
		now, err := w.config.Ledger.Time(ctx)
		if err != nil {
			return err
		}
		done, err := w.end(ctx, at, due.Change{
			Conditions: []registry.Condition{planned.Condition}, Writes: []registry.Write{planned.Write},
		}, ended, now)
		if err == nil && !done {
			return ledger.ErrRetry
		}
		return err
	})
	return moorage.Annotate(op, id.String(), err)
}

// find returns the assigned job with an id.
func (w *Work) find(ctx context.Context, caller moorage.Caller, id registry.ID) (found assignedJob, err error) {
	err = w.config.Ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Job](record)
		if err == nil && value.ID == id && record.State == registry.StateAssigned {
			found = assignedJob{record, value}
		}
		return !found.record.Exists(), nil
	})
	switch {
	case err != nil:
	case !found.record.Exists():
		err = moorage.Errorf(moorage.KindNotFound, "No job with the id %s is assigned", id)
	case found.value.Caller != caller.Name:
		err = moorage.Errorf(moorage.KindForbidden, "The job %s is assigned to another caller", id)
	}
	return found, err
}

// end ends a job, together with change. It returns false if a record has changed in the meantime.
func (w *Work) end(ctx context.Context, at assignedJob, change due.Change, ended AssignmentResult,
	now time.Time) (bool, error) {
	records, err := w.config.Ledger.Get(ctx, registry.ScheduleKey(at.value.Pointer))
	if err != nil {
		return false, err
	}
	schedule, err := due.DecodeSchedule(at.value.Pointer, records[0])
	if err != nil {
		return false, &unreadError{err}
	}
	moved, err := w.nextSchedule(ctx, schedule, at.value, ended, now)
	if err != nil {
		return false, err
	}
	change.Add(moved)
	value := at.value
	value.Totals.Files, value.Totals.Bytes = ended.Files, ended.Bytes
	writes, err := jobs.EndWrites(ctx, w.config.Ledger, value, ended.Outcome, ended.Error, now)
	if err != nil {
		return false, err
	}
	change.Conditions = append(change.Conditions, ledger.Unchanged(at.record))
	change.Writes = append(change.Writes, writes...)
	return w.apply(ctx, "leases.end", change)
}

// nextSchedule returns the change of a table's schedule when an assignment on it has ended. It
// reads the document only for successful work. So the work of a dead program can be taken back even
// if the storage is unavailable.
func (w *Work) nextSchedule(ctx context.Context, schedule due.Schedule, job registry.Job,
	ended AssignmentResult, now time.Time) (due.Change, error) {
	pointers, err := w.config.Ledger.Get(ctx, registry.PointerKey(job.Pointer))
	if err != nil {
		return due.Change{}, err
	}
	if pointers[0].State != registry.StateLive {
		return schedule.End(), nil
	}
	kind := schedule.Value.Job(job.Kind)
	kind.Last, kind.Outcome, kind.Error = now, ended.Outcome, moorage.Cut(moorage.OneLine(ended.Error), errorBytesMax)
	if ended.Outcome == OutcomeDone || ended.Outcome == OutcomeNothing {
		version, _, err := w.config.Tables.TableByID(ctx, job.Pointer)
		if err != nil {
			return due.Change{}, err
		}
		summary := version.Document.Summary()
		kind.Tries = 0
		kind.Base.Snapshots, kind.Base.Seq = summary.Snapshots, summary.Seq
		if summary.Files != metadata.Unsaid {
			kind.Base.Files = summary.Files
		}
		return schedule.Move(schedule.Value.With(kind))
	}
	if ended.Outcome == OutcomeReleased {
		kind.Due, kind.Set, kind.Mode = now.UTC().Truncate(time.Second), now, due.ModeEvent
		return schedule.Move(schedule.Value.With(kind))
	}
	kind.Tries++
	if kind.Tries >= jobs.TriesMax {
		return schedule.Block(kind, kind.Error, "", now)
	}
	kind.Due, kind.Mode = now.Add(againFirst<<(kind.Tries-1)).UTC().Truncate(time.Second), due.ModeEvent
	kind.Set = now
	return schedule.Move(schedule.Value.With(kind))
}
