package retention

import (
	"context"
	"errors"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

const (
	// forgetPage is the maximum number of change records that one Apply deletes.
	forgetPage = 1000
	// keptMin is the minimum time that change records and fences are kept, however short the
	// retention is. No process uses a change record or fence for longer than a quarter of an hour:
	//
	//   - A change takes no longer than the timeout of its request, or the deadline of its
	//     transaction. After that, its author may search for the change record until the ledger's
	//     settle timeout is over.
	//   - A fence excludes an Apply that was sent before that search. A coordinator finds an
	//     operator's fence no later than that search.
	//   - Recovery uses the records of transactions, not change records or fences.
	//
	// If a process pauses for longer in the middle of a change, only the retention protects it. The
	// same holds if an Apply takes longer to arrive.
	keptMin = 20 * time.Minute
	// marksMax is the maximum number of marks. A change can outlive the retention by at most
	// 1/marksMax of it.
	marksMax = 128
)

// changes deletes the change records that are older than the retention, oldest first. It also
// deletes the fences among them.
//
// No clock can be relied on for the age of a change: its author's clock may be wrong, and the
// store's clock may be set. So rounds on all nodes add up the time between them, in one record.
// Each round adds the time since the last round of any node, by the store's clock. But it adds no
// more than the time since its own process's last round, by a clock that cannot be set. It adds
// nothing if the store's clock was set back.
//
// So a wrong clock delays deletions by at most the time between two rounds, and nothing is ever
// deleted early. Time in which no process runs does not count.
//
// A mark records a value of that sum, and the position at which the order of changes ended then.
// Every change up to the position is at least as old as the mark.
type changes struct {
	ledger *ledger.Ledger
	store  registry.Store
	now    func() time.Time
	kept   time.Duration
	marked time.Time // when this process began, or last wrote a mark, by its own clock
	fences fences
}

func newChanges(config Config, records *ledger.Ledger) *changes {
	kept := max(config.ChangeRetention, keptMin)
	return &changes{
		ledger: records, store: config.Store, now: config.Now, kept: kept, marked: config.Now(),
		fences: fences{
			ledger: records, now: config.Now, kept: kept,
			scan: newScan(records, registry.TableChange), seen: make(map[registry.Key]seenFence),
		},
	}
}

func (c *changes) run(ctx context.Context) error {
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.forgetOrdered(ctx), c.fences.run(ctx, now))
}

// forgetOrdered deletes the changes up to the last mark that is old enough.
func (c *changes) forgetOrdered(ctx context.Context) error {
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
		return ledger.StoreError("retention.forgetOrdered", err)
	}
	now, err := c.ledger.Time(ctx) // read after the head, so that the mark is not older than its changes
	if err != nil {
		return err
	}
	measured := c.now()
	due := mark(&retention, head, now, measured.Sub(c.marked), c.kept)
	c.marked = measured
	if ours, err := c.replace(ctx, records[0], retention); err != nil || !ours {
		return err
	}
	return c.forgetUpTo(ctx, due, records[1], horizon)
}

// mark records in r that the order of changes ended at position head at time now, by the store's
// clock. At most measured is added to the sum. mark returns the last position that was reached at
// least kept ago, or zero if there is none.
func mark(r *registry.Retention, head registry.Position, now time.Time,
	measured, kept time.Duration) (due registry.Position) {
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
			break // the mark stays until the next one is due, so a failed round loses nothing
		}
		r.Marks = r.Marks[1:]
	}
	return due
}

// replace replaces the value of record. If another node was faster, it does nothing and returns
// false.
func (c *changes) replace(ctx context.Context, record registry.Record, value registry.Retention) (bool, error) {
	writes, err := ledger.Encode(ledger.Put(registry.RetentionKey(), registry.StateNone, value))
	if err != nil {
		return false, err
	}
	_, err = c.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{asRead(registry.RetentionKey(), record)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, ledger.StoreError("retention.replace", err)
}

// forgetUpTo deletes the changes up to position due, in parts, and writes the horizon with each
// part. record holds the present horizon. If another node deletes changes at the same time,
// forgetUpTo stops.
func (c *changes) forgetUpTo(ctx context.Context, due registry.Position, record registry.Record,
	horizon registry.Horizon) error {
	const op = "retention.forgetUpTo"
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
			if !change.Change.ID.IsZero() { // without an id, the change's record has another key, and stays
				deletes = append(deletes, registry.Delete(registry.ChangeKey(change.Change.ID)))
			}
			for _, item := range change.Change.Items {
				if item.Ended != "" {
					key := registry.Key{Table: registry.TableDropped, ID: item.Ended}
					deletes = append(deletes, registry.Delete(key))
				}
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

// asRead returns the condition that the record at key is unchanged, even if it did not exist. The
// caller's batch must write the record.
func asRead(key registry.Key, record registry.Record) registry.Condition {
	if record.ETag.IsZero() {
		return registry.Absent(key)
	}
	return registry.ETagIs(key, record.ETag)
}

// decodeIfThere decodes a record. If the record does not exist, it returns the zero value.
func decodeIfThere[T registry.Value](record registry.Record) (value T, err error) {
	if !record.Exists() {
		return value, nil
	}
	return ledger.Decode[T](record)
}
