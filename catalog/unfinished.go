package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// UnfinishedTransaction is a transaction of which something is left to do, by its coordinator, by the
// recovery or by an operator.
type UnfinishedTransaction struct {
	ID        string               `json:"id"`    // the commit id
	State     string               `json:"state"` // pending, committed or aborted
	Warehouse string               `json:"warehouse"`
	Tables    []moorage.Identifier `json:"tables"`
	Files     []string             `json:"files"`     // all that it has written or may yet write
	Published []string             `json:"published"` // those that stay; the rest is deleted in the end
	Began     time.Time            `json:"began"`
	Deadline  time.Time            `json:"deadline"` // from then on anybody may abort it
	Principal string               `json:"principal"`
	RequestID string               `json:"request-id,omitempty"`
	Blocker   *Blocker             `json:"blocker"` // null unless the recovery gave it up
	// Unreadable says why its record cannot be read: then nothing is known but ID and State, and the recovery leaves it alone.
	Unreadable string `json:"unreadable,omitempty"`
}

// Blocker says why a worker gave something up, until an operator has looked.
type Blocker struct {
	Since     time.Time `json:"since"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"last-error"`
	// Unreadable says why the record of it cannot be read: then nothing else is known.
	Unreadable string `json:"unreadable,omitempty"`
}

// BlockedPurge is a dropped table whose files could not be deleted, or a task that cannot be read.
type BlockedPurge struct {
	ID      string             `json:"id"`      // of the task
	Table   moorage.Identifier `json:"table"`   // without a name if its record cannot be read
	Blocker Blocker            `json:"blocker"` // since is when the table was dropped
	// Unreadable says why the record of the task cannot be read: then nothing is known but ID, and the workers leave it alone. It is taken for
	// a purge, unless there is a transaction that it belongs to.
	Unreadable string `json:"unreadable,omitempty"`
}

// UnfinishedTransactions returns a page of the log of transactions, in the order of their ids, and after which id the
// next page begins, empty if there is none. Errors: KindBadRequest if page.After is no id.
func (c *Catalog) UnfinishedTransactions(ctx context.Context, page Page) (transactions []UnfinishedTransaction, next string, err error) {
	const op = "catalog.UnfinishedTransactions"
	var after registry.ID
	if page.After != "" {
		if after, err = parseID(page.After); err != nil {
			return nil, "", moorage.Annotate(op, page.After, err)
		}
	}
	transactions = []UnfinishedTransaction{}
	limit := ledger.ScanPage
	if page.Limit > 0 {
		limit = min(limit, page.Limit+1) // one more says whether there is a next page
	}
	for {
		entries, err := c.transactions.Unfinished(ctx, after, limit)
		if err != nil {
			return nil, "", ledger.StepError(op, err)
		}
		tasks, err := c.taskRecords(ctx, entries)
		if err != nil {
			return nil, "", moorage.Annotate(op, "", err)
		}
		for i, entry := range entries {
			if page.Limit > 0 && len(transactions) == page.Limit {
				return transactions, transactions[len(transactions)-1].ID, nil
			}
			transactions = append(transactions, unfinishedOf(entry, tasks[i]))
		}
		if len(entries) < limit {
			return transactions, "", nil
		}
		after = entries[len(entries)-1].ID
	}
}

// taskRecords returns the blocker of each transaction, or the zero record.
func (c *Catalog) taskRecords(ctx context.Context, entries []txlog.Entry) ([]registry.Record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(entries))
	for i, entry := range entries {
		keys[i] = registry.TaskKey(entry.ID)
	}
	return c.ledger.Get(ctx, keys...)
}

func unfinishedOf(entry txlog.Entry, blocker registry.Record) UnfinishedTransaction {
	unfinished := UnfinishedTransaction{
		ID: entry.ID.String(), State: entry.State.String(), Warehouse: entry.Warehouse, Tables: []moorage.Identifier{},
		Files: append([]string{}, entry.Files...), Published: append([]string{}, entry.Published...),
		Began: entry.Began, Deadline: entry.Deadline, Principal: entry.Principal, RequestID: entry.RequestID,
	}
	if entry.Unreadable != nil {
		unfinished.Unreadable = entry.Unreadable.Error()
	}
	for _, p := range entry.Participants {
		unfinished.Tables = append(unfinished.Tables, p.Ident)
	}
	if blocker.Exists() {
		unfinished.Blocker = blockerOf(blocker)
	}
	return unfinished
}

