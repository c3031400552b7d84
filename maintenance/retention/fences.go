package retention

import (
	"context"
	"errors"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// fences deletes fences that are older than the retention by their writers' clocks, and that this
// process has known for keptMin. The second condition protects fences of a node whose clock is a
// week behind, because those look old at once. If the writer's clock was ahead, the age of a fence
// is the time for which this process has known it.
type fences struct {
	ledger *ledger.Ledger
	now    func() time.Time
	kept   time.Duration
	scan   scan
	seen   map[registry.Key]seenFence // at most forgetPage
}

// seenFence is a fence that this process has seen and that looked old.
type seenFence struct {
	etag registry.ETag
	// written is the fence's time by the writer's clock. If that is later than the first sight, by
	// the store's clock, then written is the time of the first sight.
	written time.Time
	// since is the time of the first sight by the clock of this process. It has a monotonic reading
	// if possible, because that cannot be set.
	since time.Time
}

// run deletes the fences that are due at time now, by the store's clock. Then it finds and
// remembers further fences.
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

// see remembers the fences at keys that look older than limit, or whose time is more than keptMin
// later than now. If there is no room for a fence, a later round sees it again.
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

// forget deletes the remembered fences that are due. It skips a fence that is gone or was replaced.
// Once another node has deleted a fence, the change that the fence excluded may have happened.
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
	deleted, err := deleteAsRead(ctx, f.ledger, old) // deletes nothing if another node deletes one of them
	for _, record := range old[:deleted] {
		delete(f.seen, record.Key)
	}
	return err
}

// deleteAsRead deletes records if all are unchanged, and returns how many it deleted. If another
// node has changed or deleted one of them, it deletes nothing.
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
