package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// CalledOff is what CallOffDeletions called off.
type CalledOff struct {
	Transactions int // were forgotten
	Purges       int // dropped tables that stay as they are
}

// CallOffDeletions makes store, the copy of another one, say of no file any more that it is to be deleted. A catalog on the copy would go by
// what was so when the copy was made, and delete what the other one, or a newer copy, has as current files since:
//
//   - A PENDING transaction may have come true; the others' files may have been registered, once an operator had them forgotten. So
//     transactions are forgotten whatever their state, those whose records cannot be read too. What they wrote and did not publish is left over.
//   - A table that was to be purged may have come back. So every purge is called off, as Catalog.Abort calls off one whose task cannot be read: the
//     table is as one that was dropped without, and if files may have been deleted already it cannot come back. The others are left over.
//
// now is when a purge that had begun was called off: the undrop window of its table begins. No catalog may use the copy before this
// has returned without an error; after one it is to be called again.
//
// Errors: KindUnavailable, if somebody else writes to store too; else those of the store.
func CallOffDeletions(ctx context.Context, store registry.Store, now time.Time) (CalledOff, error) {
	const op = "catalog.CallOffDeletions"
	var off CalledOff
	remove := func(record registry.Record) (registry.Write, bool, error) {
		return registry.Delete(record.Key), true, nil
	}
	var err error
	for _, step := range []struct {
		table   registry.Table
		replace replacement
		count   *int
	}{
		{registry.TableTransaction, remove, &off.Transactions},
		{registry.TableTask, remove, new(int)}, // purges, and why transactions were given up
		{registry.TablePointer, func(record registry.Record) (registry.Write, bool, error) { return withoutPurge(record, now) }, &off.Purges},
	} {
		if *step.count, err = replaceAll(ctx, store, step.table, step.replace); err != nil {
			return off, moorage.Annotate(op, step.table.String(), err)
		}
	}
	return off, nil
}

// withoutPurge returns the pointer that record is without the purge that it awaits, and false if it awaits none. One that cannot be read
// stays: no purge goes by it.
func withoutPurge(record registry.Record, now time.Time) (registry.Write, bool, error) {
	if !record.State.IsDropped() {
		return registry.Write{}, false, nil
	}
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil || pointer.Task.IsZero() {
		return registry.Write{}, false, nil
	}
	writes, err := ledger.Encode(ledger.Put(record.Key, record.State, calledOff(pointer, record.State, now)))
	if err != nil {
		return registry.Write{}, false, err
	}
	return writes[0], true, nil
}

// replacement says what is to be written in the place of a record, and false if it stays.
type replacement func(registry.Record) (write registry.Write, replaced bool, err error)

// replaceAll replaces the records of a table, page by page, and returns how many those were.
func replaceAll(ctx context.Context, store registry.Store, table registry.Table, replace replacement) (replaced int, err error) {
	for after := ""; ; {
		records, err := store.List(ctx, table, "", after, ledger.ScanPage)
		if err != nil {
			return replaced, ledger.StoreError("catalog.replaceAll", err)
		}
		var batch registry.Batch
		for _, record := range records {
			write, ok, err := replace(record)
			if err != nil {
				return replaced, err
			}
			if ok {
				batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
				batch.Writes = append(batch.Writes, write)
			}
		}
		if err := replaceUnchanged(ctx, store, batch); err != nil {
			return replaced, err
		}
		replaced += len(batch.Writes)
		if registry.IsLastPage(records, ledger.ScanPage) {
			return replaced, nil
		}
		after = records[len(records)-1].Key.ID
	}
}

// replaceUnchanged applies batch, if there is anything in it.
func replaceUnchanged(ctx context.Context, store registry.Store, batch registry.Batch) error {
	if len(batch.Writes) == 0 {
		return nil
	}
	_, err := ledger.Over(store).Step(ctx, batch)
	if failed, ok := registry.FailedCondition(err); ok {
		return moorage.Errorf(moorage.KindUnavailable, "Somebody else uses the store, and has just written %s: stop all servers, and do it again", failed.Key)
	}
	if err != nil {
		return ledger.StepError("catalog.replaceUnchanged", err)
	}
	return nil
}
