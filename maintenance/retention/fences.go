package retention

import (
	"context"
	"errors"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// fences deletes the fences that are older than the retention, by the clocks of their writers, and
// that this process has seen for keptMin. A node whose clock is a week behind writes fences that
// look old at once. A fence of a writer whose clock was ahead is as old as the time for which this
// process has seen it.
type fences struct {
	ledger *ledger.Ledger
	now    func() time.Time
	kept   time.Duration
	scan   scan
	seen   map[registry.Key]seenFence // at most forgetPage
}

// seenFence is a fence that looked old when it was seen.
type seenFence struct {
	etag registry.ETag
	// written is by the clock of its writer, but no later than it was seen, by the store's clock.
	written time.Time
	// since is by the clock of this process, with the monotonic reading if there is one. Nobody can
	// set that.
	since time.Time
}

// run deletes the fences that are due at now, by the store's clock. Then it remembers those that it
// meets.
func (f *fences) run(ctx context.Context, now time.Time) error {
	limit := now.Add(-f.kept)
	if err := f.forget(ctx, limit); err != nil {
		return err
	}
	var unread error
	for range scanPages {
		page, err := f.ledger.ListKeys(ctx, registry.TableChange, "", f.scan.after, ledger.ScanPage)
		if err != nil {
			return ledger.StoreError("retention.run", err)
		}
		var found []registry.Key
		for _, record := range page {
			if record.State == registry.StateVoid && f.seen[record.Key].etag != record.ETag {
				found = append(found, record.Key)
			}
		}
		err = f.see(ctx, found, now, limit)
		switch {
		case isUnread(err):
			unread = errors.Join(unread, err)
		case err != nil:
			return err
		}
		if f.scan.advance(page) {
			break
		}
	}
	return unread
}

// see remembers those of the fences at keys that look older than limit, or are dated keptMin after
// now. A later round meets those again for which there is no room.
func (f *fences) see(ctx context.Context, keys []registry.Key, now, limit time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	records, err := f.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	var unread error
	for _, record := range records {
		if record.State != registry.StateVoid || len(f.seen) == forgetPage {
			continue
		}
		change, err := ledger.Decode[registry.Change](record)
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case change.Time.After(now.Add(keptMin)):
			f.seen[record.Key] = seenFence{record.ETag, now, f.now()}
		case change.Time.Before(limit):
			f.seen[record.Key] = seenFence{record.ETag, change.Time, f.now()}
		}
	}
	return unread
}

// forget deletes those of the remembered fences that are due. It leaves out a fence that is gone,
// or whose place something else has: where another node has deleted a fence, the change that it
// kept away may have come true since.
func (f *fences) forget(ctx context.Context, limit time.Time) error {
	now := f.now()
	var due []registry.Key
	for key, fence := range f.seen {
		if fence.written.Before(limit) && now.Sub(fence.since) >= keptMin {
			due = append(due, key)
		}
	}
	if len(due) == 0 {
		return nil
	}
	records, err := f.ledger.Get(ctx, due...)
	if err != nil {
		return err
	}
	var old []registry.Record
	for i, record := range records {
		if record.ETag != f.seen[due[i]].etag {
			delete(f.seen, due[i])
			continue
		}
		old = append(old, record)
	}
	deleted, err := deleteAsRead(ctx, f.ledger, old) // none if another node deletes them too
	for _, record := range old[:deleted] {
		delete(f.seen, record.Key)
	}
	return err
}

// deleteAsRead deletes records if all are as they were read, and returns how many it deleted: none
// if another node was faster with one.
func deleteAsRead(ctx context.Context, l *ledger.Ledger, records []registry.Record) (deleted int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	var batch registry.Batch
	for _, record := range records {
		batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
		batch.Writes = append(batch.Writes, registry.Delete(record.Key))
	}
	_, err = l.Step(ctx, batch)
	switch _, failed := registry.FailedCondition(err); {
	case failed:
		return 0, nil
	case err != nil:
		return 0, ledger.StoreError("retention.deleteAsRead", err)
	}
	return len(records), nil
}
