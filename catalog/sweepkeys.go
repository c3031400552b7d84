package catalog

import (
	"cmp"
	"context"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// expiredKeysMin is how many expired ones among the keys of a page make it worth to go on with the next at once. Were there a
// bound on the pages of a round in any case, keys could come faster than they go.
const expiredKeysMin = ledger.ScanPage / 10

// keySweep is how far the sweep has come through the outcomes of mutations that were sent with keys.
//
// Keys are hashes, so outcomes are in no order of time, and a pass reads all of them. A pass begins when half a lifetime has gone by since
// the first of those expired that the last pass left. By then a third of them have, at a steady rate of keys, so each
// is read about three times before it goes. A store that finds by itself what has expired spares that: then a pass
// only looks at those that were written without a time.
type keySweep struct {
	scan     slowScan
	due      time.Time // when the next pass begins, by the store's clock
	earliest time.Time // the earliest expiry that is yet to come among the outcomes that the pass has met
	unread   bool      // the pass has met an outcome that cannot be read
}

// begin reports whether the pass goes on, or the next one begins, at now. lifetime is that of an outcome.
func (s *keySweep) begin(now time.Time, lifetime time.Duration) bool {
	if s.scan.after != "" {
		return true
	}
	// One that is due later than any outcome could make it was set when the store's clock was ahead.
	if now.Before(s.due) && s.due.Sub(now) <= 2*lifetime {
		return false
	}
	s.earliest, s.unread = now.Add(lifetime), false // what is written from now on expires later
	return true
}

// end notes that the pass has ended. One that met an outcome which cannot be read is followed by another at once.
func (s *keySweep) end(now time.Time, lifetime time.Duration) {
	s.due = s.earliest.Add(lifetime / 2)
	if s.unread {
		s.due = now
	}
}

// forgetKeys deletes the outcomes of mutations whose keys have expired.
func (c *Catalog) forgetKeys(ctx context.Context) error {
	now, err := c.store.Time(ctx)
	if err != nil {
		return ledger.StoreError("catalog.forgetKeys", err)
	}
	expirer, _ := registry.Find[registry.Expirer](c.store)
	if expirer != nil {
		if err := c.forgetDated(ctx, expirer, now); err != nil {
			return err
		}
	}
	return c.passKeys(ctx, expirer, now)
}

// forgetDated deletes the outcomes that the store says have expired.
func (c *Catalog) forgetDated(ctx context.Context, expirer registry.Expirer, now time.Time) error {
	for {
		page, err := expirer.Expired(ctx, now, ledger.ScanPage)
		if err != nil {
			return ledger.StoreError("catalog.forgetDated", err)
		}
		deleted, err := c.deleteAsRead(ctx, page)
		if err != nil || deleted < ledger.ScanPage {
			return err
		}
	}
}

// passKeys goes on with the pass through the outcomes of which the store does not know when they expire; all of them without an expirer.
func (c *Catalog) passKeys(ctx context.Context, expirer registry.Expirer, now time.Time) error {
	s, lifetime := &c.sweeps.keys, c.keyLifetime+keyGrace
	if !s.begin(now, lifetime) {
		return nil
	}
	var unread error
	for idle := 0; idle < sweepPages; {
		page, err := c.keyPage(ctx, expirer)
		if err != nil {
			return err
		}
		expired, err := c.forgetExpired(ctx, page, now)
		switch {
		case isUnread(err):
			unread = cmp.Or(unread, err)
		case err != nil:
			return err
		}
		if expired < expiredKeysMin {
			idle++
		}
		if s.scan.advance(page) {
			s.end(now, lifetime)
			break
		}
	}
	return unread
}

// keyPage returns the outcomes that come next in the pass.
func (c *Catalog) keyPage(ctx context.Context, expirer registry.Expirer) ([]registry.Record, error) {
	if expirer == nil {
		return c.sweeps.keys.scan.page(ctx, c)
	}
	page, err := expirer.Undated(ctx, c.sweeps.keys.scan.after, ledger.ScanPage)
	return page, ledger.StoreError("catalog.keyPage", err)
}

// forgetExpired deletes those of page, which are outcomes of mutations, that have expired, and returns how many those are. If
// another node deletes some of them at the same time the rest stays for the next round. One that cannot be read stays, and is
// the error if there is no other.
func (c *Catalog) forgetExpired(ctx context.Context, page []registry.Record, now time.Time) (expired int, err error) {
	var old []registry.Record
	var unread error
	s := &c.sweeps.keys
	for _, record := range page {
		value, err := ledger.Decode[registry.Idempotency](record)
		switch {
		case err != nil:
			unread, s.unread = cmp.Or(unread, err), true
		case value.Expires.Before(now):
			old = append(old, record)
		case value.Expires.Before(s.earliest):
			s.earliest = value.Expires
		}
	}
	expired, err = c.deleteAsRead(ctx, old)
	return expired, cmp.Or(err, unread)
}

// deleteAsRead deletes outcomes if all are as they were read, and returns how many it deleted: none if another node was faster with one.
func (c *Catalog) deleteAsRead(ctx context.Context, records []registry.Record) (deleted int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	var batch registry.Batch
	for _, record := range records {
		batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
		batch.Writes = append(batch.Writes, registry.Delete(record.Key))
	}
	_, err = c.ledger.Step(ctx, batch)
	switch _, failed := registry.FailedCondition(err); {
	case failed:
		return 0, nil
	case err != nil:
		return 0, ledger.StoreError("catalog.deleteAsRead", err)
	}
	return len(records), nil
}
