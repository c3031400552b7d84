package catalog

import (
	"context"
	"errors"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

const (
	// forgetPage is how many change records are deleted in one Apply.
	forgetPage = 1000
	// keptMin is how long change records and fences are kept at least, whatever the retention. Those who go by one need minutes. Who makes a
	// change is at it for requestTimeout, or, after a wait of twinWaitMax, until transactionDeadline, and then looks for its record for
	// settleTimeout. The Apply that a fence keeps away was sent before that, and a coordinator meets the one by which an operator has
	// ended its transaction at the latest then. Recovery goes by the records of transactions, not by these, and is done or has given up after
	// recoverLockPatience and five minutes more. All of these together are less than a quarter of an hour. A process that stands still for
	// longer amid a change, or an Apply that is on its way for so long, is safe only within the retention.
	keptMin = 20 * time.Minute
	// marksMax bounds how many marks there are: changes live for up to a marksMax-th longer than the retention.
	marksMax = 128
)

// forgetChanges deletes the change records that are older than the retention, oldest first, and the fences among them, which are
// in no order.
func (c *Catalog) forgetChanges(ctx context.Context) error {
	now, err := c.store.Time(ctx)
	if err != nil {
		return ledger.StoreError("catalog.forgetChanges", err)
	}
	return errors.Join(c.forgetOrdered(ctx), c.forgetFences(ctx, now))
}

// forgetOrdered deletes the changes up to the last mark that is old enough.
//
// No clock says how old a change is: not that of who wrote it, which may be wrong, and not the store's, which may be set. The
// rounds of the sweep, of all nodes, keep count of the time that passes between them, in one record. A round adds what has
// passed by the store's clock since the last one of any node, but no more than what this process has measured since its own last one, by
// a clock that nobody sets, and nothing if the store's clock was set back. So a clock that was ahead, or behind, costs the time between two rounds at
// most, and hastens nothing. Time in which no process runs does not count.
//
// A mark says how far the order reached at such a time. What lies before it is at least as old.
func (c *Catalog) forgetOrdered(ctx context.Context) error {
	const op = "catalog.forgetOrdered"
	records, err := c.ledger.Get(ctx, registry.RetentionKey(), registry.HorizonKey())
	if err != nil {
		return err
	}
	retention, err := decodeIfThere[registry.Retention](records[0])
	if err != nil {
		return err
	}
	horizon, err := decodeIfThere[registry.Horizon](records[1])
	if err != nil {
		return err
	}
	reached := horizon.Position
	if n := len(retention.Marks); n > 0 {
		reached = max(reached, retention.Marks[n-1].Position)
	}
	head, err := registry.Head(ctx, c.store, reached)
	if err != nil {
		return ledger.StoreError(op, err)
	}
	now, err := c.store.Time(ctx) // behind the head, so that the mark is not older than what it marks
	if err != nil {
		return ledger.StoreError(op, err)
	}
	due := mark(&retention, head, now, c.sinceMarked(), max(c.changeRetention, keptMin))
	if ours, err := c.replace(ctx, records[0], retention); err != nil || !ours {
		return err
	}
	return c.forgetUpTo(ctx, due, records[1], horizon)
}

// sinceMarked returns how long ago this process began, or called it last.
func (c *Catalog) sinceMarked() time.Duration {
	now, last := c.now(), c.sweeps.marked
	if last.IsZero() {
		last = c.made
	}
	c.sweeps.marked = now
	return now.Sub(last)
}

// mark notes in r that the order has reached head at now, by the store's clock. measured is how much time has passed at most since the
// last call. It returns the last position that was reached so long ago as changes are kept, zero if none was.
func mark(r *registry.Retention, head registry.Position, now time.Time, measured, kept time.Duration) (due registry.Position) {
	if !r.Time.IsZero() {
		r.Elapsed += max(0, min(now.Sub(r.Time), measured))
	}
	r.Time = now
	n := len(r.Marks)
	if head > 0 && (n == 0 || head > r.Marks[n-1].Position && r.Elapsed-r.Marks[n-1].Elapsed >= kept/marksMax) {
		r.Marks = append(r.Marks, registry.Mark{Position: head, Elapsed: r.Elapsed})
	}
	for len(r.Marks) > 0 && r.Elapsed-r.Marks[0].Elapsed >= kept {
		due = r.Marks[0].Position
		if len(r.Marks) == 1 || r.Elapsed-r.Marks[1].Elapsed < kept {
			break // it stays until the next one is due: a round that fails deletes nothing
		}
		r.Marks = r.Marks[1:]
	}
	return due
}

// replace puts value in place of record, and reports whether it did: not if another node was faster.
func (c *Catalog) replace(ctx context.Context, record registry.Record, value registry.Retention) (bool, error) {
	writes, err := ledger.Encode(ledger.Put(registry.RetentionKey(), registry.StateNone, value))
	if err != nil {
		return false, err
	}
	_, err = c.ledger.Step(ctx, registry.Batch{Conditions: []registry.Condition{asRead(registry.RetentionKey(), record)}, Writes: writes})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, ledger.StoreError("catalog.replace", err)
}

// forgetUpTo deletes the changes up to position due, in parts, each with the horizon behind it. record holds horizon. What another node
// deletes at the same time is left to that one.
func (c *Catalog) forgetUpTo(ctx context.Context, due registry.Position, record registry.Record, horizon registry.Horizon) error {
	const op = "catalog.forgetUpTo"
	for horizon.Position < due {
		page, err := c.store.Changes(ctx, horizon.Position, forgetPage)
		if err != nil {
			return ledger.StoreError(op, err)
		}
		var deletes []registry.Write
		for _, change := range page {
			if change.Position > due {
				break
			}
			horizon.Position = change.Position
			if !change.Change.ID.IsZero() { // its record has another key than a change has, and stays
				deletes = append(deletes, registry.Delete(registry.ChangeKey(change.Change.ID)))
			}
		}
		if len(deletes) == 0 {
			return nil
		}
		writes, err := ledger.Encode(ledger.Put(registry.HorizonKey(), registry.StateNone, horizon))
		if err != nil {
			return err
		}
		etags, err := c.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{asRead(registry.HorizonKey(), record)},
			Writes:     append(writes, deletes...),
		})
		if _, failed := registry.FailedCondition(err); failed {
			return nil
		}
		if err != nil {
			return ledger.StoreError(op, err)
		}
		record.ETag = etags[0]
	}
	return nil
}

