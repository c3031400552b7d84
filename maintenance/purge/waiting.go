package purge

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// beginMax is the maximum number of purges that one search begins, so that running purges make
// progress in between.
const beginMax = 1000

// beginWaiting begins the purges whose time has come. Every CountPause, it also counts the waiting
// purges and checks their times. While the store's clock is in doubt, it only counts.
func (w *Worker) beginWaiting(ctx context.Context, now time.Time, doubt string) error {
	counts := w.counted.IsZero() || w.now().Sub(w.counted) >= CountPause
	end, begun, waiting, bytes := registry.WaitingEnd(now), 0, 0, int64(0)
	if doubt != "" {
		end = ""
	}
	err := w.eachWaiting(ctx, func(record registry.Record) (bool, error) {
		if record.Key.ID >= end || begun == beginMax {
			if !counts {
				return false, nil
			}
			due, err := ledger.Decode[registry.Due](record)
			if err != nil {
				return true, nil // moorage doctor --deep reports it
			}
			waiting, bytes = waiting+1, bytes+due.Bytes
			if doubt == "" {
				err = w.clamp(ctx, record, due, now)
			}
			return true, err
		}
		begun++
		return true, w.beginListed(ctx, record, now)
	})
	if err == nil && counts {
		w.counted = w.now()
		w.mu.Lock()
		w.stats.Waiting, w.stats.WaitingBytes = waiting, bytes
		w.mu.Unlock()
	}
	return err
}

// beginListed begins the purge of a record in the due index.
func (w *Worker) beginListed(ctx context.Context, record registry.Record, now time.Time) error {
	pointer, _, err := registry.ParseWaiting(record.Key)
	if err != nil {
		return nil // moorage doctor --deep reports it
	}
	_, err = w.locations.BeginPurge(ctx, moorage.System(operation), operation+"-begin", pointer, false,
		func(_ context.Context, table registry.Pointer) ([]registry.Condition, bool, error) {
			return nil, table.EndKey() == record.Key && !now.Before(table.PurgeAt()), nil
		})
	return err
}

// eachWaiting calls visit for the record of each waiting purge, in the order of their times, until
// visit returns false.
func (w *Worker) eachWaiting(ctx context.Context, visit func(registry.Record) (bool, error)) error {
	return w.ledger.Scan(ctx, registry.TableDue, registry.WaitingPrefix(), "", visit)
}

// Waiting is a dropped table that can be restored until its purge begins.
type Waiting struct {
	ID    string             // the future id of the purge's task
	Table moorage.Identifier // has no name if its record cannot be read
	// Begins is when the purge begins, by the store's clock, in seconds.
	Begins time.Time
	// Bytes is the size of the files of the table's current snapshot. It is zero if the table does
	// not state it.
	Bytes int64
}

// ListWaiting returns the waiting purges in the order of their times, at most limit of them; 0
// means all. after is empty for the first page, and for others it is the value of next from the
// page before. On the last page, next is empty. Unreadable records are left out; package check
// reports them.
func (w *Worker) ListWaiting(ctx context.Context, after string, limit int) (
	found []Waiting, next string, err error) {
	const op = "purge.ListWaiting"
	last := ""
	err = w.ledger.Scan(ctx, registry.TableDue, registry.WaitingPrefix(), after,
		func(record registry.Record) (bool, error) {
			due, unreadable := ledger.Decode[registry.Due](record)
			pointer, at, malformed := registry.ParseWaiting(record.Key)
			if unreadable != nil || malformed != nil {
				return true, nil
			}
			if limit > 0 && len(found) == limit {
				next = last
				return false, nil
			}
			last = record.Key.ID
			waiting := Waiting{ID: due.Task.String(), Begins: at, Bytes: due.Bytes}
			records, err := w.ledger.Get(ctx, registry.PointerKey(pointer))
			if err != nil {
				return false, err
			}
			if table, err := ledger.Decode[registry.Pointer](records[0]); err == nil {
				waiting.Table = table.Identifier()
			}
			found = append(found, waiting)
			return true, nil
		})
	return found, next, moorage.Annotate(op, "", err)
}

// clockSlack is the accepted difference between the clocks of two nodes.
const clockSlack = time.Minute

// clamp restarts the wait of a purge whose table seems to have been dropped in the future. In that
// case, the store's clock was ahead at the drop, and the purge would wait too long by that
// difference.
func (w *Worker) clamp(ctx context.Context, record registry.Record, due registry.Due, now time.Time) error {
	id, _, err := registry.ParseWaiting(record.Key)
	if err != nil {
		return nil
	}
	return w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := w.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || !records[0].Exists() {
			return err
		}
		table, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || table.EndKey() != record.Key || !table.Since.After(now.Add(clockSlack)) {
			return nil
		}
		table.Since = now
		writes, err := ledger.Encode(
			ledger.Replace(records[0], records[0].State, table),
			ledger.Put(table.EndKey(), registry.StateNone, due))
		if err != nil {
			return err
		}
		_, err = w.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{ledger.Unchanged(records[0])},
			Writes:     append(writes, registry.Delete(record.Key)),
		})
		return ledger.RetryOnConflict(err)
	})
}

// beginNow begins the waiting purge with this task id at once. It returns false if there is no such
// purge.
func (w *Worker) beginNow(ctx context.Context, id registry.ID) (begun bool, err error) {
	err = w.eachWaiting(ctx, func(record registry.Record) (bool, error) {
		due, err := ledger.Decode[registry.Due](record)
		if err != nil || due.Task != id {
			return true, nil
		}
		pointer, _, err := registry.ParseWaiting(record.Key)
		if err != nil {
			return true, nil
		}
		begun, err = w.locations.BeginPurge(ctx, moorage.System(operation), operation+"-begin", pointer, true,
			func(_ context.Context, table registry.Pointer) ([]registry.Condition, bool, error) {
				return nil, table.Task == id, nil
			})
		return false, err
	})
	return begun, err
}
