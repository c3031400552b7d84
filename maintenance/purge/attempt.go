package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/documents"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// lastingMax is the maximum number of attempts for a failure that would recur in every attempt.
	lastingMax = 3
	// takeBackMax is the maximum time that a stopping process still works on its purges.
	takeBackMax = 5 * time.Second
)

// errGone means that a purge was called off, or that another node finished it.
var errGone = errors.New("purge: the task is gone")

// pending is the purge of a table marked as purging.
type pending struct {
	record registry.Record // of the task
	task   registry.Task
	table  registry.Pointer
	// isNoted is true if the task records that this attempt has begun; see noteBegun.
	isNoted bool
}

// attempt makes one attempt under the context watched. That context ends if there is no progress,
// or if this node loses the assignment. attempt records the result under ctx.
func (w *Worker) attempt(ctx, watched context.Context, d *due, dog *watchdog) error {
	var work pending
	cause := worker.Safely(watched, func(ctx context.Context) (err error) {
		if work, err = w.mark(ctx, d); err == nil {
			err = w.noteBegun(ctx, &work)
		}
		if err == nil {
			err = w.purge(ctx, work, dog)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		w.takeBack(context.WithoutCancel(ctx), work)
		return ctx.Err()
	case cause == nil, errors.Is(cause, errGone):
		return nil
	case errors.Is(context.Cause(watched), ledger.ErrAssignmentLost):
		w.log.WarnContext(ctx, "purge was left to other nodes: its assignment could not be renewed in time",
			"task", d.task, "pointer", d.pointer)
		w.takeBack(ctx, work)
		return ledger.ErrAssignmentLost
	case !work.record.Exists():
		return cause // an error from the store
	}
	log := w.log
	if panicked, ok := errors.AsType[*worker.PanicError](cause); ok {
		log = log.With("stack", string(panicked.Stack))
	}
	if errors.Is(context.Cause(watched), errStalled) {
		cause = fmt.Errorf("%w: %w", errStalled, cause)
	}
	w.noteFailed()
	d.failed = cause
	log.WarnContext(ctx, "purge did not finish",
		"task", d.task, "pointer", d.pointer, "error", moorage.OneLine(cause.Error()))
	d.left = work.record
	var err error
	d.left.State, err = w.writeFailure(ctx, work, cause)
	return ledger.IgnoreRetry(err) // a changed task means that another node recorded an attempt
}

// writeFailure records in the task why the attempt failed, and returns the new state of the task.
// It returns ledger.ErrRetry if the task has changed in the meantime.
func (w *Worker) writeFailure(ctx context.Context, work pending, cause error) (registry.State, error) {
	task, state := work.task, registry.StateNone
	task.Attempts++
	task.LastError = moorage.OneLine(cause.Error())
	died, lasts := errors.Is(cause, errDeaths), errors.Is(cause, manifests.ErrTooMuch)
	if task.Attempts >= AttemptsMax || died || lasts && task.Attempts >= lastingMax {
		state = registry.StateBlocked
	}
	if !died { // after deaths, only an operator's retry resets the count
		task.Begun = 0
	}
	writes, err := ledger.Encode(ledger.Put(work.record.Key, state, task))
	if err != nil {
		return state, err
	}
	_, err = w.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(work.record)}, Writes: writes,
	})
	if err == nil && state == registry.StateBlocked {
		w.log.ErrorContext(ctx, "purge is given up until an operator fixes its storage",
			"task", task.ID, "error", task.LastError)
	}
	return state, ledger.RetryOnConflict(err)
}

// errDeaths means that earlier attempts killed their processes.
var errDeaths = errors.New("purge: the server ended " + strconv.Itoa(registry.BegunMax) +
	" times in a row while it purged this table; check its memory limit and the size of the table's manifests")

// noteBegun records in the task that an attempt begins, before the attempt reads anything of the
// table.
func (w *Worker) noteBegun(ctx context.Context, work *pending) error {
	if work.isNoted {
		return nil
	}
	next := work.task
	next.Begun++
	err := w.writeTask(ctx, work, next)
	work.isNoted = err == nil
	return err
}

