package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"moorage"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// errTaskGone says that a purge was called off, or finished by somebody else.
var errTaskGone = errors.New("catalog: the task is gone")

// blockedPause is how long a purge that was given up rests before it is tried again, once: whoever
// mends its storage need not tell.
const blockedPause = time.Hour

// purgeAll works on every purge task that there is, each as far as it goes, on one that was given up only in
// the first round of this process and then every blockedPause. A task that cannot be read is left alone, and keeps nobody from the
// others.
func (c *Catalog) purgeAll(ctx context.Context) error {
	now := c.now()
	last := c.blockedTried.Load()
	tryBlocked := last == nil || now.Sub(*last) >= blockedPause
	if tryBlocked {
		c.blockedTried.Store(&now)
	}
	var found PurgeStats
	unreadable := make(map[registry.Key]bool)
	err := c.scan(ctx, registry.TableTask, "", "", func(record registry.Record) (bool, error) {
		task, err := readTask(record)
		switch {
		case err != nil:
			blocker, failed := c.blocksTransaction(ctx, record.Key)
			if failed == nil && !blocker { // else the recovery tells of the transaction
				c.tellUnreadable(ctx, record, err)
				unreadable[record.Key] = true
			}
			return true, failed
		case task.Kind != registry.TaskPurge:
			return true, nil
		}
		left := record
		if (record.State != registry.StateBlocked || tryBlocked) && !now.Before(task.NotBefore) {
			left, err = c.tryPurge(ctx, record, task)
		}
		found.see(left)
		return true, err
	})
	if err == nil {
		c.purges.looked(found, unreadable)
	}
	return err
}

// tellUnreadable logs that a task cannot be read, unless that is known.
func (c *Catalog) tellUnreadable(ctx context.Context, record registry.Record, cause error) {
	if !c.purges.toldOf(record.Key) {
		c.log.ErrorContext(ctx, "the record of a task cannot be read; it is left alone until an operator looks, and has it removed with moorage recover abort",
			"task", record.Key.ID, "key", record.Key.String(), "state", record.State, "error", cause)
	}
}

// tryPurge makes one attempt, and returns what is left of the task, or the zero record. An error is about the store or
// ctx, not about the purge.
func (c *Catalog) tryPurge(ctx context.Context, record registry.Record, task registry.Task) (registry.Record, error) {
	err := c.purge(ctx, task)
	switch {
	case ctx.Err() != nil:
		return record, ctx.Err()
	case err == nil, errors.Is(err, errTaskGone):
		return registry.Record{}, nil
	}
	c.purges.failed()
	c.log.WarnContext(ctx, "purge did not finish", "task", task.ID, "pointer", task.Pointer, "error", err)
	record.State, err = c.noteFailure(ctx, record, task, err)
	if errors.Is(err, errAgain) {
		err = nil // another node noted one
	}
	return record, err
}

// purgeAttemptsMax is after how many failures a purge is given up: Check tells of it, and it is tried rarely.
const purgeAttemptsMax = 50

// noteFailure writes down in the task why it did not finish, and returns its new state; errAgain if it has changed meanwhile.
func (c *Catalog) noteFailure(ctx context.Context, record registry.Record, task registry.Task, cause error) (registry.State, error) {
	task.Attempts++
	task.LastError = cause.Error()
	state := registry.StateNone
	if task.Attempts >= purgeAttemptsMax {
		state = registry.StateBlocked
	}
	writes, err := encodePuts(put{record.Key, state, task})
	if err != nil {
		return state, err
	}
	_, err = c.store.Apply(ctx, registry.Batch{Conditions: []registry.Condition{unchangedSince(record)}, Writes: writes})
	if err == nil && state == registry.StateBlocked {
		c.log.ErrorContext(ctx, "purge is given up until an operator mends its storage", "task", task.ID, "error", cause)
	}
	return state, again(err)
}

// purge deletes the files of one dropped table, then its records:
//
//	dropped → purging → files, in batches → pointer, claims and task gone, in one Apply
//
// From purging on the table cannot come back. The pointer is read again before each batch, so
// that a worker that was taken for dead, and woke, stops. All of it may be done
// again from any point.
func (c *Catalog) purge(ctx context.Context, task registry.Task) error {
	pointer, err := c.beginPurge(ctx, task)
	if err != nil {
		return err
	}
	store, giveBack, err := c.storageOf(ctx, pointer)
	if err != nil {
		return err
	}
	defer giveBack()
	document, err := c.readDocument(ctx, aTable, store, pointer.MetadataLocation)
	switch moorage.KindOf(err) {
	case moorage.KindNotFound:
		// Either there never was one, or it went last in an earlier attempt.
		return c.endPurge(ctx, task)
	default:
		if err != nil {
			return err
		}
	}
	if err := c.purgeDocument(ctx, store, document.(*metadata.Document), pointer); err != nil {
		return err
	}
	return c.endPurge(ctx, task)
}