// asRead returns the condition that the record at key is as it was read, also if there was none. The batch must write it.
func asRead(key registry.Key, record registry.Record) registry.Condition {
	if record.ETag.IsZero() {
		return registry.Absent(key)
	}
	return registry.ETagIs(key, record.ETag)
}

// decodeIfThere is decode, or the zero value of a record that does not exist.
func decodeIfThere[T registry.Value](record registry.Record) (value T, err error) {
	if !record.Exists() {
		return value, nil
	}
	return ledger.Decode[T](record)
}

// seenFence is a fence that looked old when it was seen.
type seenFence struct {
	etag    registry.ETag
	written time.Time // by the clock of its writer, but no later than it was seen, by the store's clock
	since   time.Time // by the clock of this process, with the monotonic reading, if there is one: nobody can set that
}

// forgetFences deletes the fences that are older than the retention, by the clocks of their writers, and that this process has seen for
// keptMin: what a node has just written whose clock is a week behind looks old at once. One whose writer's clock was ahead is as old as the
// time for which it was seen. Then it remembers those that it meets now.
func (c *Catalog) forgetFences(ctx context.Context, now time.Time) error {
	limit := now.Add(-max(c.changeRetention, keptMin))
	if err := c.forgetSeenFences(ctx, limit); err != nil {
		return err
	}
	scan, seen := &c.sweeps.fences, c.sweeps.oldFences
	var unread error
	for range sweepPages {
		page, err := c.ledger.ListKeys(ctx, registry.TableChange, "", scan.after, ledger.ScanPage)
		if err != nil {
			return ledger.StoreError("catalog.forgetFences", err)
		}
		var found []registry.Key
		for _, record := range page {
			if record.State == registry.StateVoid && seen[record.Key].etag != record.ETag {
				found = append(found, record.Key)
			}
		}
		err = c.seeFences(ctx, found, now, limit)
		switch {
		case isUnread(err):
			unread = errors.Join(unread, err)
		case err != nil:
			return err
		}
		if scan.advance(page) {
			break
		}
	}
	return unread
}

// seeFences remembers those of the fences at keys that look older than limit, or keptMin younger than now. A fence too many is met
// again.
func (c *Catalog) seeFences(ctx context.Context, keys []registry.Key, now, limit time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	seen := c.sweeps.oldFences
	var unread error
	for _, record := range records {
		if record.State != registry.StateVoid || len(seen) == forgetPage {
			continue
		}
		change, err := ledger.Decode[registry.Change](record)
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case change.Time.After(now.Add(keptMin)):
			seen[record.Key] = seenFence{record.ETag, now, c.now()}
		case change.Time.Before(limit):
			seen[record.Key] = seenFence{record.ETag, change.Time, c.now()}
		}
	}
	return unread
}

// forgetSeenFences deletes those of the fences that are remembered which are due, unless they are gone or in another's place: where another
// node has deleted one, the change that it kept away may have come true since.
func (c *Catalog) forgetSeenFences(ctx context.Context, limit time.Time) error {
	seen, now := c.sweeps.oldFences, c.now()
	var due []registry.Key
	for key, fence := range seen {
		if fence.written.Before(limit) && now.Sub(fence.since) >= keptMin {
			due = append(due, key)
		}
	}
	if len(due) == 0 {
		return nil
	}
	records, err := c.ledger.Get(ctx, due...)
	if err != nil {
		return err
	}
	var batch registry.Batch
	for i, record := range records {
		if record.ETag != seen[due[i]].etag {
			delete(seen, due[i])
			continue
		}
		batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
		batch.Writes = append(batch.Writes, registry.Delete(record.Key))
	}
	if len(batch.Writes) == 0 {
		return nil
	}
	_, err = c.ledger.Step(ctx, batch)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // another node deletes them too: the rest stays for the next round
	}
	for _, write := range batch.Writes {
		if err == nil {
			delete(seen, write.Key)
		}
	}
	return ledger.StoreError("catalog.forgetSeenFences", err)
}