// takeBack undoes noteBegun if the process ends the attempt without dying. If takeBack fails, the
// attempt counts as one whose process died.
func (w *Worker) takeBack(ctx context.Context, work pending) {
	if !work.isNoted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeBackMax)
	defer cancel()
	next := work.task
	next.Begun--
	if err := w.writeTask(ctx, &work, next); err != nil && !errors.Is(err, errGone) {
		w.log.WarnContext(ctx, "purge: could not note that an attempt ended early", "task", next.ID, "error", err)
	}
}

// writeTask replaces the task of work with next. It returns errGone if the task has changed in the
// meantime.
func (w *Worker) writeTask(ctx context.Context, work *pending, next registry.Task) error {
	writes, err := ledger.Encode(ledger.Put(work.record.Key, work.record.State, next))
	if err != nil {
		return err
	}
	etags, err := w.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(work.record)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return errGone
	}
	if err != nil {
		return ledger.StepError("purge.writeTask", err)
	}
	work.task = next
	work.record.ETag, work.record.Value = etags[0], writes[0].Value
	return nil
}

// mark reads the task and its table, and marks the table as purging. After that, the table cannot
// be restored. If mark fails, it also returns the records that it has read. The error is errDeaths
// if too many attempts killed their processes.
func (w *Worker) mark(ctx context.Context, d *due) (work pending, err error) {
	err = w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := w.ledger.Get(ctx, registry.TaskKey(d.task), registry.PointerKey(d.pointer))
		if err != nil {
			return err
		}
		if !records[0].Exists() || !records[1].Exists() {
			return errGone
		}
		if work.task, err = registry.DecodeTask(records[0]); err != nil {
			return errGone // the next search logs that
		}
		work.record = records[0]
		if work.table, err = ledger.Decode[registry.Pointer](records[1]); err != nil {
			return err
		}
		switch {
		case work.task.Begun >= registry.BegunMax:
			return errDeaths
		case work.table.Task != d.task:
			return errGone
		case records[1].State == registry.StatePurging:
			return nil
		case records[1].State != registry.StateDropped:
			return errGone
		}
		change, err := w.ledger.NewChange(ctx, moorage.System(operation), operation+"-begin", work.table.Identifier())
		if err != nil {
			return err
		}
		change.Items = []registry.Item{registry.PointerItem(work.table, registry.Pointer{})}
		work.table.Dropped = work.table.DroppedAt(records[1].State)
		work.table.Since = w.now()
		summary := work.table.LastIn(records[1].State).Summary
		work.table.Last = work.table.Written(registry.StatePurging, change, summary)
		begun := work.task
		begun.Begun++
		writes, err := ledger.Encode(
			ledger.Put(records[0].Key, records[0].State, begun),
			ledger.Replace(records[1], registry.StatePurging, work.table))
		if err != nil {
			return err
		}
		etags, err := w.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: []registry.Condition{ledger.Unchanged(records[0]), ledger.Unchanged(records[1])},
			Writes:     writes,
		})
		if err != nil {
			return ledger.RetryOnConflict(err)
		}
		if len(etags) == 0 { // a later read showed that the Apply had happened
			return ledger.ErrRetry
		}
		work.task, work.isNoted = begun, true
		work.record.ETag, work.record.Value = etags[0], writes[0].Value
		return nil
	})
	return work, err
}

