package commit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/internal/trace"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// TransactionWaitMax bounds Config.TransactionWait.
const TransactionWaitMax = 5 * time.Second

const (
	// TransactionDeadline is the age at which any process may abort a transaction that has not been
	// applied.
	TransactionDeadline = 60 * time.Second
	// transactionTimeout bounds the work of a coordinator. It leaves a margin before
	// TransactionDeadline.
	transactionTimeout = 45 * time.Second
	// TransactionTriesMax is the maximum number of times that a transaction is built. It is built
	// again only if versions of its tables changed before its Apply.
	TransactionTriesMax = 8
	// transactionTurnsMax bounds how long a transaction that is built again waits for turns at its
	// tables. The rest of turnMax is left for writing its files and its Apply.
	transactionTurnsMax = 3 * time.Second
	// transactionBytesMax bounds the metadata of one transaction: the maximum of two tables. The
	// metadata before and after the changes is in memory until the transaction ends.
	transactionBytesMax = 2 * documents.BytesMax
	// DuplicateWaitMax bounds how long a transaction with a key waits for another attempt of itself
	// on another node. If that node died, other nodes ignore its locks after locks.SilenceMax, or
	// after twice that time if the node ran an older version. If the other attempt takes longer
	// still, it may hang, and both attempts are refused.
	DuplicateWaitMax = 8 * time.Second
	// abortDeadPause is the minimum time between two scans of the log for dead transactions that
	// hold locks. On a busy table a held lock rarely means a dead transaction, and a dead
	// transaction can wait.
	abortDeadPause = time.Second
	// FilesAtOnce is the number of metadata files that one transaction reads, or writes,
	// concurrently.
	FilesAtOnce = 16
)

// runTransaction changes or creates several tables of a warehouse, all or nothing. A reader that
// sees one of the changes sees all of them.
//
//	resolve → lock → check → build → record → write → apply
//
// A table whose edit only has requirements, or changes nothing, is a condition of the Apply: its
// requirements hold at the moment when the other tables change. The record of the transaction,
// which names the files, is durable before the coordinator writes the first file. One Apply moves
// all pointers and commits the record. A coordinator that dies before the Apply leaves the tables
// unchanged. Recovery deletes the files that the record names.
//
// The coordinator takes the locks of all pointers at once or not at all. The locks only save work:
// the Apply requires that the records that were read are unchanged. If only versions have changed,
// the coordinator checks and builds everything again, a bounded number of times.
func (p *Pipeline) runTransaction(ctx context.Context, w *work) error {
	t := p.newTransaction(w)
	t.held = p.documents.Room().Enter(t.warehouse)
	defer t.held.GiveBack()
	// A change of a missing table, or one that fails against the present versions, is refused
	// before any lock is taken.
	err := p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error { return t.readParticipants(ctx) })
	if err != nil {
		return err
	}
	if t.replayed() {
		return nil
	}
	for _, part := range t.parts {
		if part.Create != nil {
			continue
		}
		if err := part.Edit.Check(part.base); err != nil {
			return OfTable(part.Ident, err)
		}
	}
	release, waited := t.waitForOthers(ctx)
	defer release()
	locking, span := trace.Start(ctx, "lock.acquire")
	hold, err := t.lock(locking)
	span.End(err)
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(ctx, transactionTimeout) // not the hold's context: losing a lock is harmless
	defer cancel()
	return p.ledger.Retry(ctx, moorage.KindCommitFailed, func(attempt int) error {
		return t.try(ctx, waited || attempt > 0) // after a wait the first read is old
	})
}

// waitForOthers waits until earlier transactions of this node that share tables with t have ended.
// It waits at most transactionWait. So transactions get the locks in order of arrival. Correctness
// does not depend on the wait. release lets the transactions behind t continue. waited is true if
// there were earlier transactions.
func (t *transaction) waitForOthers(ctx context.Context) (release func(), waited bool) {
	t.until = t.now().Add(t.transactionWait)
	if t.transactionWait <= 0 {
		return func() {}, false
	}
	ctx, cancel := context.WithTimeout(ctx, t.transactionWait)
	defer cancel()
	return t.transactionQueue.takeAll(ctx, t.pointers())
}

// pointers returns the pointers of the tables of t that exist.
func (t *transaction) pointers() []registry.ID {
	ids := make([]registry.ID, 0, len(t.parts))
	for _, part := range t.parts {
		if part.Create == nil {
			ids = append(ids, part.found.Pointer.ID)
		}
	}
	return ids
}

