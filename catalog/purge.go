package catalog

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// errTaskGone says that a purge was called off, or finished by somebody else.
var errTaskGone = errors.New("catalog: the task is gone")

// purgeAttemptsMax is after how many failures a purge is given up: Check tells of it, and it is tried rarely.
const purgeAttemptsMax = 50

// noteFailure writes down in the task why it did not finish, and returns its new state; ledger.ErrRetry if it has changed meanwhile.
func (c *Catalog) noteFailure(ctx context.Context, record registry.Record, task registry.Task, cause error) (registry.State, error) {
	task.Attempts++
	task.LastError = moorage.OneLine(cause.Error())
	state := registry.StateNone
	if task.Attempts >= purgeAttemptsMax {
		state = registry.StateBlocked
	}
	writes, err := ledger.Encode(ledger.Put(record.Key, state, task))
	if err != nil {
		return state, err
	}
	_, err = c.ledger.Step(ctx, registry.Batch{Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: writes})
	if err == nil && state == registry.StateBlocked {
		c.log.ErrorContext(ctx, "purge is given up until an operator mends its storage", "task", task.ID, "error", task.LastError)
	}
	return state, ledger.RetryOnConflict(err)
}

// purging is a purge whose pointer is marked.
type purging struct {
	record  registry.Record // of the task
	task    registry.Task
	pointer registry.Pointer
}

// purge deletes the files of one dropped table, then its records:
//
//	dropped → purging → files, in batches → pointer, claims and task gone, in one Apply
//
// From purging on, which is the work of beginPurge, the table cannot come back. The pointer is read again before each batch, so
// that a worker that was taken for dead, and woke, stops. All of it may be done
// again from any point.
func (c *Catalog) purge(ctx context.Context, work purging, dog *watchdog) error {
	pointer := work.pointer
	store, giveBack, err := c.directory.StorageOf(ctx, pointer, registry.StatePurging)
	if err != nil {
		return err
	}
	defer giveBack()
	store = dog.over(store)
	document, err := c.readDocument(ctx, aTable, pointer.Warehouse, store, pointer.MetadataLocation)
	switch moorage.KindOf(err) {
	case moorage.KindNotFound:
		// Either there never was one, or it went last in an earlier attempt. Or its disk is not mounted.
		c.log.WarnContext(ctx, "purge finds no metadata file, so it ends and deletes nothing; if the disk was not mounted, delete the table's folder",
			"task", work.task.ID, "ident", pointer.Identifier(), "file", pointer.MetadataLocation)
		return c.endPurge(ctx, work.task)
	default:
		if err != nil {
			return err
		}
	}
	if err := c.purgeDocument(ctx, store, document.(*metadata.Document), pointer); err != nil {
		return err
	}
	return c.endPurge(ctx, work.task)
}

// endPurge removes the records of a table whose files are gone.
func (c *Catalog) endPurge(ctx context.Context, task registry.Task) error {
	return c.endPointer(ctx, OpPurge, task.Pointer, func(state registry.State, pointer registry.Pointer) bool {
		return state == registry.StatePurging && pointer.Task == task.ID
	})
}

// beginPurge reads the task and its pointer, and marks that as being purged, unless it is already. After an error it returns what it has read.
func (c *Catalog) beginPurge(ctx context.Context, d *duePurge) (work purging, err error) {
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.TaskKey(d.task), registry.PointerKey(d.pointer))
		if err != nil {
			return err
		}
		if !records[0].Exists() || !records[1].Exists() {
			return errTaskGone
		}
		if work.task, err = readTask(records[0]); err != nil {
			return errTaskGone // the next look tells
		}
		work.record = records[0]
		if work.pointer, err = ledger.Decode[registry.Pointer](records[1]); err != nil {
			return err
		}
		switch {
		case work.pointer.Task != d.task:
			return errTaskGone
		case records[1].State == registry.StatePurging:
			return nil
		case records[1].State != registry.StateDropped:
			return errTaskGone
		}
		change, err := c.ledger.NewChange(ctx, string(OpPurge)+"-begin", work.pointer.Identifier())
		if err != nil {
			return err
		}
		work.pointer.Since = c.now()
		writes, err := ledger.Encode(ledger.Put(records[1].Key, registry.StatePurging, work.pointer))
		if err != nil {
			return err
		}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: []registry.Condition{ledger.Unchanged(records[0]), ledger.Unchanged(records[1])},
			Writes:     writes,
		})
		return ledger.RetryOnConflict(err)
	})
	return work, err
}

