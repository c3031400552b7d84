package purge

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// Blocked is a dropped table whose files could not be deleted, or an unreadable task.
type Blocked struct {
	ID        string             // of the task
	Table     moorage.Identifier // without a name if its record cannot be read
	Since     time.Time          // when the table was dropped
	Attempts  int
	LastError string
	// Unreadable explains why the record of the task cannot be read. In that case only ID is known,
	// and workers ignore the task. An unreadable task counts as a purge unless its ID is the id of
	// a transaction.
	Unreadable error
}

// Blocked returns the purges that were given up and the unreadable tasks, in the order of their
// ids. The page begins with the first id greater than after. It has at most limit purges; 0 means
// all. To get the next page, pass next as after. On the last page, next is empty.
func (w *Worker) Blocked(ctx context.Context, after string, limit int) (purges []Blocked, next string, err error) {
	err = w.ledger.Scan(ctx, registry.TableTask, "", after, func(record registry.Record) (bool, error) {
		purge, found, err := w.blocked(ctx, record)
		switch {
		case err != nil || !found:
			return true, err
		case limit > 0 && len(purges) == limit:
			next = purges[len(purges)-1].ID
			return false, nil
		}
		purges = append(purges, purge)
		return true, nil
	})
	return purges, next, moorage.Annotate("purge.Blocked", "", err)
}

// blocked returns the purge of a task. It returns false unless the task is a purge that was given
// up.
func (w *Worker) blocked(ctx context.Context, record registry.Record) (Blocked, bool, error) {
	task, unreadable := registry.DecodeTask(record)
	if unreadable != nil {
		blocker, err := w.blocksTransaction(ctx, record.Key)
		return Blocked{ID: record.Key.ID, Unreadable: unreadable}, !blocker, err
	}
	if task.Kind != registry.TaskPurge {
		_, err := w.transactions.DropBlocker(ctx, record, task.ID)
		return Blocked{}, false, ledger.StepError("purge.blocked", err)
	}
	if record.State != registry.StateBlocked {
		return Blocked{}, false, nil
	}
	pointers, err := w.ledger.Get(ctx, registry.PointerKey(task.Pointer))
	if err != nil || !pointers[0].Exists() {
		return Blocked{}, false, err
	}
	blocked := Blocked{
		ID: task.ID.String(), Since: task.Created, Attempts: task.Attempts, LastError: task.LastError,
	}
	if pointer, err := ledger.Decode[registry.Pointer](pointers[0]); err == nil { // otherwise LastError has the reason
		blocked.Table = pointer.Identifier()
	}
	return blocked, true, nil
}

// blocksTransaction reports whether an unreadable task is the blocker of a transaction. Such a task
// is listed with its transaction, and ends with the transaction.
func (w *Worker) blocksTransaction(ctx context.Context, task registry.Key) (bool, error) {
	records, err := w.ledger.Get(ctx, registry.Key{Table: registry.TableTransaction, ID: task.ID})
	return err == nil && records[0].Exists(), err
}

// Retry makes the workers of all nodes retry the purge with this id from the start. A purge that is
// still waiting for its time begins at once.
//
// Errors: KindNotFound if there is no such purge, KindInternal if its record is unreadable.
func (w *Worker) Retry(ctx context.Context, id registry.ID) error {
	const op = "purge.Retry"
	begun, err := w.beginNow(ctx, id)
	if err != nil || begun {
		if begun {
			w.log.InfoContext(ctx, "an operator began a purge before its time", "purge", id,
				"request", moorage.RequestID(ctx))
			w.Kick()
		}
		return moorage.Annotate(op, id.String(), err)
	}
	err = w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := w.ledger.Get(ctx, registry.TaskKey(id))
		if err != nil {
			return err
		}
		task, err := registry.DecodeTask(records[0])
		switch {
		case !records[0].Exists() || err == nil && task.Kind != registry.TaskPurge:
			return moorage.Errorf(moorage.KindNotFound, "Nothing unfinished has the id %s", id)
		case err != nil:
			return ledger.Undecoded(records[0], err)
		}
		task.Attempts, task.LastError, task.Begun = 0, "", 0
		writes, err := ledger.Encode(ledger.Put(records[0].Key, registry.StateNone, task))
		if err != nil {
			return err
		}
		_, err = w.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{ledger.Unchanged(records[0])}, Writes: writes,
		})
		if _, failed := registry.FailedCondition(err); failed {
			return ledger.ErrRetry
		}
		return ledger.StepError(op, err)
	})
	if err == nil {
		w.Kick()
	}
	return moorage.Annotate(op, id.String(), err)
}
