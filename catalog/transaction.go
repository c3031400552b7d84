package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/locks"
	"moorage/metadata"
	"moorage/registry"
	"moorage/txlog"
)

// TransactionChangesMax is how many changes one transaction may ask for. Each takes up to a dozen of the
// registry.BatchItemsMax items of the one Apply that makes all of them true.
const TransactionChangesMax = 256

// TransactionLockWaitMax bounds Config.TransactionLockWait.
const TransactionLockWaitMax = 5 * time.Second

const (
	// transactionDeadline is after how long anybody may abort a transaction that has not been applied, counted from
	// the beginning of its record.
	transactionDeadline = 60 * time.Second
	// transactionTimeout bounds what a coordinator does; it leaves transactionDeadline a margin.
	transactionTimeout = 45 * time.Second
	// transactionTriesMax is how often a transaction is built, each time but the first because versions moved under it.
	transactionTriesMax = 8
	// transactionTurnsMax bounds how long a transaction that is built anew waits for turns at its tables.
	transactionTurnsMax = 500 * time.Millisecond
	// transactionBytesMax bounds the metadata that one transaction works on, which is in memory until its end, before and after: as
	// much as two tables have at most.
	transactionBytesMax = 2 * documents.BytesMax
	// twinWaitMax bounds how long a transaction with a key waits for another attempt of itself, on another node: until the locks of
	// a node that died are passed over, after locks.SilenceMax, or twice that if its version is older. One that takes longer may
	// hang: it is refused then, both are.
	twinWaitMax = 8 * time.Second
	// abortDeadPause is how long after one look at the log nobody looks again who finds a table locked: on a busy table
	// that is the common case, and the dead can wait.
	abortDeadPause = time.Second
	// filesAtOnce is how many metadata files one transaction reads, or writes, at a time.
	filesAtOnce = 16
)

// CommitTransaction changes several tables of a warehouse, or makes some (assert-create): all or nothing, and whoever
// sees one of the changes sees all of them.
//
//	resolve → lock → check → build → record → write → apply
//
// Changes of one table are applied in their order, as one version. A table whose changes only require something, or
// change nothing, is a condition: it is as required at the moment at which the others change. The record of
// the transaction, which names the files, is durable before the first of them is written; one Apply
// moves all pointers and commits the record. A coordinator that dies before that leaves everything as it was, and
// files that recovery deletes by the record.
//
// The locks of all pointers are taken at once or not at all, and only save work: what is read is a condition of
// the Apply. If only versions moved meanwhile, all is checked and built anew, a bounded number of times.
// A request that names one table only is a Commit, without locks and record. One that adds snapshots which all its tables
// show to have been added before is a replay and succeeds.
//
// Errors: those of Commit, of whichever table is first to fail; KindBadRequest for no changes, more than
// TransactionChangesMax, or an identifier of another warehouse; KindTooLarge for tables whose metadata has more than 512 MiB
// together; KindCommitFailed, at once or after Config.TransactionLockWait, if another operation has locked one of
// the tables. Durable when it returns.
// Source: REST specification, commitTransaction.
func (c *Catalog) CommitTransaction(ctx context.Context, warehouse string, changes []TableChange) error {
	return moorage.Annotate("catalog.CommitTransaction", warehouse, c.commitTransaction(ctx, warehouse, changes))
}

func (c *Catalog) commitTransaction(ctx context.Context, warehouse string, changes []TableChange) error {
	if work := c.key; work != nil {
		work.silent = true // that of a single table too
	}
	parts, err := groupChanges(warehouse, changes)
	if err != nil {
		return err
	}
	if len(parts) == 1 {
		_, err := c.commitTable(ctx, parts[0].ident, parts[0].edit.steps)
		return err
	}
	for _, p := range parts {
		if p.create, err = metadata.IsCreate(p.edit.steps[0].Requirements); err != nil {
			return ofTable(p.ident, err)
		}
		p.pinned = p.edit.pins()
	}
	return c.runTransaction(ctx, &transaction{warehouse: warehouse, keyed: c.key != nil, parts: parts})
}

// groupChanges returns a participant for each table that changes name, in the order in which they come first.
func groupChanges(warehouse string, changes []TableChange) ([]*participant, error) {
	switch {
	case len(changes) == 0:
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: there are no table changes")
	case len(changes) > TransactionChangesMax:
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: %d table changes, at most %d are allowed", len(changes), TransactionChangesMax)
	}
	parts := make([]*participant, 0, len(changes))
	all, steps := make([]participant, len(changes)), make([]metadata.Step, len(changes)) // at once, not one by one
	at := make(map[string]*participant, len(changes))
	for i, change := range changes {
		if err := change.Ident.Validate(); err != nil {
			return nil, err
		}
		if change.Ident.Warehouse != warehouse {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Table %s is not in the warehouse %s", change.Ident, warehouse)
		}
		key := directory.NameKey(change.Ident)
		p, again := at[key]
		if !again {
			p = &all[i]
			p.ident, p.edit.steps = change.Ident, steps[i:i:i+1]
			at[key] = p
			parts = append(parts, p)
		}
		p.edit.steps = append(p.edit.steps, change.step())
	}
	return parts, nil
}

