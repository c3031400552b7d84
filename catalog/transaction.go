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

// TransactionChangesMax is how many changes one transaction may ask for. Each takes up to a dozen
// of the registry.BatchItemsMax items of the one Apply that makes all of them true.
const TransactionChangesMax = 256

// TransactionLockWaitMax bounds Config.TransactionLockWait.
const TransactionLockWaitMax = 5 * time.Second

const (
	// transactionDeadline is how old the record of a transaction is when anybody may abort the
	// transaction, if it has not been applied.
	transactionDeadline = 60 * time.Second
	// transactionTimeout bounds what a coordinator does. It leaves transactionDeadline a margin.
	transactionTimeout = 45 * time.Second
	// transactionTriesMax is how often a transaction is built. It is built again only because
	// versions moved under it.
	transactionTriesMax = 8
	// transactionTurnsMax bounds how long a transaction that is built again waits for turns at its
	// tables.
	transactionTurnsMax = 500 * time.Millisecond
	// transactionBytesMax bounds the metadata that one transaction works on: as much as two tables
	// have at most. The metadata before and after the changes is in memory until the transaction
	// ends.
	transactionBytesMax = 2 * documents.BytesMax
	// twinWaitMax bounds how long a transaction with a key waits for another attempt of itself on
	// another node. If that node died, its locks are passed over after locks.SilenceMax, or twice
	// that if its version is older. An attempt that takes longer may hang. Then both attempts are
	// refused.
	twinWaitMax = 8 * time.Second
	// abortDeadPause is the least time between two looks at the log for dead transactions that hold
	// locks. On a busy table a held lock is the common case, and dead transactions can wait.
	abortDeadPause = time.Second
	// filesAtOnce is how many metadata files one transaction reads, or writes, at a time.
	filesAtOnce = 16
)

// CommitTransaction changes several tables of a warehouse, or makes some (assert-create), all or
// nothing. A reader that sees one of the changes sees all of them.
//
//	resolve → lock → check → build → record → write → apply
//
// Changes of one table are applied in their order, as one version. A table whose changes only
// require something, or change nothing, is a condition: it is as required at the moment at which
// the others change. The record of the transaction, which names the files, is durable before the
// coordinator writes the first of them. One Apply moves all pointers and commits the record. A
// coordinator that dies before that leaves everything as it was, and files that recovery deletes by
// the record.
//
// The coordinator takes the locks of all pointers at once or not at all. The locks only save work:
// what is read is a condition of the Apply. If only versions moved meanwhile, the coordinator
// checks and builds everything again, a bounded number of times. A request that names only one
// table is a Commit, without locks and record. A request that adds snapshots is a replay, and
// succeeds, if all its tables show that they were added before.
//
// Errors: those of Commit, of the table that fails first. KindBadRequest for no changes, more than
// TransactionChangesMax, or an identifier of another warehouse. KindTooLarge for tables whose
// metadata has more than 512 MiB together. KindCommitFailed, at once or after
// Config.TransactionLockWait, if another operation has locked one of the tables. Durable when it
// returns.
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

// groupChanges returns a participant for each table that changes name, in the order in which they
// come first.
func groupChanges(warehouse string, changes []TableChange) ([]*participant, error) {
	switch {
	case len(changes) == 0:
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: there are no table changes")
	case len(changes) > TransactionChangesMax:
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Invalid transaction: %d table changes, at most %d are allowed", len(changes), TransactionChangesMax)
	}
	parts := make([]*participant, 0, len(changes))
	all, steps := make([]participant, len(changes)), make([]metadata.Step, len(changes)) // at once, not one by one
	at := make(map[string]*participant, len(changes))
	for i, change := range changes {
		if err := change.Ident.Validate(); err != nil {
			return nil, err
		}
		if change.Ident.Warehouse != warehouse {
			return nil, moorage.Errorf(moorage.KindBadRequest,
				"Table %s is not in the warehouse %s", change.Ident, warehouse)
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
	// A change that names no table, or fails against the present versions, is refused before any
	// lock.
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

// lockTransaction takes the locks of all existing tables of t: at once or, if the catalog's
// transactions wait for locks, within that time. First it aborts transactions whose coordinator has
// died with one of the locks.
//
// A refusal is an outcome that holds for all attempts with the same key. So a transaction with a
// key also waits for two things that are no other operations. One is another attempt of t, on
// another node. The other is the recovery of a transaction that has died, which may have been an
// attempt of t.
func (c *Catalog) lockTransaction(ctx context.Context, t *transaction) (locks.Hold, error) {
	scope := lockScope{warehouse: t.warehouse, pointers: make([]registry.ID, 0, len(t.parts))}
	for _, p := range t.parts {
		if !p.create {
			scope.pointers = append(scope.pointers, p.found.Pointer.ID)
		}
	}
	request := lockRequest(OpTransaction, scope)
	var mine locks.Path // which its other attempts lock too
	twin := ctx         // ends the wait for them
	work := c.key
	if work != nil {
		mine = locks.Warehouse(t.warehouse).Attempt(work.Record.ID)
		request.Writes = append(request.Writes, mine)
		var cancel context.CancelFunc
		twin, cancel = context.WithTimeout(ctx, twinWaitMax)
		defer cancel()
	}
	until := c.now().Add(c.transactionWait)
	sought := false     // dead transactions were looked for
	recovering := false // recovery may have locks of the tables
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
			return nil, moorage.Errorf(moorage.KindCommitFailed,
				"Another attempt of this request took too long; nothing was changed, "+
					"try again with another Idempotency-Key")
		default:
			return nil, moorage.Errorf(moorage.KindCommitFailed,
				"Another operation holds %s; nothing was changed, try again", t.heldTable(held.Blocked.Path))
		}
	}
}

// heldTable names, for people, the table whose lock could not be had. Where more than a table is
// held, it names none.
func (t *transaction) heldTable(blocked locks.Path) string {
	for _, p := range t.parts {
		if !p.create && blocked == locks.Warehouse(t.warehouse).Pointer(p.found.Pointer.ID.String()) {
			return "the table " + p.ident.String()
		}
	}
	return "one of the tables of this transaction"
}

// abortDead fences the coordinators of transactions that are past their deadline and work on one of
// pointers. It reports whether there was one, or one that was just aborted: while recovery finishes
// that one, it holds the locks of its tables. The rest, which no lock depends on, is for recovery.
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
		touches := slices.ContainsFunc(entry.Participants, func(p txlog.Participant) bool {
			return slices.Contains(pointers, p.Pointer)
		})
		switch {
		case !touches || !c.isDue(entry) || entry.State == registry.StateCommitted:
			continue
		case entry.State == registry.StateAborted && now.Sub(entry.Deadline) >= txlog.LockPatience:
			continue // only its files are left to do
		}
		if _, err := c.transactions.Abort(ctx, entry); err != nil {
			c.log.WarnContext(ctx, "could not abort a transaction whose tables are needed",
				"commit", entry.ID, "error", err)
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
