package claims

import (
	"context"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// BeginPurge begins the delayed purge of a dropped table before its time. From then on the table
// cannot be restored, and a worker finds the task of the purge. The change record contains caller
// and operation. Normally the worker waits as long as clients may repeat requests with an
// idempotency key, because the answers need the table's versions. With atOnce it does not wait, and
// such repeated requests then get no answer.
//
// begun is false, without an error, if the pointer is gone, if it has no waiting purge, or if
// may(pointer) is false. The change is durable when BeginPurge returns.
func (c *Claims) BeginPurge(ctx context.Context, caller moorage.Caller, operation string, id registry.ID, atOnce bool,
	may func(registry.Pointer) bool) (begun bool, err error) {
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		begun = false
		records, err := c.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || records[0].State != registry.StateDropped {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !pointer.PurgeWaits() || !may(pointer) {
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
		task := registry.Task{
			ID: pointer.Task, Kind: registry.TaskPurge, Pointer: id, Created: now, NotBefore: pointer.ReplayableUntil,
		}
		if atOnce {
			task.NotBefore = now
		}
		waiting := registry.Delete(pointer.EndKey())
		pointer.Dropped = pointer.DroppedAt(records[0].State)
		pointer.Since, pointer.PurgeDelay = now, 0
		pointer.Last = pointer.Written(registry.StatePurging, change, pointer.LastIn(records[0].State).Summary)
		writes, err := ledger.Encode(
			ledger.Replace(records[0], registry.StatePurging, pointer),
			ledger.Put(pointer.EndKey(), registry.StateNone, task))
		if err != nil {
			return err
		}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change: change, Conditions: []registry.Condition{ledger.Unchanged(records[0])},
			Writes: append(writes, waiting),
		})
		begun = err == nil
		return ledger.RetryOnConflict(err)
	})
	return begun, err
}
