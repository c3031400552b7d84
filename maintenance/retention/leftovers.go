package retention

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// leftovers deletes records that nodes of version 0.1.0 leave behind because they do not know about
// them:
//
//   - the labels of a table or view that such a node ended;
//   - the dropped record of a pointer that such a node ended or restored;
//   - the dropped record of an ended object, if such a node deleted the change that ended it.
//
// No other record depends on them. A walk reads the labels and the dropped records when the process
// starts, and then once a day. A pointer that has ended never comes back. So a record without a
// pointer will never have one.
type leftovers struct {
	ledger *ledger.Ledger
	scans  []scan // the scans of a walk, in order
	at     int    // index of the scan that the next round continues
	walk   time.Time
}

func newLeftovers(records *ledger.Ledger) leftovers {
	return leftovers{ledger: records, scans: []scan{
		newScan(records, registry.TableLabel), newScan(records, registry.TableDropped),
	}}
}

// run continues the walk, or begins the next one if it is due.
func (l *leftovers) run(ctx context.Context, now time.Time) error {
	current := &l.scans[l.at]
	// No walk sets l.walk to a later time than that, so a later time was set while the store's
	// clock was ahead.
	if l.at == 0 && current.after == "" && now.Before(l.walk) && l.walk.Sub(now) <= walkEvery {
		return nil
	}
	err := current.next(ctx, func(record registry.Record) error { return l.visit(ctx, record) })
	if (err == nil || isUnread(err)) && current.after == "" {
		if l.at = (l.at + 1) % len(l.scans); l.at == 0 {
			l.walk = now.Add(walkEvery)
		}
	}
	return err
}

// visit deletes a record if it was left behind.
func (l *leftovers) visit(ctx context.Context, record registry.Record) error {
	isLeft := l.isLeftDropped
	if record.Key.Table == registry.TableLabel {
		isLeft = l.isLeftLabel
	}
	left, err := isLeft(ctx, record)
	if err != nil || !left {
		return err
	}
	_, err = deleteAsRead(ctx, l.ledger, []registry.Record{record})
	return err
}

func (l *leftovers) isLeftLabel(ctx context.Context, record registry.Record) (bool, error) {
	var id registry.ID
	if err := id.UnmarshalText([]byte(record.Key.ID)); err != nil {
		return false, ledger.Undecoded(record, err)
	}
	return l.isGone(ctx, registry.PointerKey(id))
}

func (l *leftovers) isLeftDropped(ctx context.Context, record registry.Record) (bool, error) {
	dropped, err := ledger.Decode[registry.Dropped](record)
	if err != nil {
		return false, err
	}
	if record.State == registry.StateEnded {
		if dropped.EndedChange.IsZero() {
			return false, nil
		}
		return l.isGone(ctx, registry.ChangeKey(dropped.EndedChange))
	}
	found, err := l.ledger.Get(ctx, registry.PointerKey(dropped.ID))
	if err != nil || !found[0].Exists() {
		return err == nil, err
	}
	pointer, err := ledger.Decode[registry.Pointer](found[0])
	isPresent := found[0].State.IsDropped() && pointer.DroppedKey(found[0].State) == record.Key
	return err == nil && !isPresent, err
}

func (l *leftovers) isGone(ctx context.Context, key registry.Key) (bool, error) {
	found, err := l.ledger.Get(ctx, key)
	return err == nil && !found[0].Exists(), err
}
