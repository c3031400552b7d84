package claims

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// BeginPurge begins the delayed purge of a dropped table before its time. From then on the table
// cannot be restored, and a worker finds the task of the purge. The change record contains caller
// and operation. Normally the worker waits as long as clients may repeat requests with an
// idempotency key, because the answers need the table's versions. If atOnce is true, it does not
// wait, and such repeated requests then get no answer.
//
// Each attempt calls the function may with the pointer that it has read. The change happens only if
// the conditions returned by that function hold.
//
// begun is false, without an error, if the pointer is gone, if it has no waiting purge, or if the
// function may returns false. The change is durable when BeginPurge returns. Errors of that
// function are passed on.
func (c *Claims) BeginPurge(ctx context.Context, caller moorage.Caller, operation string, id registry.ID, atOnce bool,
	may func(context.Context, registry.Pointer) (conditions []registry.Condition, ok bool, err error)) (
	begun bool, err error) {
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		begun = false
		records, err := c.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || records[0].State != registry.StateDropped {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !pointer.PurgeWaits() {
			return err
		}
		conditions, ok, err := may(ctx, pointer)
		if err != nil || !ok {
			return err
		}
		now, err := c.ledger.Time(ctx)
		if err != nil {
			return err
		}
		change, err := c.ledger.NewChange(ctx, caller, operation, pointer.Identifier())
		if err != nil {
			return err
		}
		change.Items = []registry.Item{registry.PointerItem(pointer, registry.Pointer{})}
		notBefore := pointer.ReplayableUntil
		if atOnce {
			notBefore = now
		}
		writes, err := PurgeWrites(records[0], pointer, change, now, notBefore)
		if err != nil {
			return err
		}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change: change, Conditions: append(conditions, ledger.Unchanged(records[0])), Writes: writes,
		})
		begun = err == nil
		return ledger.RetryOnConflict(err)
	})
	return begun, err
}

// PurgeWrites returns the writes of an Apply that begins the purge of a dropped table. The table's
// pointer is in record, and change is the change that begins the purge. pointer.Task is the ID of
// the purge's task. now is the present time by the store's clock. A worker carries out the purge
// after notBefore.
func PurgeWrites(record registry.Record, pointer registry.Pointer, change registry.Change,
	now, notBefore time.Time) ([]registry.Write, error) {
	was, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return nil, err
	}
	task := registry.Task{
		ID: pointer.Task, Kind: registry.TaskPurge, Pointer: pointer.ID, Created: now, NotBefore: notBefore,
	}
	pointer.Dropped = was.DroppedAt(record.State)
	pointer.Since, pointer.PurgeDelay = now, 0
	pointer.Last = pointer.Written(registry.StatePurging, change, was.LastIn(record.State).Summary)
	writes, err := ledger.Encode(
		ledger.Replace(record, registry.StatePurging, pointer),
		ledger.Put(pointer.EndKey(), registry.StateNone, task))
	if was.EndKey() != pointer.EndKey() {
		writes = append(writes, registry.Delete(was.EndKey()))
	}
	return writes, err
}
