package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage"
	"moorage/registry"
)

// newChange begins a mutation: it draws the commit id and says who does what to what.
func (c *Catalog) newChange(ctx context.Context, operation string, ident moorage.Identifier) (registry.Change, error) {
	id, err := c.newID()
	if err != nil {
		return registry.Change{}, err
	}
	return registry.Change{
		ID:        id,
		Operation: operation,
		Ident:     ident,
		Principal: moorage.Principal(ctx),
		RequestID: moorage.RequestID(ctx),
		Time:      c.now(),
	}, nil
}

// errFenced is returned by applyStep when the outcome was unknown for a while and the
// batch has since been kept from ever happening.
var errFenced = fmt.Errorf("%w: a write was lost and fenced", errAgain)

// apply makes a mutation true, whose key, if it was sent with one, gets its outcome in the same Apply (see Once): one that
// answers nothing; the others call applyAnswering. Steps on the way to the effect, and work of the catalog's own,
// are for applyStep. It returns what applyStep does, or errAnswered: it did not and never will happen, because the key has
// an outcome already.
func (c *Catalog) apply(ctx context.Context, change registry.Change, batch registry.Batch) error {
	return c.applyAnswering(ctx, change, batch, Outcome{})
}

// applyStep is the only way in which a Catalog changes warehouses, namespaces, entries and pointers. Without a change of their own
// go to the store: fences, notes in tasks and the removal of those that belong to no table, marks and ends of empty folders, outcomes without
// an effect, and the end of what is old; and all of CallOffDeletions, in a store that no Catalog uses yet. It applies batch as the commit
// change.ID and returns
//
//   - nil: it happened;
//   - a *registry.FailedError: it did not, because of this condition;
//   - errFenced (an errAgain): it did not and never will;
//   - an error of KindUnavailable: it did not and never will, and trying again now is no use;
//   - an error of KindCommitUnknown: it may have happened, or may yet.
//
// The unknown outcome is settled by the change record alone: if it is there, the
// batch happened; if it is not, the same key is written as VOID, after which the batch,
// which requires that key to be absent, can no longer happen. Both hold only once they are confirmed. The pointer is never asked:
// others may have committed on top since.
func (c *Catalog) applyStep(ctx context.Context, change registry.Change, batch registry.Batch) error {
	_, err := c.applyStepTags(ctx, change, batch)
	return err
}

// applyStepTags is applyStep that returns the new ETags in the order of batch.Writes; none if it happened but the store's answer was lost.
func (c *Catalog) applyStepTags(ctx context.Context, change registry.Change, batch registry.Batch) ([]registry.ETag, error) {
	batch.Change = &change
	etags, err := c.store.Apply(ctx, batch)
	switch {
	case err == nil:
		return etags, nil
	case errors.Is(err, registry.ErrUnknown):
		return nil, c.settle(ctx, change)
	}
	if _, failed := registry.FailedCondition(err); failed {
		return nil, err
	}
	return nil, storeError("catalog.apply", err)
}

// settle finds out whether the batch of change happened.
func (c *Catalog) settle(ctx context.Context, change registry.Change) error {
	const op = "catalog.settle"
	ctx, cancel := detached(ctx, c.settleTimeout)
	defer cancel()
	var lastErr error
	for attempt := 0; ; attempt++ {
		happened, settled, err := c.lookOrFence(ctx, change)
		if settled {
			c.log.WarnContext(ctx, "outcome of a write was unknown", "commit", change.ID, "operation", change.Operation, "happened", happened)
			if happened {
				return nil
			}
			return errFenced
		}
		if err != nil {
			lastErr = err
		}
		if errors.Is(err, registry.ErrFailed) || errors.Is(err, registry.ErrClosed) || c.pause(ctx, attempt) != nil {
			c.log.ErrorContext(ctx, "outcome of a write stays unknown", "commit", change.ID, "operation", change.Operation, "error", lastErr)
			return moorage.E(op, change.Ident.String(), moorage.KindCommitUnknown,
				moorage.Errorf(moorage.KindCommitUnknown, "Cannot tell whether the %s happened: the store did not answer", change.Operation))
		}
	}
}