// runTransaction brings t to its end.
func (c *Catalog) runTransaction(ctx context.Context, t *transaction) error {
	t.held = c.documents.Room().Enter(t.warehouse)
	defer t.held.GiveBack()
	// What names no table, or fails against the present versions, is refused before anything is locked.
	err := c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error { return c.readParticipants(ctx, t) })
	if err != nil {
		return err
	}
	if t.replayed() {
		return nil
	}
	for _, p := range t.parts {
		if p.create {
			continue
		}
		if err := metadata.Check(p.base, p.edit.steps[0].Requirements); err != nil {
			return ofTable(p.ident, err)
		}
	}
	hold, err := c.lockTransaction(ctx, t)
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(ctx, transactionTimeout) // not the hold's: to lose a lock is harmless
	defer cancel()
	return c.ledger.Retry(ctx, moorage.KindCommitFailed, func(attempt int) error {
		return c.tryTransaction(ctx, t, attempt > 0)
	})
}

// lockTransaction takes the locks of all tables of t that there are: at once or, if the catalog's transactions wait for
// locks, within that time. Transactions whose coordinator has died with one of the locks are aborted first. To be refused is an
// outcome that holds for all attempts with the same key. So two things are waited for that are no other operations: another
// attempt of t, on another node, and the recovery of a transaction that has died, which may have been one.
func (c *Catalog) lockTransaction(ctx context.Context, t *transaction) (locks.Hold, error) {
	scope := lockScope{warehouse: t.warehouse, pointers: make([]registry.ID, 0, len(t.parts))}
	for _, p := range t.parts {
		if !p.create {
			scope.pointers = append(scope.pointers, p.found.Pointer.ID)
		}
	}
	request := lockRequest(OpTransaction, scope)
	var mine locks.Path // on which its other attempts would be
	twin := ctx         // of the wait for them
	work := c.key
	if work != nil {
		mine = locks.Warehouse(t.warehouse).Attempt(work.Record.ID)
		request.Writes = append(request.Writes, mine)
		var cancel context.CancelFunc
		twin, cancel = context.WithTimeout(ctx, twinWaitMax)
		defer cancel()
	}
	until := c.now().Add(c.transactionWait)
	sought, recovering := false, false // whether dead transactions were looked for, and recovery may have locks of the tables
	for attempt := 0; ; attempt++ {
		hold, err := c.locks.Acquire(ctx, request, locks.Options{NonBlocking: true})
		held, conflict := errors.AsType[*locks.ConflictError](err)
		switch {
		case err == nil:
			return hold, nil
		case !conflict:
			return nil, moorage.E("catalog.lockTransaction", string(OpTransaction), moorage.KindUnavailable, err)
		}
		own := held.Blocked.Path == mine
		if !own && !sought {
			sought, recovering = true, c.abortDead(ctx, scope.pointers)
			if recovering {
				continue
			}
		}
		switch {
		case (own || recovering && work != nil) && c.ledger.Pause(twin, attempt+4) == nil:
		case !own && c.now().Before(until) && c.ledger.Pause(ctx, attempt+4) == nil:
		case work != nil && ctx.Err() != nil: // nobody waits for a refusal, which would end the other attempt
			return nil, moorage.E("catalog.lockTransaction", string(OpTransaction), moorage.KindUnavailable, ctx.Err())
		case own:
			return nil, moorage.Errorf(moorage.KindCommitFailed, "Another attempt of this request took too long; nothing was changed, try again with another Idempotency-Key")
		default:
			return nil, moorage.Errorf(moorage.KindCommitFailed, "Another operation holds %s; nothing was changed, try again", t.heldTable(held.Blocked.Path))
		}
	}
}

// heldTable names, for people, the table whose lock could not be had. Where more than a table is held, none is named.
func (t *transaction) heldTable(blocked locks.Path) string {
	for _, p := range t.parts {
		if !p.create && blocked == locks.Warehouse(t.warehouse).Pointer(p.found.Pointer.ID.String()) {
			return "the table " + p.ident.String()
		}
	}
	return "one of the tables of this transaction"
}

// abortDead fences the coordinators of transactions that are past their deadline and work on one of pointers, and tells
// whether there was one, or one that was just aborted: recovery holds the locks of its tables as long as that takes it. What is left
// of them, which no lock depends on, is for recovery.
func (c *Catalog) abortDead(ctx context.Context, pointers []registry.ID) bool {
	now, last := c.now(), c.deadSought.Load()
	if last != nil && now.Sub(*last) < abortDeadPause {
		return false
	}
	c.deadSought.Store(&now)
	entries, err := c.transactions.Unfinished(ctx, registry.ID{}, registry.ListLimitMax)
	if err != nil {
		c.log.WarnContext(ctx, "could not look for unfinished transactions", "error", err)
		return false
	}
	found := false
	for _, entry := range entries {
		touches := slices.ContainsFunc(entry.Participants, func(p txlog.Participant) bool { return slices.Contains(pointers, p.Pointer) })
		switch {
		case !touches || !c.isDue(entry) || entry.State == registry.StateCommitted:
			continue
		case entry.State == registry.StateAborted && now.Sub(entry.Deadline) >= txlog.LockPatience: // only its files are left to do
			continue
		}
		if _, err := c.transactions.Abort(ctx, entry); err != nil {
			c.log.WarnContext(ctx, "could not abort a transaction whose tables are needed", "commit", entry.ID, "error", err)
			continue
		}
		found = true
	}
	if found {
		c.kickRecovery()
	}
	return found
}

// isDue reports whether others than its coordinator may end a transaction.
func (c *Catalog) isDue(entry txlog.Entry) bool {
	var abandonedBefore time.Time
	if c.abortPending {
		abandonedBefore = c.made
	}
	return entry.IsDue(c.now(), abandonedBefore)
}
