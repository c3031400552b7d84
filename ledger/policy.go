package ledger

import (
	"context"

	"moorage/registry"
)

// Policy holds the conditions and writes of an Apply that changes access policy. The zero value
// changes nothing.
type Policy struct {
	Conditions []registry.Condition
	Writes     []registry.Write
	// Epoch is the number of the change. It is zero if changes are not counted.
	Epoch uint64
}

// ChangePolicy returns the conditions and writes of an Apply that changes records of access policy.
// They include the epoch and its list of recent changes, so all changes of access policy have one
// order. While access control is disabled, it returns only the puts. A caller that loses a race for
// the epoch must plan again.
func (l *Ledger) ChangePolicy(ctx context.Context, puts ...Write) (Policy, error) {
	writes, err := Encode(puts...)
	if err != nil {
		return Policy{}, err
	}
	return l.countEpoch(ctx, writes)
}

// EndGrants returns the conditions and writes that delete an object's grants record, for the Apply
// that ends the object. It returns nothing if granted is false.
func (l *Ledger) EndGrants(ctx context.Context, granted bool, object registry.ID) (Policy, error) {
	if !granted {
		return Policy{}, nil
	}
	return l.countEpoch(ctx, []registry.Write{registry.Delete(registry.GrantsKey(object))})
}

// DropPolicy is like ChangePolicy, but also deletes records.
func (l *Ledger) DropPolicy(ctx context.Context, gone []registry.Key, puts ...Write) (Policy, error) {
	writes, err := Encode(puts...)
	if err != nil {
		return Policy{}, err
	}
	for _, key := range gone {
		writes = append(writes, registry.Delete(key))
	}
	return l.countEpoch(ctx, writes)
}

// countEpoch adds the write of the next epoch to writes, which change records of access policy.
func (l *Ledger) countEpoch(ctx context.Context, writes []registry.Write) (Policy, error) {
	records, err := l.Get(ctx, registry.EpochKey(), registry.RecentKey())
	if err != nil || !records[0].Exists() {
		return Policy{Writes: writes}, err
	}
	epoch, err := Decode[registry.Epoch](records[0])
	if err != nil {
		return Policy{}, err
	}
	var recent registry.Recent
	if records[1].Exists() {
		if recent, err = Decode[registry.Recent](records[1]); err != nil {
			recent = registry.Recent{} // nodes that read this list load the whole access policy
		}
	}
	epoch.Number++
	change := registry.PolicyChange{Epoch: epoch.Number}
	for _, write := range writes {
		if write.Key.Table.IsPolicy() {
			change.Keys = append(change.Keys, write.Key)
		}
	}
	counted, err := Encode(
		Put(registry.EpochKey(), registry.StateNone, epoch),
		Put(registry.RecentKey(), registry.StateNone, recent.With(change)))
	return Policy{
		Conditions: []registry.Condition{Unchanged(records[0])},
		Writes:     append(writes, counted...),
		Epoch:      epoch.Number,
	}, err
}
