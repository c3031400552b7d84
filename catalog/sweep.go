package catalog

import (
	"cmp"
	"context"
	"errors"
	"time"

	"moorage"
	"moorage/registry"
)

// sweepPages bounds how much of a table one round reads, in pages of scanPage records. What a round looks for is days
// old and can wait for another one; reading all pointers and a week of changes every minute would cost more than
// the commits that made them.
const sweepPages = 10

// slowScan goes through a table in parts, one each round, over and over.
type slowScan struct {
	table registry.Table
	after string // where the last round ended
}

// next visits the records of the next part. After an error the round that follows begins with the same page, unless it is that
// a record cannot be read, which keeps the round from no other.
func (s *slowScan) next(ctx context.Context, c *Catalog, visit func(registry.Record) error) error {
	var unread error
	for range sweepPages {
		records, err := s.page(ctx, c)
		if err != nil {
			return err
		}
		for _, record := range records {
			err := visit(record)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case isUnread(err):
				unread = cmp.Or(unread, err)
			case err != nil:
				return err
			}
		}
		if s.advance(records) {
			break
		}
	}
	return unread
}

// isUnread tells whether err may say that a record cannot be read. What else it may say fails again at once, and is reported again.
func isUnread(err error) bool { return err != nil && moorage.KindOf(err) == moorage.KindInternal }

// page returns the records that come next.
func (s *slowScan) page(ctx context.Context, c *Catalog) ([]registry.Record, error) {
	records, err := c.store.List(ctx, s.table, "", s.after, scanPage)
	return records, storeError("catalog.slowScan", err)
}

// advance goes on behind page, and tells whether that was the last; then the next begins again.
func (s *slowScan) advance(page []registry.Record) (last bool) {
	if len(page) < scanPage {
		s.after = ""
		return true
	}
	s.after = page[len(page)-1].Key.ID
	return false
}

// sweeps is how far the sweep has come. It belongs to whoever runs one.
type sweeps struct {
	windows, fences, keys, folders slowScan
}

func newSweeps() *sweeps {
	return &sweeps{slowScan{table: registry.TablePointer}, slowScan{table: registry.TableChange}, slowScan{table: registry.TableIdempotency}, slowScan{table: registry.TableLocation}}
}

// endWindows ends the pointers that were dropped longer than the undrop window ago and have no purge
// to wait for: the table or view can no longer come back, its claims are free. Its files stay. So it does with those whose purge had begun
// and was called off longer ago.
func (c *Catalog) endWindows(ctx context.Context) error {
	limit := c.now().Add(-c.undropWindow)
	over := func(state registry.State, pointer registry.Pointer) bool {
		return isDropped(state) && pointer.Since.Before(limit) && pointer.Task.IsZero()
	}
	return c.sweeps.windows.next(ctx, c, func(record registry.Record) error {
		if !isDropped(record.State) {
			return nil
		}
		pointer, err := decode[registry.Pointer](record)
		if err == nil && over(record.State, pointer) {
			err = c.endPointer(ctx, OpEndWindow, pointer.ID, over)
		}
		return err
	})
}

// isDropped tells whether a pointer in state is that of a dropped table or view, or of one that is being purged.
func isDropped(state registry.State) bool {
	return state == registry.StateDropped || state == registry.StatePurging
}

// forgetPage is how many change records are deleted in one Apply.
const forgetPage = 1000

// forgetChanges deletes change records older than the retention, oldest first, then the fences among
// them, which are in no order. One that cannot be read stays, because nobody knows how old it is.
func (c *Catalog) forgetChanges(ctx context.Context) error {
	limit := c.now().Add(-c.changeRetention)
	var unread error
	for after, more := registry.Position(0), true; more; {
		changes, err := c.store.Changes(ctx, after, forgetPage)
		if err != nil {
			return storeError("catalog.forgetChanges", err)
		}
		var old []registry.Write
		more = len(changes) == forgetPage
		for _, change := range changes {
			switch {
			case change.Unreadable != nil:
				unread = cmp.Or(unread, change.Unreadable)
			case change.Change.Time.Before(limit):
				old = append(old, registry.Delete(registry.ChangeKey(change.Change.ID)))
			default:
				more = false
			}
			after = change.Position
		}
		if err := c.forget(ctx, old); err != nil {
			return err
		}
	}
	if unread != nil {
		unread = moorage.E("catalog.forgetChanges", "", moorage.KindInternal, unread)
	}
	return errors.Join(unread, c.forgetFences(ctx, limit))
}

// forgetFences deletes the fences that are older than limit.
func (c *Catalog) forgetFences(ctx context.Context, limit time.Time) error {
	var old []registry.Write
	err := c.sweeps.fences.next(ctx, c, func(record registry.Record) error {
		if record.State != registry.StateVoid || len(old) == forgetPage {
			return nil // a fence too many is met again
		}
		change, err := decode[registry.Change](record)
		if err == nil && change.Time.Before(limit) {
			old = append(old, registry.Delete(record.Key))
		}
		return err
	})
	return errors.Join(err, c.forget(ctx, old))
}

func (c *Catalog) forget(ctx context.Context, deletes []registry.Write) error {
	if len(deletes) == 0 {
		return nil
	}
	_, err := c.store.Apply(ctx, registry.Batch{Writes: deletes})
	return storeError("catalog.forget", err)
}

// expiredKeysMin is how many expired ones among the keys of a page make it worth to go on with the next at once. Were there a
// bound on the pages of a round in any case, keys could come faster than they go; with this one, at most that many of each
// scanPage records are expired in the long run.
const expiredKeysMin = scanPage / 10

// forgetKeys deletes the outcomes of mutations whose keys have expired.
func (c *Catalog) forgetKeys(ctx context.Context) error {
	scan := &c.sweeps.keys
	var unread error
	for idle := 0; idle < sweepPages; {
		page, err := scan.page(ctx, c)
		if err != nil {
			return err
		}
		expired, err := c.forgetExpired(ctx, page)
		switch {
		case isUnread(err):
			unread = cmp.Or(unread, err)
		case err != nil:
			return err
		}
		if expired < expiredKeysMin {
			idle++
		}
		if scan.advance(page) {
			break
		}
	}
	return unread
}

// forgetExpired deletes those of page, which are outcomes of mutations, that have expired, and returns how many those are. If
// another node deletes some of them at the same time the rest stays for the next round. One that cannot be read stays, and is
// the error if there is no other.
func (c *Catalog) forgetExpired(ctx context.Context, page []registry.Record) (expired int, err error) {
	var batch registry.Batch
	var unread error
	now := c.now()
	for _, record := range page {
		value, err := decode[registry.Idempotency](record)
		if err != nil {
			unread = cmp.Or(unread, err)
			continue
		}
		if value.Expires.Before(now) {
			batch.Conditions = append(batch.Conditions, unchangedSince(record))
			batch.Writes = append(batch.Writes, registry.Delete(record.Key))
		}
	}
	if len(batch.Writes) == 0 {
		return 0, unread
	}
	_, err = c.store.Apply(ctx, batch)
	if _, failed := registry.FailedCondition(err); failed {
		return 0, unread
	}
	return len(batch.Writes), cmp.Or(storeError("catalog.forgetKeys", err), unread)
}
