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
// the time until which the pointer can be restored. Release leaves tombstones at its locations. End
// uses only the fields How and Lasting of ending.
//
// The change record contains operation. If the pointer is gone, or over(state, pointer) returns
// false, End does nothing and returns nil.
func (c *Claims) End(ctx context.Context, operation string, id registry.ID, ending Ending,
	over func(registry.State, registry.Pointer) bool) error {
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || !records[0].Exists() {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !over(records[0].State, pointer) {
			return err
		}
		change, err := c.ledger.NewChange(ctx, moorage.System(operation), operation, pointer.Identifier())
		if err != nil {
			return err
		}
		end, err := c.PlanEnd(ctx, records[0], pointer, ending, change)
		if err != nil {
			return err
		}
		change.Items = []registry.Item{end.Item}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{Change: change, Conditions: end.Conditions, Writes: end.Writes})
		return ledger.RetryOnConflict(err)
	})
}

// PlannedEnd holds the conditions and writes of an Apply that ends a dropped pointer, and the item
// of its change.
type PlannedEnd struct {
	Conditions []registry.Condition
	Writes     []registry.Write
	Item       registry.Item
}

// PlanEnd plans the end of the dropped pointer in record, as part of change: see End.
func (c *Claims) PlanEnd(ctx context.Context, record registry.Record, pointer registry.Pointer, ending Ending,
	change registry.Change) (end PlannedEnd, err error) {
	if ending.Now, err = c.ledger.Time(ctx); err != nil {
		return end, err
	}
	ending.ReachableUntil = pointer.ReachableUntil
	if record.State == registry.StatePurging && pointer.Task.IsZero() { // its purge was cancelled
		ending.How = registry.EndedForget
	}
	keys := append(claimKeys(pointer), pointer.DroppedKey(record.State), registry.ScheduleKey(pointer.ID),
		registry.MaintenancePolicyKey(registry.TableScope(pointer.ID)))
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return end, err
	}
	claimed := records[:len(records)-3]
	dropped, schedule, maintained := records[len(claimed)], records[len(claimed)+1], records[len(claimed)+2]
	conditions, deletes, err := c.release(ctx, pointer, ending, claimed)
	if err != nil {
		return end, err
	}
	policy, err := c.ledger.EndGrants(ctx, pointer.Granted, pointer.ID)
	if err != nil {
		return end, err
	}
	required, kept, err := c.endMaintenance(ctx, pointer.ID, schedule, maintained)
	if err != nil {
		return end, err
	}
	if !pointer.Labels.IsZero() {
		deletes = append(deletes, registry.Delete(registry.LabelKey(pointer.ID)))
	}
	ended, err := endedRecord(record.State, pointer, dropped, ending, change)
	if err != nil {
		return end, err
	}
	end.Item = registry.PointerItem(pointer, registry.Pointer{})
	end.Item.Ended = ended[0].Key.ID
	end.Conditions = append(slices.Concat(conditions, policy.Conditions, required), ledger.Unchanged(record))
	// After this, no lease on the table can be taken, and no other pointer gets the same ID.
	end.Writes = append(slices.Concat(deletes, policy.Writes, kept, ended), ledger.Delete(record),
		registry.Delete(registry.LeaseKey(pointer.ID)), registry.Delete(pointer.EndKey()))
	return end, nil
}

// endedRecord returns the write of the dropped record for pointer, in the given state. change ends
// the pointer. The new value keeps the data that the drop wrote into record. If the drop wrote no
// record, the caller of the drop is unknown.
func endedRecord(state registry.State, pointer registry.Pointer, record registry.Record, ending Ending,
	change registry.Change) ([]registry.Write, error) {
	dropped, err := registry.Decode[registry.Dropped](record)
	if err != nil { // the record is missing or damaged, but it is only a hint
		dropped = pointer.AsDropped(state, registry.Change{})
	}
	dropped.Ended, dropped.How = ending.Now, ending.How
	dropped.EndedBy, dropped.EndedChange = change.Principal, change.ID
	return ledger.Encode(ledger.Put(pointer.DroppedKey(state), registry.StateEnded, dropped))
}