// lookOrFence does one step of settle. An error means that nothing was learnt.
func (c *Catalog) lookOrFence(ctx context.Context, change registry.Change) (happened, settled bool, err error) {
	key := registry.ChangeKey(change.ID)
	records, err := c.store.Get(ctx, key)
	if err != nil {
		return false, false, err
	}
	if records[0].Exists() {
		err := c.confirm(ctx, records[0])
		return err == nil && records[0].State != registry.StateVoid, err == nil, err
	}
	void, err := registry.Change{ID: change.ID, Operation: change.Operation, Ident: change.Ident, Time: c.now()}.Encode()
	if err != nil {
		return false, false, err
	}
	_, err = c.store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.Absent(key)},
		Writes:     []registry.Write{registry.Put(key, registry.StateVoid, void)},
	})
	return false, err == nil, err
}

// confirm returns nil if record, which tells how a write ended whose answer was lost, is there to stay. A database shows its own commits before
// its standby has them where it was told not to wait, or began anew amid the wait; to whom it then answers an Apply, if only one that asks,
// the standby has what that saw.
func (c *Catalog) confirm(ctx context.Context, record registry.Record) error {
	_, err := c.store.Apply(ctx, registry.Batch{Conditions: []registry.Condition{unchangedSince(record)}})
	return err
}

// storeError gives the failure of a read, or of a batch that certainly was not applied, its
// kind; nil stays nil.
func storeError(op string, err error) error {
	if errors.Is(err, registry.ErrBadBatch) {
		return moorage.E(op, "", moorage.KindInternal, err)
	}
	return moorage.E(op, "", moorage.KindUnavailable, err)
}

// get reads records, as of one moment.
func (c *Catalog) get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := c.store.Get(ctx, keys...)
	if err != nil {
		return nil, storeError("catalog.get", err)
	}
	return records, nil
}

// storeTime returns the time by the clock of the store, which all nodes share. What one node writes and another judges by its age goes
// by this clock: their own may differ.
func (c *Catalog) storeTime(ctx context.Context) (time.Time, error) {
	now, err := c.store.Time(ctx)
	if err != nil {
		return time.Time{}, storeError("catalog.storeTime", err)
	}
	return now, nil
}

// decode reads the value of a record that exists; that it cannot is a fault of the store.
func decode[T registry.Value](record registry.Record) (T, error) {
	value, err := registry.Decode[T](record)
	if err != nil {
		return value, undecoded(record, err)
	}
	return value, nil
}

// undecoded is the error of decode.
func undecoded(record registry.Record, err error) error {
	return moorage.E("catalog.decode", record.Key.String(), moorage.KindInternal, err)
}

// unknownOf returns the members of record, which holds a T, that this version does not know. A new value in its place carries
// them on. A record that is not there, or cannot be read, has none.
func unknownOf[T registry.Value](record registry.Record) registry.Unknown {
	value, err := registry.Decode[T](record)
	if err != nil {
		return registry.Unknown{}
	}
	return value.Later()
}

// put is a write whose value is still a struct of package registry.
type put struct {
	key   registry.Key
	state registry.State
	value registry.Value
}

// encodePuts returns the writes of puts. A value that no store takes is KindTooLarge: only a client can make one so long.
func encodePuts(puts ...put) ([]registry.Write, error) {
	writes := make([]registry.Write, 0, len(puts))
	for _, p := range puts {
		value, err := registry.Encode(p.value)
		if err != nil {
			return nil, moorage.E("catalog.encode", p.key.String(), moorage.KindInternal, err)
		}
		if len(value) > registry.ValueBytesMax {
			return nil, moorage.Errorf(moorage.KindTooLarge, "The %s record would have %d bytes, at most %d can be stored", p.key.Table, len(value), registry.ValueBytesMax)
		}
		writes = append(writes, registry.Put(p.key, p.state, value))
	}
	return writes, nil
}
