package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// dropEnded removes the blocker of a transaction that came to its end after it was given up.
func (c *Catalog) dropEnded(ctx context.Context, blocker registry.Record, transaction registry.ID) error {
	_, err := c.transactions.DropBlocker(ctx, blocker, transaction)
	return ledger.StepError("catalog.dropEnded", err)
}

// blocksTransaction tells whether a task that cannot be read is the blocker of a transaction: then it is seen, and ended, with that.
func (c *Catalog) blocksTransaction(ctx context.Context, task registry.Key) (bool, error) {
	records, err := c.ledger.Get(ctx, registry.Key{Table: registry.TableTransaction, ID: task.ID})
	return err == nil && records[0].Exists(), err
}

// abortTask is one attempt of Abort about a task that is no transaction's.
func (c *Catalog) abortTask(ctx context.Context, id registry.ID, record registry.Record) (Aborted, error) {
	task, err := registry.DecodeTask(record)
	switch {
	case err != nil:
		return c.forgetTask(ctx, id, record)
	case task.Kind != registry.TaskPurge:
		return Aborted{}, c.dropBlocker(ctx, id)
	}
	return Aborted{}, moorage.Errorf(moorage.KindUnprocessable, "%s is a purge; it can be tried again, not aborted", id)
}

// forgetTask removes a task that cannot be read, and calls the purge off that a dropped table awaits of it; ledger.ErrRetry if either has
// changed meanwhile. The pointer is looked for in all of them: the task alone knew whose it is.
func (c *Catalog) forgetTask(ctx context.Context, id registry.ID, record registry.Record) (Aborted, error) {
	aborted := Aborted{Kind: UnfinishedKindPurge, Was: registry.StateNone.String(), Forgotten: true, Left: []string{}, Unreadable: true}
	batch := registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: []registry.Write{registry.Delete(record.Key)},
	}
	waiting, pointer, err := c.awaiting(ctx, id)
	if err != nil {
		return Aborted{}, err
	}
	if waiting.Exists() {
		ident := pointer.Identifier()
		aborted.Was, aborted.Table, aborted.Left = waiting.State.String(), &ident, append(aborted.Left, pointer.Claims...)
		err = c.callOff(ctx, waiting, pointer, batch)
	} else if _, err = c.ledger.Step(ctx, batch); err != nil {
		if _, failed := registry.FailedCondition(err); !failed {
			err = ledger.StepError("catalog.forgetTask", err)
		}
	}
	return aborted, ledger.RetryOnConflict(err)
}

// awaiting returns the dropped table that the task was to purge, or the zero record. If it may be one whose record cannot be read, which no
// purge could be called off of, that is KindUnprocessable.
func (c *Catalog) awaiting(ctx context.Context, task registry.ID) (found registry.Record, pointer registry.Pointer, err error) {
	var unread error
	err = c.ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		if !record.State.IsDropped() {
			return true, ctx.Err()
		}
		value, err := ledger.Decode[registry.Pointer](record)
		switch {
		case err != nil:
			unread = moorage.Errorf(moorage.KindUnprocessable, "The task may belong to a dropped table whose record cannot be read, and stays until that is mended: %s", record.Key)
		case value.Task == task:
			found, pointer = record, value
		}
		return !found.Exists(), ctx.Err()
	})
	if err == nil && !found.Exists() {
		err = unread
	}
	return found, pointer, err
}

// callOff applies batch, and calls the purge of a dropped table off.
func (c *Catalog) callOff(ctx context.Context, record registry.Record, pointer registry.Pointer, batch registry.Batch) error {
	change, err := c.ledger.NewChange(ctx, string(OpPurge)+"-abort", pointer.Identifier())
	if err != nil {
		return err
	}
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return err
	}
	writes, err := ledger.Encode(ledger.Put(record.Key, record.State, calledOff(pointer, record.State, now)))
	if err != nil {
		return err
	}
	batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
	batch.Writes = append(batch.Writes, writes...)
	_, err = c.ledger.Apply(ctx, ledger.Mutation{Change: change, Conditions: batch.Conditions, Writes: batch.Writes})
	return err
}

// calledOff returns a dropped table, in state, as it goes on when its purge is called off: as one that was dropped without, which can come
// back until its window ends. One of which files may be gone cannot. It stays purging, from now on for a window, for a worker that has begun a batch
// may delete that yet, and what nobody can register no pointer comes to name.
func calledOff(pointer registry.Pointer, state registry.State, now time.Time) registry.Pointer {
	pointer.Task = registry.ID{}
	if state == registry.StatePurging {
		pointer.Since = now
	}
	return pointer
}
