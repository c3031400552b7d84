package claims

import (
	"context"

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
		conditions, deletes, err := c.Release(ctx, pointer, ending)
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
		change.Items = []registry.Item{registry.PointerItem(pointer, registry.Pointer{})}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: append(conditions, ledger.Unchanged(records[0])),
			// No lease on the table can be taken any more, and no other pointer gets its id.
			Writes: append(deletes, ledger.Delete(records[0]), registry.Delete(registry.LeaseKey(id)),
				registry.Delete(pointer.EndKey())),
		})
		return ledger.RetryOnConflict(err)
	})
}