// purgeDocument deletes the files that document names in the locations that the pointer holds. It
// reads the pointer and its claims before each batch. A worker that was taken for dead and wakes
// stops then.
//
// Nothing that is deleted is another table's. While the pointer awaits its purge, or is purging,
// its claims pass on to nobody. A version of the server that let them pass on may have run before,
// or may run on another node: what lies in a location that is not the pointer's any more stays.
func (c *Catalog) purgeDocument(ctx context.Context, store storage.Store, document *metadata.Document, pointer registry.Pointer) error {
	log, kept := c.log.With("task", pointer.Task, "ident", pointer.Identifier()), 0
	err := purgeFiles(ctx, log, store, document, pointer.MetadataLocation, pointer.Claims, func(batch []string) error {
		held, err := c.heldLocations(ctx, pointer)
		if err != nil {
			return err
		}
		all := len(batch)
		batch = slices.DeleteFunc(batch, func(path string) bool { return !isWithin(held, path) })
		if kept += all - len(batch); len(batch) == 0 {
			return nil
		}
		return store.Delete(ctx, batch...)
	})
	if err == nil && kept > 0 {
		log.InfoContext(ctx, "purge leaves files in a location that belongs to another table now", "files", kept)
	}
	return err
}

// heldLocations returns those of the pointer's claims that it still holds; errTaskGone if its purge
// is over or was called off.
func (c *Catalog) heldLocations(ctx context.Context, pointer registry.Pointer) ([]storage.Location, error) {
	keys := []registry.Key{registry.PointerKey(pointer.ID)}
	for _, claim := range pointer.Claims {
		keys = append(keys, registry.LocationKey(claim))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	if records[0].State != registry.StatePurging {
		return nil, errTaskGone
	}
	now, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return nil, err
	}
	if now.Task != pointer.Task {
		return nil, errTaskGone // an operator called it off
	}
	var held []storage.Location
	for _, record := range records[1:] {
		if record.State != registry.StateOwner {
			continue
		}
		claim, err := ledger.Decode[registry.LocationClaim](record)
		if err != nil {
			return nil, err
		}
		if claim.Pointer != pointer.ID {
			continue
		}
		location, err := storage.Parse(record.Key.ID)
		if err != nil {
			return nil, moorage.E("catalog.heldLocations", record.Key.ID, moorage.KindInternal, err)
		}
		held = append(held, location)
	}
	return held, nil
}

func isWithin(locations []storage.Location, path string) bool {
	location, err := storage.Parse(path)
	return err == nil && slices.ContainsFunc(locations, func(other storage.Location) bool { return other.Contains(location) })
}

// endPointer removes, in one Apply, a pointer that is over, the claims that it still holds, and
// its task. That somebody else did it, or has made something else of it, is not an error.
func (c *Catalog) endPointer(ctx context.Context, operation Operation, id registry.ID, over func(registry.State, registry.Pointer) bool) error {
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || !records[0].Exists() {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !over(records[0].State, pointer) {
			return err
		}
		conditions, deletes, err := c.locations.Release(ctx, pointer)
		if err != nil {
			return err
		}
		if !pointer.Task.IsZero() {
			deletes = append(deletes, registry.Delete(registry.TaskKey(pointer.Task)))
		}
		change, err := c.ledger.NewChange(ctx, string(operation), pointer.Identifier())
		if err != nil {
			return err
		}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: slices.Concat([]registry.Condition{ledger.Unchanged(records[0])}, conditions),
			Writes:     append(deletes, registry.Delete(records[0].Key)),
		})
		return ledger.RetryOnConflict(err)
	})
}
