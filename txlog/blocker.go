package txlog

import (
	"context"

	"moorage/registry"
)

// blockers returns the blocker of each transaction, in their order; the zero record where there is
// none.
func (l *Log) blockers(ctx context.Context, entries []Entry) ([]registry.Record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(entries))
	for i, e := range entries {
		keys[i] = registry.TaskKey(e.ID)
	}
	return l.ledger.Get(ctx, keys...)
}

// block gives a transaction its blocker, unless the transaction or the blocker changes just then.
// It replaces a blocker that is there already.
func (l *Log) block(ctx context.Context, id registry.ID, task registry.Task) (bool, error) {
	key := registry.TaskKey(id)
	records, err := l.ledger.Get(ctx, registry.TransactionKey(id), key)
	if err != nil || !records[0].Exists() {
		return false, err
	}
	unchanged := registry.Absent(key)
	if before := records[1]; before.Exists() {
		unchanged = registry.ETagIs(key, before.ETag)
		if replaced, err := registry.Decode[registry.Task](before); err == nil { // else nothing of it is known
			task.Unknown = replaced.Unknown
		}
	}
	value, err := registry.Encode(task)
	if err != nil {
		return false, err
	}
	_, err = l.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(registry.TransactionKey(id), records[0].ETag), unchanged},
		Writes:     []registry.Write{registry.Put(key, registry.StateBlocked, value)},
	})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, err
}
