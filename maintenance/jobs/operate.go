package jobs

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Under is a job as shown to operators.
type Under struct {
	registry.Job
	State registry.State
	Table moorage.Identifier // empty if the table is gone
}

// Find returns the id of the live table called ident. Errors: as for catalog.Tables.Find.
func (j *Jobs) Find(ctx context.Context, ident moorage.Identifier) (registry.ID, error) {
	return j.tables.Find(ctx, ident)
}

// List returns a page of the jobs of a table, in the order of their keys. The page begins with the
// first key greater than after. A zero pointer means all tables. It has at most limit jobs; 0 means
// all. To get the next page, pass next as after. On the last page, next is empty.
func (j *Jobs) List(ctx context.Context, pointer registry.ID, after string, limit int) (
	all []Under, next string, err error) {
	prefix := ""
	if !pointer.IsZero() {
		prefix = registry.JobPrefix(pointer)
	}
	last := ""
	err = j.ledger.Scan(ctx, registry.TableJob, prefix, after, func(record registry.Record) (bool, error) {
		if limit > 0 && len(all) == limit {
			next = last
			return false, nil
		}
		value, err := ledger.Decode[registry.Job](record)
		if err != nil {
			return false, err
		}
		under := Under{Job: value, State: record.State}
		if under.Table, err = NameOf(ctx, j.ledger, value.Pointer); err != nil {
			return false, err
		}
		all, last = append(all, under), record.Key.ID
		return true, nil
	})
	return all, next, moorage.Annotate("jobs.List", "", err)
}

// NameOf returns the name of a table, or the empty name if the table is gone. It reads no document,
// so it works while the storage is unavailable.
func NameOf(ctx context.Context, l *ledger.Ledger, table registry.ID) (moorage.Identifier, error) {
	records, err := l.Get(ctx, registry.PointerKey(table))
	if err != nil || records[0].State != registry.StateLive {
		return moorage.Identifier{}, err
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	return pointer.Identifier(), err
}

// Runs returns at most limit of the last runs of a table, latest first.
func (j *Jobs) Runs(ctx context.Context, pointer registry.ID, limit int) (runs []registry.Run, err error) {
	records, err := j.ledger.List(ctx, registry.TableRun, registry.RunPrefix(pointer), "", limit)
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		run, err := ledger.Decode[registry.Run](record)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// find returns the job with this id.
func (j *Jobs) find(ctx context.Context, id registry.ID) (*job, error) {
	var found *job
	err := j.ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Job](record)
		if err == nil && value.ID == id {
			found = &job{record: record, value: value}
		}
		return found == nil, err
	})
	if err == nil && found == nil {
		err = moorage.Errorf(moorage.KindNotFound, "No maintenance job has the id %s", id)
	}
	return found, err
}

// Files returns at most limit of the files that a job will delete. It leaves out the first skip
// files.
//
// Errors: KindNotFound if there is no such job; DamagedError.
func (j *Jobs) Files(ctx context.Context, id registry.ID, skip, limit int) ([]Listed, error) {
	const op = "jobs.Files"
	at, err := j.find(ctx, id)
	if err != nil {
		return nil, moorage.Annotate(op, id.String(), err)
	}
	_, store, err := j.storeOf(ctx, at)
	if err != nil {
		return nil, moorage.Annotate(op, id.String(), err)
	}
	var files []Listed
	for _, list := range at.value.Lists {
		if skip >= int(list.Count) {
			skip -= int(list.Count)
			continue
		}
		page, err := j.readList(ctx, store, list)
		if err != nil {
			return nil, moorage.Annotate(op, id.String(), err)
		}
		files = append(files, page[min(skip, len(page)):]...)
		skip = 0
		if len(files) >= limit {
			return files[:limit], nil
		}
	}
	return files, nil
}

// Cancel ends a job on behalf of caller. All files that the job has not deleted stay.
func (j *Jobs) Cancel(ctx context.Context, id registry.ID, caller string) error {
	return j.change(ctx, "jobs.Cancel", id, func(at *job) error {
		var store storage.Store
		if _, found, err := j.storeOf(ctx, at); err == nil {
			store = found
		}
		if err := j.end(ctx, at, OutcomeCancelled, "cancelled by "+caller); err != nil || store == nil {
			return err
		}
		deleteOwn(ctx, j, store, at.value)
		return nil
	})
}

// Retrying holds the settings for the retry of a blocked job. The zero value changes nothing.
type Retrying struct {
	// Confirmed accepts, for this job, that most files of the table are orphans.
	Confirmed bool
}

