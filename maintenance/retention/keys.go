package retention

import (
	"cmp"
	"context"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// If at least expiredKeysMin keys of a page have expired, the round continues with the next page at
// once. The number of such pages has no bound, because keys could otherwise arrive faster than they
// are deleted.
const expiredKeysMin = ledger.ScanPage / 10

// keys deletes the outcomes of idempotency keys that have expired.
//
// Keys are hashes, so outcomes are not ordered by time, and a pass reads all of them. The next pass
// begins half a lifetime after the earliest expiry that the last pass has left behind. At a steady
// rate of keys, a third of the outcomes have expired at that time, so each outcome is read about
// three times. Some stores find expired outcomes themselves. With such a store, a pass reads only
// outcomes without a time.
type keys struct {
	ledger  *ledger.Ledger
	expirer registry.Expirer // nil if the store does not find expired outcomes itself
	life    time.Duration    // of an outcome

	scan     scan
	due      time.Time // when the next pass begins, by the store's clock
	earliest time.Time // the earliest expiry among the outcomes that the pass has read and left
	unread   bool      // the pass has read an outcome that cannot be decoded
}

func newKeys(config Config, records *ledger.Ledger) *keys {
	expirer, _ := registry.Find[registry.Expirer](config.Store)
	return &keys{
		ledger: records, expirer: expirer, life: config.KeyLife,
		scan: newScan(records, registry.TableIdempotency),
	}
}

func (k *keys) run(ctx context.Context) error {
	now, err := k.ledger.Time(ctx)
	if err != nil {
		return err
	}
	if k.expirer != nil {
		if err := k.forgetDated(ctx, now); err != nil {
			return err
		}
	}
	return k.pass(ctx, now)
}

// forgetDated deletes the outcomes that the store reports as expired.
func (k *keys) forgetDated(ctx context.Context, now time.Time) error {
	for {
		page, err := k.expirer.Expired(ctx, now, ledger.ScanPage)
		if err != nil {
			return ledger.StoreError("retention.forgetDated", err)
		}
		deleted, err := deleteAsRead(ctx, k.ledger, page)
		if err != nil || deleted < ledger.ScanPage {
			return err
		}
	}
}

// pass continues the pass through all outcomes. If the store finds expired outcomes itself, the
// pass covers only outcomes without a time.
func (k *keys) pass(ctx context.Context, now time.Time) error {
	if !k.begin(now) {
		return nil
	}
	var unread error
	for idle := 0; idle < scanPages; {
		page, err := k.page(ctx)
		if err != nil {
			return err
		}
		expired, err := k.forgetExpired(ctx, page, now)
		switch {
		case isUnread(err):
			unread = cmp.Or(unread, err)
		case err != nil:
			return err
		}
		if expired < expiredKeysMin {
			idle++
		}
		if k.scan.advance(page) {
			k.due = k.earliest.Add(k.life / 2)
			if k.unread {
				k.due = now // another pass follows at once
			}
			break
		}
	}
	return unread
}

// begin reports whether a pass continues, or begins, at time now.
func (k *keys) begin(now time.Time) bool {
	if k.scan.after != "" {
		return true
	}
	// No outcome can make a pass due later than 2*k.life from now. A later k.due was set while the
	// store's clock was ahead.
	if now.Before(k.due) && k.due.Sub(now) <= 2*k.life {
		return false
	}
	k.earliest, k.unread = now.Add(k.life), false // outcomes written from now on expire later
	return true
}

// page returns the next outcomes of the pass.
func (k *keys) page(ctx context.Context) ([]registry.Record, error) {
	if k.expirer == nil {
		return k.scan.page(ctx)
	}
	page, err := k.expirer.Undated(ctx, k.scan.after, ledger.ScanPage)
	return page, ledger.StoreError("retention.page", err)
}

// forgetExpired deletes the expired outcomes of page, and returns how many have expired. If another
// node deletes some of them at the same time, the others stay for the next round. An unreadable
// outcome stays. It is reported as the error, unless another error occurs.
func (k *keys) forgetExpired(ctx context.Context, page []registry.Record, now time.Time) (expired int, err error) {
	var old []registry.Record
	var unread error
	for _, record := range page {
		value, err := ledger.Decode[registry.Idempotency](record)
		switch {
		case err != nil:
			unread, k.unread = cmp.Or(unread, err), true
		case registry.IsAhead(value.Created, now):
			if err := k.live(ctx, record, value, now); err != nil {
				return 0, err
			}
		case value.Expires().Before(now):
			old = append(old, record)
		case value.Expires().Before(k.earliest):
			k.earliest = value.Expires()
		}
	}
	expired, err = deleteAsRead(ctx, k.ledger, old)
	return expired, cmp.Or(err, unread)
}

// live restarts the lifetime of an outcome that was written while the clock was ahead.
func (k *keys) live(ctx context.Context, record registry.Record, value registry.Idempotency, now time.Time) error {
	value.Created = now
	writes, err := ledger.Encode(ledger.Put(record.Key, record.State, value))
	if err != nil {
		return err
	}
	_, err = k.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return nil
	}
	return ledger.StoreError("retention.live", err)
}