// lock takes the locks of all existing tables of t at once. If transactionWait is not zero, it
// retries for that long. First it aborts transactions whose coordinator died while it held one of
// the locks.
//
// A refusal is an outcome that holds for all attempts with the same key. So a transaction with a
// key also waits for two holders that are not separate operations. One is another attempt of t, on
// another node. The other is the recovery of a dead transaction, which may have been an attempt of
// t.
func (t *transaction) lock(ctx context.Context) (locks.Hold, error) {
	scope := Scope{Warehouse: t.warehouse, Pointers: t.pointers()}
	asked := request(t.row.Locks, scope)
	var mine locks.Path // other attempts of t lock it too
	waiting := ctx      // ends the wait for other attempts and recovery
	key := t.key
	if key != nil {
		mine = locks.Warehouse(t.warehouse).Attempt(key.Record.ID)
		asked.Writes = append(asked.Writes, mine)
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, DuplicateWaitMax)
		defer cancel()
	}
	sought := false     // whether lock has already looked for dead transactions
	recovering := false // recovery may hold locks of the tables
	for attempt := 0; ; attempt++ {
		hold, err := t.locks.Acquire(ctx, asked, locks.Options{NonBlocking: true})
		held, conflict := errors.AsType[*locks.ConflictError](err)
		switch {
		case err == nil:
			return hold, nil
		case !conflict:
			return nil, moorage.E("commit.lock", string(t.Verb), moorage.KindUnavailable, err)
		}
		own := held.Blocked.Path == mine
		if !own && !sought {
			sought, recovering = true, t.abortDead(ctx, scope.Pointers)
			if recovering {
				continue
			}
		}
		switch {
		case (own || recovering && key != nil) && t.ledger.Pause(waiting, attempt+4) == nil:
		case !own && t.now().Before(t.until) && t.ledger.Pause(ctx, attempt+4) == nil:
		case key != nil && ctx.Err() != nil: // the client left; a stored refusal would end the other attempt
			return nil, moorage.E("commit.lock", string(t.Verb), moorage.KindUnavailable, ctx.Err())
		case own:
			return nil, moorage.Errorf(moorage.KindCommitFailed,
				"Another attempt of this request took too long; nothing was changed, "+
					"try again with another Idempotency-Key")
		default:
			return nil, moorage.Errorf(moorage.KindCommitFailed,
				"Another operation holds %s; nothing was changed, try again", t.heldTable(held.Blocked.Path))
		}
	}
}

// heldTable returns a description of the table whose lock another operation holds, for the error
// text. It names no table if the lock covers more than one.
func (t *transaction) heldTable(blocked locks.Path) string {
	for _, part := range t.parts {
		if part.Create == nil && blocked == locks.Warehouse(t.warehouse).Pointer(part.found.Pointer.ID.String()) {
			return "the table " + part.Ident.String()
		}
	}
	return "one of the tables of this transaction"
}

// abortDead fences the coordinators of transactions that are past their deadline and work on one of
// pointers. It reports whether it found such a transaction, or a transaction that was just aborted:
// recovery holds the locks of its tables until recovery has finished. It leaves transactions that
// block none of these locks to recovery.
func (p *Pipeline) abortDead(ctx context.Context, pointers []registry.ID) bool {
	now, last := p.now(), p.lastDeadScan.Load()
	if last != nil && now.Sub(*last) < abortDeadPause {
		return false
	}
	p.lastDeadScan.Store(&now)
	entries, err := p.transactions.Unfinished(ctx, registry.ID{}, registry.ListLimitMax)
	if err != nil {
		p.log.WarnContext(ctx, "could not search for unfinished transactions", "error", err)
		return false
	}
	found := false
	for _, entry := range entries {
		touches := slices.ContainsFunc(entry.Participants, func(p txlog.Participant) bool {
			return slices.Contains(pointers, p.Pointer)
		})
		switch {
		case !touches || !p.isDue(entry) || entry.State == registry.StateCommitted:
			continue
		case entry.State == registry.StateAborted && now.Sub(entry.Deadline) >= txlog.LockPatience:
			continue // only the deletion of its files is left
		}
		if _, err := p.transactions.Abort(ctx, entry); err != nil {
			p.log.WarnContext(ctx, "could not abort a transaction whose tables are needed",
				"commit", entry.ID, "error", err)
			continue
		}
		found = true
	}
	if found {
		p.kickRecovery()
	}
	return found
}

// isDue reports whether a process other than its coordinator may end a transaction.
func (p *Pipeline) isDue(entry txlog.Entry) bool {
	var abandonedBefore time.Time
	if p.abortPending {
		abandonedBefore = p.startedAt
	}
	return entry.IsDue(p.now(), abandonedBefore)
}

// PlaceOf returns the place in the record of a transaction.
func PlaceOf(recorded txlog.Place) storage.Place {
	return storage.Place{
		Roots: recorded.Roots, Options: recorded.Options,
		Secret: directory.SecretOf(recorded.Secret, recorded.Warehouse, 0),
	}
}

// recorded returns place in the form that a transaction's record stores.
func recorded(place storage.Place) (txlog.Place, error) {
	made := txlog.Place{Roots: place.Roots, Options: place.Options}
	if place.Secret.ID == "" {
		return made, nil
	}
	err := cmp.Or(made.Secret.UnmarshalText([]byte(place.Secret.ID)),
		made.Warehouse.UnmarshalText([]byte(place.Secret.Warehouse)))
	return made, err
}