// endPurge removes the records of a table whose files are gone.
func (c *Catalog) endPurge(ctx context.Context, task registry.Task) error {
	return c.endPointer(ctx, OpPurge, task.Pointer, func(state registry.State, pointer registry.Pointer) bool {
		return state == registry.StatePurging && pointer.Task == task.ID
	})
}

// storageOf borrows the storage that reaches a table's files: its warehouse's, or, if that is gone or
// another by now, one that reaches what the table claimed.
func (c *Catalog) storageOf(ctx context.Context, pointer registry.Pointer) (storage.Store, func(), error) {
	ch, err := c.resolveChain(ctx, pointer.Warehouse, nil)
	switch {
	case err == nil && (pointer.Storage == nil || maps.Equal(pointer.Storage, ch.warehouse.Storage)):
		return ch.storage, func() {}, nil
	case err != nil && moorage.KindOf(err) != moorage.KindNoSuchWarehouse:
		return nil, nil, err
	}
	return c.storages.borrow(storage.Place{Roots: pointer.Claims, Options: pointer.Storage})
}

// beginPurge marks the pointer as being purged, unless it is already.
func (c *Catalog) beginPurge(ctx context.Context, task registry.Task) (registry.Pointer, error) {
	var pointer registry.Pointer
	err := c.attempts(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.get(ctx, registry.TaskKey(task.ID), registry.PointerKey(task.Pointer))
		if err != nil {
			return err
		}
		if !records[0].Exists() || !records[1].Exists() {
			return errTaskGone
		}
		if pointer, err = decode[registry.Pointer](records[1]); err != nil {
			return err
		}
		switch {
		case pointer.Task != task.ID:
			return errTaskGone
		case records[1].State == registry.StatePurging:
			return nil
		case records[1].State != registry.StateDropped:
			return errTaskGone
		}
		change, err := c.newChange(ctx, string(OpPurge)+"-begin", pointer.Identifier())
		if err != nil {
			return err
		}
		pointer.Since = c.now()
		writes, err := encodePuts(put{records[1].Key, registry.StatePurging, pointer})
		if err != nil {
			return err
		}
		return again(c.applyStep(ctx, change, registry.Batch{
			Conditions: []registry.Condition{unchangedSince(records[0]), unchangedSince(records[1])},
			Writes:     writes,
		}))
	})
	return pointer, err
}

// purgeDocument deletes the files that document names, but for those that have become another table's.
func (c *Catalog) purgeDocument(ctx context.Context, store storage.Store, document *metadata.Document, pointer registry.Pointer) error {
	log := c.log.With("task", pointer.Task, "ident", pointer.Identifier())
	others, err := newSuccessors(c, log, pointer)
	if err != nil {
		return err
	}
	err = purgeFiles(ctx, log, store, document, pointer.MetadataLocation, pointer.Claims, func(batch []string) error {
		if err := c.attempts(ctx, moorage.KindUnavailable, func(int) error { return others.look(ctx) }); err != nil {
			return err
		}
		if batch = others.without(batch); len(batch) == 0 {
			return nil
		}
		return store.Delete(ctx, batch...)
	})
	if err == nil && others.kept > 0 {
		log.InfoContext(ctx, "purge leaves files that another table names, or may name, which lives in the table's location by now", "files", others.kept)
	}
	return err
}

// endPointer removes, in one Apply, a pointer that is over, the claims that it still holds, and
// its task. That somebody else did it, or has made something else of it, is not an error.
func (c *Catalog) endPointer(ctx context.Context, operation Operation, id registry.ID, over func(registry.State, registry.Pointer) bool) error {
	return c.attempts(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.get(ctx, registry.PointerKey(id))
		if err != nil || !records[0].Exists() {
			return err
		}
		pointer, err := decode[registry.Pointer](records[0])
		if err != nil || !over(records[0].State, pointer) {
			return err
		}
		conditions, deletes, err := c.release(ctx, pointer)
		if err != nil {
			return err
		}
		if !pointer.Task.IsZero() {
			deletes = append(deletes, registry.Delete(registry.TaskKey(pointer.Task)))
		}
		change, err := c.newChange(ctx, string(operation), pointer.Identifier())
		if err != nil {
			return err
		}
		return again(c.applyStep(ctx, change, registry.Batch{
			Conditions: slices.Concat([]registry.Condition{unchangedSince(records[0])}, conditions),
			Writes:     append(deletes, registry.Delete(records[0].Key)),
		}))
	})
}

// unchangedSince returns the condition that record has not changed.
func unchangedSince(record registry.Record) registry.Condition {
	return registry.ETagIs(record.Key, record.ETag)
}