func blockerOf(record registry.Record) *Blocker {
	task, err := registry.DecodeTask(record)
	if err != nil {
		return &Blocker{Unreadable: err.Error()}
	}
	return &Blocker{Since: task.Created, Attempts: task.Attempts, LastError: task.LastError}
}

// BlockedPurges returns a page of the purges that were given up, and of the tasks that cannot be read, in the order of their ids, and
// after which id the next page begins, empty if there is none.
func (c *Catalog) BlockedPurges(ctx context.Context, page Page) (purges []BlockedPurge, next string, err error) {
	const op = "catalog.BlockedPurges"
	purges = []BlockedPurge{}
	err = c.ledger.Scan(ctx, registry.TableTask, "", page.After, func(record registry.Record) (bool, error) {
		purge, found, err := c.blockedPurge(ctx, record)
		switch {
		case err != nil || !found:
			return true, err
		case page.Limit > 0 && len(purges) == page.Limit:
			next = purges[len(purges)-1].ID
			return false, nil
		}
		purges = append(purges, purge)
		return true, nil
	})
	return purges, next, moorage.Annotate(op, "", err)
}

// blockedPurge returns the purge that a task is, and false if it is none or was not given up.
func (c *Catalog) blockedPurge(ctx context.Context, record registry.Record) (BlockedPurge, bool, error) {
	task, unreadable := registry.DecodeTask(record)
	if unreadable != nil {
		blocker, err := c.blocksTransaction(ctx, record.Key)
		table := moorage.Identifier{Namespace: moorage.Namespace{}}
		return BlockedPurge{ID: record.Key.ID, Table: table, Unreadable: unreadable.Error()}, !blocker, err
	}
	if task.Kind != registry.TaskPurge {
		return BlockedPurge{}, false, c.dropEnded(ctx, record, task.ID)
	}
	if record.State != registry.StateBlocked {
		return BlockedPurge{}, false, nil
	}
	pointers, err := c.ledger.Get(ctx, registry.PointerKey(task.Pointer))
	if err != nil || !pointers[0].Exists() {
		return BlockedPurge{}, false, err
	}
	blocked := BlockedPurge{ID: task.ID.String(), Table: moorage.Identifier{Namespace: moorage.Namespace{}}, Blocker: *blockerOf(record)}
	if pointer, err := ledger.Decode[registry.Pointer](pointers[0]); err == nil { // else that is why it was given up
		blocked.Table = pointer.Identifier()
	}
	return blocked, true, nil
}

// What an operator's word can be about.
const (
	UnfinishedKindTransaction = "transaction"
	UnfinishedKindPurge       = "purge"
)

// Retried is what became of something that an operator had tried again.
type Retried struct {
	Kind  string `json:"kind"`
	Ended bool   `json:"ended"` // nothing is left to do; else a worker goes on trying
	// Reason says why it was not ended at once, if that was tried.
	Reason string `json:"reason,omitempty"`
}

// retryTimeout bounds the attempt that Retry makes itself.
const retryTimeout = 30 * time.Second

// Retry takes the blocker from the transaction or the purge called id, so that the workers of all nodes try it again from the start. A
// transaction is tried once before it returns.
//
// Errors: KindBadRequest if id is no id, KindNotFound if nothing unfinished has it, KindUnprocessable for what has a record that
// cannot be read; for a transaction whose blocker cannot be, that is none.
func (c *Catalog) Retry(ctx context.Context, id string) (Retried, error) {
	const op = "catalog.Retry"
	parsed, err := parseID(id)
	if err != nil {
		return Retried{}, moorage.Annotate(op, id, err)
	}
	var entry txlog.Entry
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		entry, err = c.unblock(ctx, parsed)
		return ledger.RetryOnConflict(err)
	})
	switch {
	case err != nil:
		return Retried{}, moorage.Annotate(op, id, err)
	case !entry.Exists():
		c.kickPurge()
		return Retried{Kind: UnfinishedKindPurge}, nil
	}
	c.recovery.Kick()
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	retried := Retried{Kind: UnfinishedKindTransaction}
	if err := c.resolveTransaction(ctx, entry); err != nil {
		retried.Reason = err.Error()
		return retried, nil
	}
	retried.Ended = true
	return retried, nil
}