// Retry lets a blocked job continue where it stopped.
//
// Errors: KindCommitFailed if the job is not blocked; KindIllegalArgument if a setting does not
// apply to the job's kind.
func (j *Jobs) Retry(ctx context.Context, id registry.ID, how Retrying) error {
	return j.change(ctx, "jobs.Retry", id, func(at *job) error {
		if how.Confirmed && at.value.Kind != KindOrphans {
			return moorage.Errorf(moorage.KindIllegalArgument, "Only a job that removes orphans is confirmed. "+
				"The job %s is one of %s", id, at.value.Kind)
		}
		if at.record.State != registry.StateBlocked {
			return moorage.Errorf(moorage.KindCommitFailed, "The job %s is not blocked, it is %s", id, at.record.State)
		}
		state := at.value.Before
		if state != registry.StateWaiting && state != registry.StateDeleting {
			state = registry.StateCollecting
		}
		at.value.Before, at.value.Confirmed = 0, at.value.Confirmed || how.Confirmed
		at.clearFailures()
		return j.put(ctx, at, state)
	})
}

// Pause pauses a job for a reason until an operator resumes it. The node that runs the job notices
// before its next batch.
//
// Errors: KindCommitFailed if the job is already paused, or a program outside the server holds it.
func (j *Jobs) Pause(ctx context.Context, id registry.ID, reason, caller string) error {
	return j.change(ctx, "jobs.Pause", id, func(at *job) error {
		if at.value.Paused {
			return moorage.Errorf(moorage.KindCommitFailed, "The job %s is paused already", id)
		}
		if err := notAssigned(at); err != nil {
			return err
		}
		at.value.Paused = true
		at.value.PausedWhy = moorage.Cut("paused by "+caller+": "+reason, 1000)
		return j.put(ctx, at, at.record.State)
	})
}

// Resume ends the pause of a job.
//
// Errors: KindCommitFailed if the job is not paused.
func (j *Jobs) Resume(ctx context.Context, id registry.ID) error {
	return j.change(ctx, "jobs.Resume", id, func(at *job) error {
		if !at.value.Paused {
			return moorage.Errorf(moorage.KindCommitFailed, "The job %s is not paused", id)
		}
		at.value.Paused, at.value.PausedWhy = false, ""
		at.clearFailures() // a failure after the pause begins a new row
		return j.put(ctx, at, at.record.State)
	})
}

// notAssigned refuses a job that a program outside the server holds.
func notAssigned(at *job) error {
	if at.record.State != registry.StateAssigned {
		return nil
	}
	return moorage.Errorf(moorage.KindCommitFailed,
		"%s works on the job %s outside the server. Stop it, or cancel the job", at.value.Holder, at.value.ID)
}

// Quarantine blocks a job for a reason until an operator retries or cancels it.
//
// Errors: KindCommitFailed if the job is blocked, or a program outside the server holds it.
func (j *Jobs) Quarantine(ctx context.Context, id registry.ID, reason, caller string) error {
	return j.change(ctx, "jobs.Quarantine", id, func(at *job) error {
		if at.record.State == registry.StateBlocked {
			return moorage.Errorf(moorage.KindCommitFailed, "The job %s is blocked", id)
		}
		if err := notAssigned(at); err != nil {
			return err
		}
		at.value.Before, at.quarantinedBy = at.record.State, caller
		at.value.LastError = moorage.Cut("quarantined by "+caller+": "+reason, 1000)
		return j.put(ctx, at, registry.StateBlocked)
	})
}

// change applies do to a job and writes the result. If another process has changed the job in the
// meantime, it starts over.
func (j *Jobs) change(ctx context.Context, op string, id registry.ID, do func(*job) error) error {
	err := j.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		at, err := j.find(ctx, id)
		if err != nil {
			return err
		}
		err = do(at)
		if err == errMoved { //nolint:errorlint // it is returned as it is
			return ledger.ErrRetry
		}
		return err
	})
	return moorage.Annotate(op, id.String(), err)
}

// blockerOf returns the write of a job's blocker record when the job changes to state. A job has
// the record while it is blocked.
func blockerOf(at *job, value registry.Job, state registry.State, now time.Time) ([]registry.Write, error) {
	key := registry.DueBlockedKey(value.Pointer, value.Kind)
	isBlocked := at.record.State == registry.StateBlocked
	if isBlocked == (state == registry.StateBlocked) {
		return nil, nil
	}
	if !isBlocked {
		return ledger.Encode(ledger.Put(key, registry.StateNone,
			registry.Due{Reason: value.LastError, Since: now, By: at.quarantinedBy}))
	}
	return []registry.Write{registry.Delete(key)}, nil
}
