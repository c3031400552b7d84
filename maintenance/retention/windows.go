package retention

import (
	"cmp"
	"context"
	"time"

	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/registry"
)

// operationEndWindow is the operation in change records for the end of a window.
const operationEndWindow = "end-undrop-window"

// walkEvery is the time from the end of one walk over all pointers to the beginning of the next.
// Only tables that were dropped while the clock was ahead need the walk. They wait for it at most
// that long.
const walkEvery = 24 * time.Hour

// endOfWindow describes how a pointer gives up its locations at the end of its window. The files of
// its table stay.
var endOfWindow = claims.Ending{How: registry.EndedWindow, Lasting: true}

// windows ends pointers that were dropped longer ago than the undrop window and do not wait for a
// purge. After that, the table or view can no longer be restored, and its claims are free. Its
// files stay. windows also ends a pointer whose purge was cancelled after it had begun, once the
// window has passed since then.
//
// It finds these pointers through the records that drops write, in the order of the times of the
// drops. So the cost of a round depends on the number of ended windows, not on the number of
// tables. The record of a drop is only a hint. The Apply that ends a window depends on the pointer
// alone. A drop's record is removed if its pointer is gone, was restored, or was dropped at another
// time.
//
// Without more, a table that was dropped while the clock was ahead would stay too long. So when the
// process starts, and then once a day, a walk reads all pointers.
type windows struct {
	ledger *ledger.Ledger
	claims *claims.Claims
	window time.Duration

	drops    scan // the records of drops
	pointers scan
	walk     time.Time // when the next walk begins, by the store's clock

	leftovers leftovers
}

func newWindows(config Config, records *ledger.Ledger) *windows {
	w := &windows{
		ledger: records, claims: claims.New(records), window: config.UndropWindow,
		drops: newScan(records, registry.TableDue), pointers: newScan(records, registry.TablePointer),
		leftovers: newLeftovers(records),
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
	return cmp.Or(w.walkOn(ctx, now, limit), unread, w.leftovers.run(ctx, now))
}

// isOver reports whether the undrop window of a pointer is over, because it began before limit.
// state is the state of the pointer's record.
func isOver(state registry.State, pointer registry.Pointer, limit time.Time) bool {
	return state.IsDropped() && pointer.Since.Before(limit) && pointer.Task.IsZero()
}

// endListed ends the pointer that the record of a drop refers to, if its window is over. If the
// record does not belong to the pointer's present window, endListed removes the record.
//
// The pointer is read after the record. A later drop writes a record for a different second, or
// this record with a new ETag. The removal requires the listed ETag. So no drop loses its record.
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
	if err != nil || stands { // the record was removed with the pointer, or its second is not over yet
		return err
	}
	_, err = deleteAsRead(ctx, w.ledger, []registry.Record{record})
	return err
}

// walkOn continues the walk over all pointers, or begins the next one if it is due.
func (w *windows) walkOn(ctx context.Context, now, limit time.Time) error {
	// No walk sets w.walk to a later time than that, so a later time was set while the store's
	// clock was ahead.
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
		if err == nil {
			err = w.list(ctx, record, pointer)
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

// dropNow restarts the undrop window of a pointer that was dropped while the clock was ahead. It
// also moves the record of the drop. The length of the window stays the same.
func (w *windows) dropNow(ctx context.Context, record registry.Record, pointer registry.Pointer,
	now time.Time) error {
	before := pointer.EndKey()
	ends, err := w.ledger.Get(ctx, before)
	if err != nil || !ends[0].Exists() || before == registry.TaskKey(pointer.Task) {
		return err // the task of a purge has its own time
	}
	if !pointer.ReachableUntil.IsZero() {
		pointer.ReachableUntil = now.Add(pointer.ReachableUntil.Sub(pointer.Since))
	}
	pointer.Since = now
	writes, err := ledger.Encode(ledger.Replace(record, record.State, &pointer))
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

// list adds the dropped record of a pointer that a node of version 0.1.0 dropped. The caller of
// that drop is not known.
func (w *windows) list(ctx context.Context, record registry.Record, pointer registry.Pointer) error {
	key := pointer.DroppedKey(record.State)
	found, err := w.ledger.Get(ctx, key)
	if err != nil || found[0].Exists() {
		return err
	}
	dropped := pointer.AsDropped(record.State, registry.Change{})
	writes, err := ledger.Encode(ledger.Put(key, registry.StateDropped, dropped))
	if err != nil {
		return err
	}
	_, err = w.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record), registry.Absent(key)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return nil // the pointer ended or was restored
	}
	return ledger.StoreError("retention.list", err)
}