// unblock takes its blocker from what is called id, and returns the transaction, or one that does not exist if it is a purge.
func (c *Catalog) unblock(ctx context.Context, id registry.ID) (txlog.Entry, error) {
	const op = "catalog.unblock"
	entry, found, err := c.transactions.Get(ctx, id)
	if err != nil {
		return entry, ledger.StepError(op, err)
	}
	records, err := c.ledger.Get(ctx, registry.TaskKey(id))
	if err != nil {
		return entry, err
	}
	blocker := records[0]
	switch {
	case !found && !blocker.Exists():
		return entry, errNothingUnfinished(id)
	case entry.Unreadable != nil:
		return entry, moorage.Errorf(moorage.KindUnprocessable, "The record of the transaction cannot be read; it can be aborted, which forgets it, not tried again")
	case !blocker.Exists():
		return entry, nil
	}
	write := registry.Delete(blocker.Key)
	if !found {
		task, err := registry.DecodeTask(blocker)
		if err != nil {
			return entry, moorage.Errorf(moorage.KindUnprocessable, "The record of the task cannot be read; it can be aborted, which removes it, not tried again")
		}
		if task.Kind != registry.TaskPurge {
			return entry, c.dropBlocker(ctx, id)
		}
		task.Attempts, task.LastError = 0, ""
		writes, err := ledger.Encode(ledger.Put(blocker.Key, registry.StateNone, task))
		if err != nil {
			return entry, err
		}
		write = writes[0]
	}
	_, err = c.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(blocker)}, Writes: []registry.Write{write},
	})
	if _, failed := registry.FailedCondition(err); failed || err == nil {
		return entry, err
	}
	return entry, ledger.StepError(op, err)
}

// dropBlocker deletes the blocker of a transaction that has come to its end since it was given up, and reports that there is
// nothing unfinished.
func (c *Catalog) dropBlocker(ctx context.Context, id registry.ID) error {
	if err := c.transactions.Finish(ctx, txlog.Entry{Transaction: txlog.Transaction{ID: id}}); err != nil {
		return ledger.StepError("catalog.dropBlocker", err)
	}
	return errNothingUnfinished(id)
}

// Aborted is what became of a transaction that an operator ended, or of a task that could not be read.
type Aborted struct {
	Kind string `json:"kind"`
	// Was is its state before; of a purge that of its table, dropped or purging, or none if no table awaited it.
	Was string `json:"was"`
	// Table is the one whose purge was called off.
	Table *moorage.Identifier `json:"table,omitempty"`
	// Forgotten tells whether its record is gone: it was given up. Else the recovery deletes its files and then its record.
	Forgotten bool `json:"forgotten"`
	// Left are the files of a forgotten transaction that nobody will delete, as far as they are there, or the locations of a table
	// below which files stay that were to be purged; not null.
	Left []string `json:"left"`
	// Unreadable tells that its record could not be read. Of a transaction there may be files to be left, but which is not known, and
	// Left is empty.
	Unreadable bool `json:"unreadable,omitempty"`
}

// Abort ends the transaction called id. A pending one can no longer become true. One that the recovery gave up is forgotten, and
// its files are left to whoever asked; so is one whose record cannot be read. That is safe in every state: what is published
// stays, what is not never will be, and no file is deleted.
//
// A task that cannot be read is removed, and its purge called off: the files that are still there stay. The dropped table is then as
// one that was dropped without a purge, but if files may have been deleted already it cannot come back, and its table-uuid is free
// only behind the undrop window, which then begins.
//
// Errors: KindBadRequest if id is no id, KindNotFound if nothing unfinished has it, KindUnprocessable if
// it is a purge that can be read, or a transaction neither pending nor given up.
func (c *Catalog) Abort(ctx context.Context, id string) (Aborted, error) {
	const op = "catalog.Abort"
	var aborted Aborted
	err := c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		aborted, err = c.abort(ctx, id)
		return err
	})
	if err != nil {
		return Aborted{}, moorage.Annotate(op, id, err)
	}
	if aborted.Kind == UnfinishedKindPurge {
		c.log.WarnContext(ctx, "an operator removed a task that cannot be read", "task", id, "was", aborted.Was, "principal", moorage.Principal(ctx),
			"left", aborted.Left)
		return aborted, nil
	}
	c.log.WarnContext(ctx, "an operator ended a transaction", "commit", id, "was", aborted.Was, "principal", moorage.Principal(ctx),
		"forgotten", aborted.Forgotten, "files_left", len(aborted.Left), "unreadable", aborted.Unreadable)
	return aborted, nil
}

