package ledger

import (
	"context"

	"moorage/registry"
)

// StoreID returns the id of the store. The first call draws the ID at random and stores it. It
// returns the errors of Get and of Step.
func (l *Ledger) StoreID(ctx context.Context) (registry.ID, error) {
	records, err := l.Get(ctx, registry.StoreIDKey())
	if err != nil {
		return registry.ID{}, err
	}
	if !records[0].Exists() {
		drawn, err := l.NewID()
		if err != nil {
			return registry.ID{}, err
		}
		writes, err := Encode(Put(registry.StoreIDKey(), registry.StateNone, registry.StoreID{ID: drawn}))
		if err != nil {
			return registry.ID{}, err
		}
		_, err = l.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{registry.Absent(registry.StoreIDKey())}, Writes: writes,
		})
		if _, failed := registry.FailedCondition(err); err != nil && !failed {
			return registry.ID{}, StepError("ledger.StoreID", err)
		}
		if records, err = l.Get(ctx, registry.StoreIDKey()); err != nil {
			return registry.ID{}, err
		}
	}
	value, err := Decode[registry.StoreID](records[0])
	return value.ID, err
}
