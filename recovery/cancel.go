package recovery

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// Cancelled counts the cancelled work.
type Cancelled struct {
	Transactions int // forgotten
	Purges       int // of dropped tables; the tables stay dropped
	Jobs         int // jobs of maintenance, which were removed
}

// forgetName removes the id of the store, because a copy is a different store and draws its own id.
// Two stores with one id would each take the other's files for orphans.
func forgetName(ctx context.Context, l *ledger.Ledger) error {
	records, err := l.Get(ctx, registry.StoreIDKey())
	if err != nil || !records[0].Exists() {
		return err
	}
	return stepAlone(ctx, l, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(records[0])},
		Writes:     []registry.Write{registry.Delete(records[0].Key)},
	})
}

// CancelDeletions removes from a store everything that would make a server delete files:
// transactions, pending purges and jobs of maintenance, even if their records cannot be read. It
// deletes no file. It is meant for a copy of a store, and is the last resort for unreadable
// records. It pauses maintenance, and lets the store draw a new id.
//
// A server on a copy would act on the state at the time of the copy. So it could delete files that
// are current in the original, or in a newer copy:
//
//   - A transaction that is PENDING in the copy may have taken effect in the original. The files of
//     other transactions may have been registered, after an operator had the transactions
//     forgotten. So transactions in every state are forgotten. Their unpublished files remain.
//   - A table that was being purged may have been restored. So its drop becomes a drop without a
//     purge. If some of its files may already be deleted, the table cannot be restored. The
//     remaining files stay.
//
// A purge that had begun counts as cancelled at time now, when the undrop window of its table
// begins. No server may use the store before CancelDeletions has returned without an error. After
// an error, call it again.
//
// Errors: KindUnavailable if another process writes to the store too, and the errors of the store.
func CancelDeletions(ctx context.Context, l *ledger.Ledger, now time.Time) (cancelled Cancelled, err error) {
	const op = "recovery.CancelDeletions"
	remove := func(record registry.Record) ([]registry.Write, error) {
		return []registry.Write{registry.Delete(record.Key)}, nil
	}
	for _, do := range []func() error{
		func() error { return pauseMaintenance(ctx, l, now) },
		func() error { return forgetName(ctx, l) },
	} {
		if err := do(); err != nil {
			return cancelled, moorage.Annotate(op, "", err)
		}
	}
	for _, step := range []struct {
		table   registry.Table
		replace replacement
		count   *int
	}{
		{registry.TableTransaction, remove, &cancelled.Transactions},
		{registry.TableTask, remove, new(int)}, // purges, and the blockers of transactions
		{registry.TablePointer, func(record registry.Record) ([]registry.Write, error) {
			return withoutPurge(record, now)
		}, &cancelled.Purges},
		{registry.TableJob, remove, &cancelled.Jobs},
		{registry.TableLease, withoutHolds, new(int)},
	} {
		if *step.count, err = replaceAll(ctx, l, step.table, step.replace); err != nil {
			return cancelled, moorage.Annotate(op, step.table.String(), err)
		}
	}
	return cancelled, nil
}

// tokensSkipped is the number of lease tokens that a copy skips, because the original may have
// issued them after the copy was made.
const tokensSkipped = 1 << 32

// withoutHolds returns the write that removes the holds of the lease in record. Without holds, it
// returns no write. For an unreadable lease, it returns a write that deletes the record.
func withoutHolds(record registry.Record) ([]registry.Write, error) {
	lease, err := ledger.Decode[registry.Lease](record)
	if err != nil {
		return []registry.Write{registry.Delete(record.Key)}, nil
	}
	if len(lease.Holds) == 0 {
		return nil, nil
	}
	lease.Holds, lease.Last = nil, lease.Last+tokensSkipped
	return ledger.Encode(ledger.Put(record.Key, record.State, lease))
}

