package retention

import (
	"cmp"
	"context"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// folders removes the records of folders that no longer contain a table or view. After that, a
// table or view can be created at the folder itself. A folder is removed after its subfolders, in
// later rounds.
//
// To check that a folder is empty, the job must read a range, and no condition can cover a range.
// So the job uses three steps:
//
//	below → dropping → a search below → gone, or below again
//
// A claim of a location in the folder requires that the folder's record is unchanged since the
// claim read it. If the state is dropping, the claim changes it to below. So the search sees every
// claim made before the state became dropping. A later claim changes the state back, and a folder
// is removed only in the state dropping. If the node dies in between, the folder stays in that
// state until a claim changes it, or until the next search.
//
// A tombstone keeps its location and the folders above it (package claims). The job also removes
// the tombstones that end by themselves, after the credentials for their locations have ended.
type folders struct {
	ledger     *ledger.Ledger
	scan       scan
	tombstones scan
}

func newFolders(records *ledger.Ledger) *folders {
	return &folders{
		ledger: records, scan: newScan(records, registry.TableLocation),
		tombstones: newScan(records, registry.TableTombstone),
	}
}

func (f *folders) run(ctx context.Context) error {
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	unread := f.tombstones.next(ctx, func(record registry.Record) error {
		return ledger.IgnoreRetry(f.removeEnded(ctx, record, now))
	})
	if unread != nil && !isUnread(unread) {
		return unread
	}
	return cmp.Or(f.scan.next(ctx, func(record registry.Record) error {
		if record.State == registry.StateBelow || record.State == registry.StateDropping {
			return ledger.IgnoreRetry(f.remove(ctx, record))
		}
		return nil
	}), unread)
}

// removeEnded removes a tombstone if no file is left at its location, and no credentials reach the
// location any more.
func (f *folders) removeEnded(ctx context.Context, record registry.Record, now time.Time) error {
	tombstone, err := ledger.Decode[registry.Tombstone](record)
	if err != nil || tombstone.Lasting || now.Before(tombstone.ReachableUntil) {
		return err
	}
	_, err = f.apply(ctx, record, registry.Delete(record.Key))
	return err
}

// remove removes the record of an empty folder. It returns ledger.ErrRetry if another process has
// written the record in the meantime.
func (f *folders) remove(ctx context.Context, record registry.Record) error {
	marked := record.State == registry.StateDropping
	empty, err := f.isEmpty(ctx, record)
	if err != nil || !empty && !marked {
		return err
	}
	if !marked {
		if record, err = f.write(ctx, record, registry.StateDropping); err != nil {
			return err
		}
		if empty, err = f.isEmpty(ctx, record); err != nil {
			return err
		}
	}
	if !empty {
		_, err := f.write(ctx, record, registry.StateBelow)
		return err
	}
	_, err = f.apply(ctx, record, registry.Delete(record.Key))
	return err
}

// isEmpty reports whether a folder contains no claim, and neither the folder nor a place below it
// has a tombstone. It reads the claims first. If a claim ends after that, it leaves a tombstone,
// which isEmpty then sees.
func (f *folders) isEmpty(ctx context.Context, folder registry.Record) (bool, error) {
	const op = "retention.isEmpty"
	beneath, err := f.ledger.ListKeys(ctx, registry.TableLocation, folder.Key.ID+"/", "", 1)
	if err != nil || len(beneath) > 0 {
		return false, ledger.StoreError(op, err)
	}
	if beneath, err = f.ledger.ListKeys(ctx, registry.TableTombstone, folder.Key.ID+"/", "", 1); err != nil ||
		len(beneath) > 0 {
		return false, ledger.StoreError(op, err)
	}
	own, err := f.ledger.Get(ctx, registry.TombstoneKey(folder.Key.ID))
	return err == nil && !own[0].Exists(), ledger.StoreError(op, err)
}

// write changes the state of a folder's record, and returns the new record.
func (f *folders) write(ctx context.Context, folder registry.Record, state registry.State) (registry.Record, error) {
	value := registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](folder)}
	writes, err := ledger.Encode(ledger.Put(folder.Key, state, value))
	if err != nil {
		return folder, err
	}
	etag, err := f.apply(ctx, folder, writes[0])
	folder.State, folder.ETag = state, etag
	return folder, err
}

// apply writes the record of a folder if the record is unchanged. Otherwise it returns
// ledger.ErrRetry. If a write gets no answer, its outcome does not matter: a later round checks
// again.
func (f *folders) apply(ctx context.Context, folder registry.Record, write registry.Write) (registry.ETag, error) {
	etags, err := f.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(folder)}, Writes: []registry.Write{write},
	})
	if _, failed := registry.FailedCondition(err); failed {
		return registry.ETag{}, ledger.ErrRetry
	}
	if err != nil {
		return registry.ETag{}, ledger.StoreError("retention.apply", err)
	}
	return etags[0], nil
}
