package retention

import (
	"cmp"
	"context"
	"time"

	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/registry"
)

// operationEndWindow is the name that change records have for the end of a window.
const operationEndWindow = "end-undrop-window"

// walkEvery is how long after one walk over all pointers the next one begins. Only what was dropped
// while the clock was ahead waits for a walk, and then for at most so long.
const walkEvery = 24 * time.Hour

// endOfWindow is how a pointer gives up its locations: its files stay.
var endOfWindow = claims.Ending{How: registry.EndedWindow, Lasting: true}

// windows ends the pointers that were dropped longer ago than the undrop window and have no purge
// to wait for. The table or view can no longer come back, and its claims are free. Its files stay.
// So it is with those whose purge had begun and was called off longer ago.
//
// It finds them by the records that drops write, in the order of their times. So a round costs
// what there is to end, however many tables there are. Such a record is a hint. Whether a window is
// over is decided by the pointer alone, in the Apply that ends it. A record whose pointer is gone,
// has come back or was dropped at another time is removed.
//
// What was dropped while the clock was ahead would stay for too long. So a walk reads all pointers
// when the process starts, and once a day.
type windows struct {
	ledger *ledger.Ledger
	claims *claims.Claims
	window time.Duration

	drops    scan // the records of drops
	pointers scan
	walk     time.Time // when the next walk begins, by the store's clock
}

func newWindows(config Config, records *ledger.Ledger) *windows {
	w := &windows{
		ledger: records, claims: claims.New(records), window: config.UndropWindow,
		drops: newScan(records, registry.TableDue), pointers: newScan(records, registry.TablePointer),
	}
	w.drops.prefix = registry.WindowPrefix()
	return w
}

func (w *windows) run(ctx context.Context) error {
	now, err := w.ledger.Time(ctx)
	if err != nil {
		return err
	}
	limit := now.Add(-w.window)
	w.drops.until = registry.WindowEnd(limit)
	unread := w.drops.next(ctx, func(record registry.Record) error { return w.endListed(ctx, record, limit) })
	if unread != nil && !isUnread(unread) {
		return unread
	}
	return cmp.Or(w.walkOn(ctx, now, limit), unread)
}

// isOver reports whether the window of a pointer, in a state, is over: it began before limit.
func isOver(state registry.State, pointer registry.Pointer, limit time.Time) bool {
	return state.IsDropped() && pointer.Since.Before(limit) && pointer.Task.IsZero()
}

// endListed ends the pointer that the record of a drop names, if its window is over. It removes a
// record that is not that of the pointer's window.
//
// The pointer is read after the record. A later drop writes the record of another second, or this
// one with another ETag, and the removal requires the one that was listed. So no drop loses its
// record.
func (w *windows) endListed(ctx context.Context, record registry.Record, limit time.Time) error {
	id, _, err := registry.ParseWindow(record.Key)
	if err != nil {
		return ledger.Undecoded(record, err)
	}
	stands := false
	err = w.claims.End(ctx, operationEndWindow, id, endOfWindow, func(
		state registry.State, pointer registry.Pointer) bool {
		stands = state.IsDropped() && pointer.EndKey() == record.Key
		return isOver(state, pointer, limit)
	})
	if err != nil || stands { // it went with the pointer, or its second is not over yet
		return err
	}
	_, err = deleteAsRead(ctx, w.ledger, []registry.Record{record})
	return err
}

// walkOn goes on with the walk over all pointers, or begins the next one if it is time.
func (w *windows) walkOn(ctx context.Context, now, limit time.Time) error {
	// One that is later than any walk could make it was set when the store's clock was ahead.
	if w.pointers.after == "" && now.Before(w.walk) && w.walk.Sub(now) <= walkEvery {
		return nil
	}
	err := w.pointers.next(ctx, func(record registry.Record) error {
		if !record.State.IsDropped() {
			return nil
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err == nil && registry.IsAhead(pointer.Since, now) {
			return w.dropNow(ctx, record, pointer, now)
		}
		if err != nil || !isOver(record.State, pointer, limit) {
			return err
		}
		return w.claims.End(ctx, operationEndWindow, pointer.ID, endOfWindow,
			func(state registry.State, pointer registry.Pointer) bool { return isOver(state, pointer, limit) })
	})
	if w.pointers.after == "" && (err == nil || isUnread(err)) {
		w.walk = now.Add(walkEvery)
	}
	return err
}

// dropNow has the window of a pointer begin now, which was dropped while the clock was ahead. The
// record by which it is found moves with it. What it waits for takes as long as it was to take.
func (w *windows) dropNow(ctx context.Context, record registry.Record, pointer registry.Pointer,
	now time.Time) error {
	before := pointer.EndKey()
	ends, err := w.ledger.Get(ctx, before)
	if err != nil || !ends[0].Exists() || before == registry.TaskKey(pointer.Task) {
		return err // a task has a time of its own
	}
	if !pointer.ReachableUntil.IsZero() {
		pointer.ReachableUntil = now.Add(pointer.ReachableUntil.Sub(pointer.Since))
	}
	pointer.Since = now
	writes, err := ledger.Encode(ledger.Put(record.Key, record.State, &pointer))
	if err != nil {
		return err
	}
	moved := registry.Put(pointer.EndKey(), ends[0].State, ends[0].Value)
	_, err = w.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record), ledger.Unchanged(ends[0])},
		Writes:     append(writes, moved, registry.Delete(before)),
	})
	if _, failed := registry.FailedCondition(err); failed {
		return nil
	}
	return ledger.StoreError("retention.dropNow", err)
}
