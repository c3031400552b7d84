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
	return l.store.Get(ctx, keys...)
}

// block gives a transaction its blocker, unless it is gone or changes just then.
func (l *Log) block(ctx context.Context, id registry.ID, task registry.Task) (bool, error) {
	e, found, err := l.Get(ctx, id)
	if err != nil || !found {
		return false, err
	}
	value, err := registry.Encode(task)
	if err != nil {
		return false, err
	}
	_, err = l.store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(registry.TransactionKey(id), e.ETag)},
		Writes:     []registry.Write{registry.Put(registry.TaskKey(id), registry.StateBlocked, value)},
	})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, err
}
