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
	if registry.IsLastPage(page, scanPage) {
		s.after = ""
		return true
	}
	s.after = page[len(page)-1].Key.ID
	return false
}

// sweeps is how far the sweep has come. It belongs to whoever runs one.
type sweeps struct {
	windows, fences, keys, folders slowScan

	// What forgetChanges has seen. It is in no store: a process that starts sees everything for the first time, and deletes none of it until
	// seenOldMin later.
	horizons  []horizon                  // up to which changes were seen, the nearest first, which is the one that was seen first
	seen      registry.Position          // up to here they were seen at least seenOldMin ago
	oldFences map[registry.Key]seenFence // at most forgetPage
}

func newSweeps() *sweeps {
	return &sweeps{
		windows:   slowScan{table: registry.TablePointer},
		fences:    slowScan{table: registry.TableChange},
		keys:      slowScan{table: registry.TableIdempotency},
		folders:   slowScan{table: registry.TableLocation},
		oldFences: make(map[registry.Key]seenFence),
	}
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

const (
	// forgetPage is how many change records are deleted in one Apply.
	forgetPage = 1000
	// seenOldMin is how long ago this process must have seen a change record or a fence that looked old before it deletes it. How old one looks
	// is by the clock of who wrote it: if that is a week behind, what it writes looks a week old at once. So those who go by it are left
	// this much time in any case, by a clock that nobody sets. They need minutes. Who makes a change is at it for requestTimeout, or, after a wait of
	// twinWaitMax, until transactionDeadline, and then looks for its record for settleTimeout; the Apply that a fence keeps away was sent before
	// that, and a coordinator meets the one by which an operator has ended its transaction at the latest then. Recovery goes by the records
	// of transactions, not by these, and is done or has given up after recoverLockPatience and five minutes more. All of these together are less
	// than a quarter of an hour. A process that stands still for more than seenOldMin amid a change, or an Apply that is on its way for so
	// long, finds what it needs only where the clocks are right: then it is there for the whole retention.
	seenOldMin = time.Hour
	// horizonPause is the shortest time between two horizons, which bounds how many there are: some 120. With one at a time, a round
	// would have those of a whole seenOldMin to delete, which at 1,000 commits a second are millions, and the others none.
	horizonPause = seenOldMin / 120
)

// horizon is a place in the order of changes up to which those that looked old were seen.
type horizon struct {
	position registry.Position
	since    time.Time // by the clock of this process, with the monotonic reading, if there is one: nobody can set that
}

// seenFence is a fence that looked old when it was seen.
type seenFence struct {
	etag    registry.ETag
	written time.Time // by the clock of its writer
	since   time.Time // as horizon.since
}

// forgetChanges deletes change records older than the retention, oldest first, then the fences among
// them, which are in no order: those that this process has seen for seenOldMin. One that cannot be read stays, because nobody
// knows how old it is.
func (c *Catalog) forgetChanges(ctx context.Context) error {
	limit := c.now().Add(-c.changeRetention)
	var unread error
	for _, step := range []func(context.Context, time.Time) error{c.forgetSeen, c.lookFurther, c.forgetFences} {
		err := step(ctx, limit)
		switch {
		case isUnread(err):
			unread = errors.Join(unread, err)
		case err != nil:
			return err
		}
	}
	return unread
}

// forgetSeen deletes the changes older than limit that the process has seen for seenOldMin.
func (c *Catalog) forgetSeen(ctx context.Context, limit time.Time) error {
	s := c.sweeps
	for now := c.now(); len(s.horizons) > 0 && now.Sub(s.horizons[0].since) >= seenOldMin; s.horizons = s.horizons[1:] {
		s.seen = s.horizons[0].position
	}
	if s.seen == 0 {
		return nil
	}
	return c.walkOld(ctx, 0, limit, func(old []registry.PositionedChange) (more bool, err error) {
		var deletes []registry.Write
		for _, change := range old {
			if change.Position <= s.seen { // clocks differ: what came later may look as old, and was not seen yet
				deletes = append(deletes, registry.Delete(registry.ChangeKey(change.Change.ID)))
			}
		}
		return len(deletes) == len(old), c.forget(ctx, deletes)
	})
}

// lookFurther sets the next horizon, behind the changes older than limit that were not seen before. After an error it is where that was met.
func (c *Catalog) lookFurther(ctx context.Context, limit time.Time) error {
	s := c.sweeps
	from := s.seen
	if n := len(s.horizons); n > 0 {
		if c.now().Sub(s.horizons[n-1].since) < horizonPause {
			return nil
		}
		from = s.horizons[n-1].position
	}
	last := from
	err := c.walkOld(ctx, from, limit, func(old []registry.PositionedChange) (more bool, err error) {
		last = old[len(old)-1].Position
		return true, nil
	})
	if last > from {
		s.horizons = append(s.horizons, horizon{last, c.now()}) // now, and not when the walk began: they were there when they were read
	}
	return err
}

// walkOld visits the changes behind after that are older than limit, by the clocks of their writers, in pages, until one has a younger
// change or visit wants no more. Those that cannot be read are passed over; the error is the first of theirs, if there is no other.
func (c *Catalog) walkOld(ctx context.Context, after registry.Position, limit time.Time, visit func(old []registry.PositionedChange) (more bool, err error)) error {
	const op = "catalog.forgetChanges"
	var unread error
	for more := true; more; {
		page, err := c.store.Changes(ctx, after, forgetPage)
		if err != nil {
			return storeError(op, err)
		}
		more = len(page) == forgetPage
		var old []registry.PositionedChange
		for _, change := range page {
			switch {
			case change.Unreadable != nil:
				unread = cmp.Or(unread, change.Unreadable)
			case change.Change.Time.Before(limit):
				old = append(old, change)
			default:
				more = false
			}
			after = change.Position
		}
		if len(old) == 0 {
			continue
		}
		further, err := visit(old)
		if err != nil {
			return err
		}
		more = more && further
	}
	if unread != nil {
		return moorage.E(op, "", moorage.KindInternal, unread)
	}
	return nil
}

// forgetFences deletes the fences older than limit that the process has seen for seenOldMin, and remembers those that it meets now.
func (c *Catalog) forgetFences(ctx context.Context, limit time.Time) error {
	if err := c.forgetSeenFences(ctx, limit); err != nil {
		return err
	}
	seen := c.sweeps.oldFences
	return c.sweeps.fences.next(ctx, c, func(record registry.Record) error {
		if record.State != registry.StateVoid || len(seen) == forgetPage {
			return nil // a fence too many is met again
		}
		change, err := decode[registry.Change](record)
		if err == nil && change.Time.Before(limit) && seen[record.Key].etag != record.ETag {
			seen[record.Key] = seenFence{record.ETag, change.Time, c.now()}
		}
		return err
	})
}

// forgetSeenFences deletes those of the fences that are remembered which are due, unless they are gone or in another's place: where another
// node has deleted one, the change that it kept away may have come true since.
func (c *Catalog) forgetSeenFences(ctx context.Context, limit time.Time) error {
	seen, now := c.sweeps.oldFences, c.now()
	var due []registry.Key
	for key, fence := range seen {
		switch {
		case !fence.written.Before(limit): // the clock of this node was ahead when it was seen
			delete(seen, key)
		case now.Sub(fence.since) >= seenOldMin:
			due = append(due, key)
		}
	}
	if len(due) == 0 {
		return nil
	}
	records, err := c.get(ctx, due...)
	if err != nil {
		return err
	}
	var batch registry.Batch
	for i, record := range records {
		if record.ETag != seen[due[i]].etag {
			delete(seen, due[i])
			continue
		}
		batch.Conditions = append(batch.Conditions, unchangedSince(record))
		batch.Writes = append(batch.Writes, registry.Delete(record.Key))
	}
	if len(batch.Writes) == 0 {
		return nil
	}
	_, err = c.store.Apply(ctx, batch)
	if _, failed := registry.FailedCondition(err); failed {
		return nil // another node deletes them too: the rest stays for the next round
	}
	for _, write := range batch.Writes {
		if err == nil {
			delete(seen, write.Key)
		}
	}
	return storeError("catalog.forgetFences", err)
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
