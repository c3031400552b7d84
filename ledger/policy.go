package ledger

import (
	"context"

	"moorage/registry"
)

// Policy is what an Apply must require and write to change policy. The zero value changes nothing.
type Policy struct {
	Conditions []registry.Condition
	Writes     []registry.Write
	// Epoch is the number of the change; zero if nothing counts it.
	Epoch uint64
}

// ChangePolicy returns what an Apply requires and writes to change records of policy, in one order
// with all other changes of policy: the epoch and what it wrote last go with it. While access is
// not on nothing follows the epoch, and only puts are written. Who loses a race for the epoch plans
// again.
func (l *Ledger) ChangePolicy(ctx context.Context, puts ...Write) (Policy, error) {
	writes, err := Encode(puts...)
	if err != nil {
		return Policy{}, err
	}
	return l.countEpoch(ctx, writes)
}

// EndGrants returns what the Apply that ends an object requires and writes so that its grants end
// with it; nothing if the object does not say that it is granted.
func (l *Ledger) EndGrants(ctx context.Context, granted bool, object registry.ID) (Policy, error) {
	if !granted {
		return Policy{}, nil
	}
	return l.countEpoch(ctx, []registry.Write{registry.Delete(registry.GrantsKey(object))})
}

// DropPolicy is ChangePolicy that also deletes records.
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

// countEpoch adds to writes, of records of policy, that the epoch counts them.
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
			recent = registry.Recent{} // nodes that follow load all policy
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