// abort is one attempt of Abort; ledger.ErrRetry if what it was about to forget has changed.
func (c *Catalog) abort(ctx context.Context, id string) (Aborted, error) {
	const op = "catalog.abort"
	parsed, err := parseID(id)
	if err != nil {
		return Aborted{}, err
	}
	entry, found, err := c.transactions.Get(ctx, parsed)
	if err != nil {
		return Aborted{}, ledger.StepError(op, err)
	}
	records, err := c.ledger.Get(ctx, registry.TaskKey(parsed))
	if err != nil {
		return Aborted{}, err
	}
	blocked := records[0].Exists()
	switch {
	case !found && blocked:
		return c.abortTask(ctx, parsed, records[0])
	case !found:
		return Aborted{}, errNothingUnfinished(parsed)
	case entry.Unreadable != nil:
		return c.forgetUnreadable(ctx, entry)
	}
	aborted := Aborted{Kind: UnfinishedKindTransaction, Was: entry.State.String(), Forgotten: blocked, Left: []string{}}
	fenced, err := c.transactions.Abort(ctx, entry)
	if err != nil {
		return Aborted{}, ledger.StepError(op, err)
	}
	if !fenced.Exists() { // its coordinator came to the end: what it published is no longer anybody's to delete
		return Aborted{}, errNothingUnfinished(parsed)
	}
	if !blocked {
		if entry.State != registry.StatePending || fenced.State != registry.StateAborted {
			return Aborted{}, moorage.Errorf(moorage.KindUnprocessable, "The transaction is not pending and was not given up: the recovery ends it")
		}
		c.recovery.Kick()
		return aborted, nil
	}
	if err := c.disown(ctx, fenced); err != nil {
		return Aborted{}, err
	}
	if err := c.transactions.Finish(ctx, fenced); err != nil {
		return Aborted{}, ledger.StepError(op, err)
	}
	aborted.Left = append(aborted.Left, fenced.Surplus()...)
	return aborted, nil
}

// forgetUnreadable removes the record of a transaction that cannot be read; ledger.ErrRetry if it has changed meanwhile.
func (c *Catalog) forgetUnreadable(ctx context.Context, entry txlog.Entry) (Aborted, error) {
	if err := c.disown(ctx, entry); err != nil {
		return Aborted{}, err
	}
	err := c.transactions.Forget(ctx, entry)
	if _, failed := registry.FailedCondition(err); failed {
		return Aborted{}, ledger.ErrRetry
	}
	if err != nil {
		return Aborted{}, ledger.StepError("catalog.forgetUnreadable", err)
	}
	return Aborted{Kind: UnfinishedKindTransaction, Was: entry.State.String(), Forgotten: true, Left: []string{}, Unreadable: true}, nil
}

// disown sees to it that a coordinator which wakes up after entry is forgotten leaves the files alone, which are left to the operator: the change
// of the transaction, if it has not come true, is written as VOID. ledger.ErrRetry if it comes true just then.
func (c *Catalog) disown(ctx context.Context, entry txlog.Entry) error {
	ident := moorage.Identifier{Warehouse: entry.Warehouse}
	_, _, err := c.ledger.LookOrFence(ctx, registry.Change{ID: entry.ID, Operation: string(OpTransaction), Ident: ident})
	if _, failed := registry.FailedCondition(err); failed {
		return ledger.ErrRetry
	}
	if err != nil {
		return ledger.StepError("catalog.disown", err)
	}
	return nil
}

// RecoveryStats returns what the recovery of this process has seen and done.
func (c *Catalog) RecoveryStats() txlog.Stats { return c.recovery.Stats() }

func errNothingUnfinished(id registry.ID) error {
	return moorage.Errorf(moorage.KindNotFound, "Nothing unfinished has the id %s", id)
}

func parseID(text string) (registry.ID, error) {
	var id registry.ID
	if err := id.UnmarshalText([]byte(text)); err != nil || id.IsZero() {
		return id, moorage.Errorf(moorage.KindBadRequest, "%q is no id: want 32 hexadecimal digits", text)
	}
	return id, nil
}