// purge deletes the files of a marked table, and then the records of the table. It may be repeated
// after an interruption at any point.
func (w *Worker) purge(ctx context.Context, work pending, dog *watchdog) error {
	owing, folders, err := w.jobsOf(ctx, work.table.ID)
	if err != nil {
		return err
	}
	files, giveBack, err := w.tables.StorageOf(ctx, work.table, registry.StatePurging, folders...)
	if err != nil {
		return err
	}
	defer giveBack()
	lister, _ := files.(storage.Lister)
	files = dog.wrap(files)
	document, err := w.tables.ReadMetadata(ctx, work.table, files)
	switch {
	case moorage.KindOf(err) == moorage.KindNotFound:
		// The file never existed, an earlier attempt deleted it as its last file, or its disk is
		// not mounted.
		w.log.WarnContext(ctx, "purge finds no metadata file, so it ends and deletes nothing; "+
			"if the disk was not mounted, delete the table's folder",
			"task", work.task.ID, "ident", work.table.Identifier(), "file", work.table.MetadataLocation)
		return w.finish(ctx, work, true)
	case err != nil:
		return err
	}
	log, kept, deleted := w.log.With("task", work.task.ID, "ident", work.table.Identifier()), 0, 0
	owed, err := readOwed(ctx, log, files, owing)
	if err != nil {
		return err
	}
	earlier := func(ctx context.Context, location string) (*metadata.Document, error) {
		version := work.table
		version.MetadataLocation = location
		return w.tables.ReadMetadata(ctx, version, files)
	}
	err = eachBatch(ctx, log, files, document, work.table, owed, earlier, func(batch []string) error {
		all := len(batch)
		batch, err := w.held(ctx, work.table, batch)
		if kept += all - len(batch); err != nil || len(batch) == 0 {
			return err
		}
		deleted += len(batch)
		return documents.DeletePurged(ctx, files, batch)
	})
	if err != nil {
		return err
	}
	if kept > 0 {
		log.InfoContext(ctx, "purge leaves files in a location that belongs to another table now", "files", kept)
	}
	left := kept > 0
	if !left {
		if left, err = hasFiles(ctx, lister, work.table); ctx.Err() != nil {
			return err
		}
	}
	if left || err != nil {
		log.InfoContext(ctx, "purge may leave files that the table does not name, so its locations stay closed to "+
			"others until an operator clears them", "locations", work.table.Claims, "error", err)
	}
	if err := w.finish(ctx, work, left || err != nil); err != nil {
		return err
	}
	owed.forget(ctx, log, files)
	log.InfoContext(ctx, "purged: the files of a dropped table are deleted", "warehouse", work.table.Warehouse,
		"owner", moorage.NameOf(work.table.Creator), "files", deleted)
	return nil
}

// hasFiles reports whether files remain in the locations of a purged table. It also returns true if
// the storage cannot list them.
func hasFiles(ctx context.Context, lister storage.Lister, table registry.Pointer) (bool, error) {
	if lister == nil {
		return true, nil
	}
	for _, claim := range table.Claims {
		for after := ""; ; {
			page, err := lister.List(ctx, claim, after, 1)
			if err != nil || len(page.Files) > 0 {
				return true, err
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return false, nil
}

// held returns the files of batch that are in a location of the table. It returns errGone if the
// purge has ended or was called off. So a worker that lost its purge while it slept stops here.
//
// While a purge is pending, no other table gets the locations of its table. This is the last check
// before the deletion.
func (w *Worker) held(ctx context.Context, table registry.Pointer, batch []string) ([]string, error) {
	keys := []registry.Key{registry.PointerKey(table.ID)}
	for _, claim := range table.Claims {
		keys = append(keys, registry.LocationKey(claim))
	}
	records, err := w.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	if records[0].State != registry.StatePurging {
		return nil, errGone
	}
	now, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return nil, err
	}
	if now.Task != table.Task {
		return nil, errGone
	}
	var own []storage.Location
	for _, record := range records[1:] {
		if record.State != registry.StateOwner {
			continue
		}
		claim, err := ledger.Decode[registry.LocationClaim](record)
		if err != nil {
			return nil, err
		}
		if claim.Pointer != table.ID {
			continue
		}
		location, err := storage.Parse(record.Key.ID)
		if err != nil {
			return nil, moorage.E("purge.held", record.Key.ID, moorage.KindInternal, err)
		}
		own = append(own, location)
	}
	return slices.DeleteFunc(batch, func(path string) bool {
		location, err := storage.ParseFile(path)
		return err != nil || !isWithin(own, location)
	}), nil
}

// finish removes the task, the record of its table, and the table's claims in one Apply. left is
// true if files may remain in the locations of the table. It is not an error if another node has
// already removed them, or if the task no longer has to purge the table.
func (w *Worker) finish(ctx context.Context, work pending, left bool) error {
	ending := claims.Ending{How: registry.EndedPurge, Lasting: left}
	return w.locations.End(ctx, operation, work.table.ID, ending, func(
		state registry.State, table registry.Pointer) bool {
		return state == registry.StatePurging && table.Task == work.task.ID
	})
}