// pauseMaintenance pauses all maintenance, if there are policies or jobs.
func pauseMaintenance(ctx context.Context, l *ledger.Ledger, now time.Time) error {
	found, err := l.ListKeys(ctx, registry.TableMaintenancePolicy, "", "", 1)
	if err == nil && len(found) == 0 {
		found, err = l.ListKeys(ctx, registry.TableJob, "", "", 1)
	}
	if err != nil || len(found) == 0 {
		return err
	}
	records, err := l.Get(ctx, registry.PauseKey())
	if err != nil {
		return err
	}
	before, err := registry.Decode[registry.Pauses](records[0])
	if err == nil && len(before.Pauses) > 0 && before.Pauses[0].Scope == registry.ScopeServer {
		return nil
	}
	pause := registry.Pause{Scope: registry.ScopeServer, Reason: "restored", Since: now}
	pauses := registry.Pauses{Unknown: before.Unknown, Pauses: append([]registry.Pause{pause}, before.Pauses...)}
	writes, err := ledger.Encode(ledger.Put(registry.PauseKey(), registry.StateNone, pauses))
	if err != nil {
		return err
	}
	return stepAlone(ctx, l, registry.Batch{Writes: writes})
}

// withoutPurge returns the writes that cancel the pending purge of the pointer in record, and
// writes the record of its undrop window. If no purge is pending, it returns no writes. An
// unreadable pointer stays, because it causes no purge.
//
// If the purge had not begun, the table becomes one that was dropped without a purge. It can be
// restored until its window ends. If some of its files may be gone, it cannot be restored. It stays
// in the state purging for one undrop window from now on. While it has that record, it cannot be
// registered again and so gets no pointer to missing files.
func withoutPurge(record registry.Record, now time.Time) ([]registry.Write, error) {
	if !record.State.IsDropped() {
		return nil, nil
	}
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil || pointer.Task.IsZero() {
		return nil, nil
	}
	waited, waits := pointer.EndKey(), pointer.PurgeWaits()
	pointer.Task, pointer.PurgeDelay = registry.ID{}, 0
	if record.State == registry.StatePurging {
		pointer.Since = now
	}
	writes, err := ledger.Encode(
		ledger.Replace(record, record.State, pointer),
		ledger.Put(pointer.EndKey(), registry.StateNone, registry.Due{}))
	if waits {
		writes = append(writes, registry.Delete(waited))
	}
	return writes, err
}

// replacement returns the writes that replace a record, or none if the record stays.
type replacement func(registry.Record) ([]registry.Write, error)

// replaceAll replaces the records of a table, page by page, and returns the number of replaced
// records.
func replaceAll(ctx context.Context, l *ledger.Ledger, table registry.Table,
	replace replacement) (replaced int, err error) {
	for after := ""; ; {
		records, err := l.List(ctx, table, "", after, ledger.ScanPage)
		if err != nil {
			return replaced, err
		}
		var batch registry.Batch
		for _, record := range records {
			writes, err := replace(record)
			if err != nil {
				return replaced, err
			}
			if len(writes) > 0 {
				batch.Conditions = append(batch.Conditions, ledger.Unchanged(record))
				batch.Writes = append(batch.Writes, writes...)
			}
		}
		if err := stepAlone(ctx, l, batch); err != nil {
			return replaced, err
		}
		replaced += len(batch.Conditions)
		if registry.IsLastPage(records, ledger.ScanPage) {
			return replaced, nil
		}
		after = records[len(records)-1].Key.ID
	}
}

// stepAlone takes a step in a store that no other process uses.
func stepAlone(ctx context.Context, l *ledger.Ledger, batch registry.Batch) error {
	if len(batch.Writes) == 0 {
		return nil
	}
	_, err := l.Step(ctx, batch)
	if failed, ok := registry.FailedCondition(err); ok {
		return moorage.Errorf(moorage.KindUnavailable,
			"Another process uses the store and has just written %s: stop all servers and do it again", failed.Key)
	}
	return ledger.StepError("recovery.stepAlone", err)
}
