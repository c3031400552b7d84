package claims

import (
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// End removes a dropped pointer in one Apply. The same Apply removes its remaining claims, leases,
// grants, labels and maintenance records. It also removes the pointer's task, or else the record of
// the time until which the pointer can be restored. Release leaves tombstones at its locations. Of
// ending, End uses only the fields How and Lasting.
//
// The change record contains operation. If the pointer is gone, or over(state, pointer) is false,
// End does nothing and returns nil.
func (c *Claims) End(ctx context.Context, operation string, id registry.ID, ending Ending,
	over func(registry.State, registry.Pointer) bool) error {
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.PointerKey(id), registry.ScheduleKey(id),
			registry.MaintenancePolicyKey(registry.TableScope(id)))
		if err != nil || !records[0].Exists() {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !over(records[0].State, pointer) {
			return err
		}
		if ending.Now, err = c.ledger.Time(ctx); err != nil {
			return err
		}
		ending.ReachableUntil = pointer.ReachableUntil
		if records[0].State == registry.StatePurging && pointer.Task.IsZero() { // its purge was cancelled
			ending.How = registry.EndedForget
		}
		claimed, err := c.ledger.Get(ctx, append(claimKeys(pointer), pointer.DroppedKey(records[0].State))...)
		if err != nil {
			return err
		}
		dropped := claimed[len(claimed)-1]
		conditions, deletes, err := c.release(ctx, pointer, ending, claimed[:len(claimed)-1])
		if err != nil {
			return err
		}
		policy, err := c.ledger.EndGrants(ctx, pointer.Granted, pointer.ID)
		if err != nil {
			return err
		}
		conditions, deletes = append(conditions, policy.Conditions...), append(deletes, policy.Writes...)
		required, kept, err := c.endMaintenance(ctx, id, records[1], records[2])
		if err != nil {
			return err
		}
		conditions, deletes = append(conditions, required...), append(deletes, kept...)
		if !pointer.Labels.IsZero() {
			deletes = append(deletes, registry.Delete(registry.LabelKey(id)))
		}
		change, err := c.ledger.NewChange(ctx, moorage.System(operation), operation, pointer.Identifier())
		if err != nil {
			return err
		}
		ended, err := endedRecord(records[0].State, pointer, dropped, ending, change)
		if err != nil {
			return err
		}
		item := registry.PointerItem(pointer, registry.Pointer{})
		item.Ended = ended[0].Key.ID
		change.Items = []registry.Item{item}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: append(conditions, ledger.Unchanged(records[0])),
			// No lease on the table can be taken any more, and no other pointer gets its id.
			Writes: append(slices.Concat(deletes, ended), ledger.Delete(records[0]),
				registry.Delete(registry.LeaseKey(id)), registry.Delete(pointer.EndKey())),
		})
		return ledger.RetryOnConflict(err)
	})
}

// endedRecord returns the write of the dropped record of pointer, which has this state and which
// change ends. The new value keeps what the drop wrote into record. If the drop wrote none, its
// caller is not known.
func endedRecord(state registry.State, pointer registry.Pointer, record registry.Record, ending Ending,
	change registry.Change) ([]registry.Write, error) {
	dropped, err := registry.Decode[registry.Dropped](record)
	if err != nil { // it is missing or damaged, and only a hint
		dropped = pointer.AsDropped(state, registry.Change{})
	}
	dropped.Ended, dropped.How, dropped.EndedBy, dropped.EndedChange = ending.Now, ending.How, change.Principal, change.ID
	return ledger.Encode(ledger.Put(pointer.DroppedKey(state), registry.StateEnded, dropped))
}
