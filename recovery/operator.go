package recovery

import (
	"cmp"
	"context"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// Unfinished is a transaction that its coordinator, recovery or an operator must still end.
type Unfinished struct {
	txlog.Entry
	Blocker *Blocker // nil unless recovery gave up the transaction
}

// Blocker explains why recovery gave up a transaction.
type Blocker struct {
	Since     time.Time
	Attempts  int
	LastError string
	// Unreadable explains why the blocker's record cannot be read. In that case, only the id is
	// known.
	Unreadable error
}

// Unfinished returns at most limit transactions of the log in the order of their ids. A limit of 0
// means all. The page begins with the first id greater than after. To get the next page, pass next
// as after. On the last page, next is "". KindBadRequest means that after is not an id.
func (r *Recovery) Unfinished(ctx context.Context, after string, limit int) (
	page []Unfinished, next string, err error) {
	const op = "recovery.Unfinished"
	var behind registry.ID
	if after != "" {
		if behind, err = parseID(after); err != nil {
			return nil, "", moorage.Annotate(op, after, err)
		}
	}
	read := ledger.ScanPage
	if limit > 0 {
		read = min(read, limit+1) // one more than requested, to detect a next page
	}
	for {
		entries, err := r.transactions.Unfinished(ctx, behind, read)
		if err != nil {
			return nil, "", ledger.StepError(op, err)
		}
		blockers, err := r.blockers(ctx, entries)
		if err != nil {
			return nil, "", moorage.Annotate(op, "", err)
		}
		for i, entry := range entries {
			if limit > 0 && len(page) == limit {
				return page, page[limit-1].ID.String(), nil
			}
			page = append(page, Unfinished{entry, blockerOf(blockers[i])})
		}
		if len(entries) < read {
			return page, "", nil
		}
		behind = entries[len(entries)-1].ID
	}
}

// blockers returns the blockers of the transactions, in the same order. For a transaction without a
// blocker, it returns the zero record.
func (r *Recovery) blockers(ctx context.Context, entries []txlog.Entry) ([]registry.Record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(entries))
	for i, e := range entries {
		keys[i] = registry.TaskKey(e.ID)
	}
	return r.ledger.Get(ctx, keys...)
}

func blockerOf(record registry.Record) *Blocker {
	if !record.Exists() {
		return nil
	}
	task, err := registry.DecodeTask(record)
	if err != nil {
		return &Blocker{Unreadable: err}
	}
	return &Blocker{Since: task.Created, Attempts: task.Attempts, LastError: task.LastError}
}

// Kind is a kind of unfinished work.
type Kind string

// The kinds of unfinished work.
const (
	KindTransaction Kind = "transaction"
	KindPurge       Kind = "purge"
)

// Retried is the result of a retry by an operator.
type Retried struct {
	Kind   Kind
	Ended  bool  // all work is done; otherwise a worker continues to try
	Reason error // why it did not end at once; nil if it did, or was not tried
}

// retryTimeout is the timeout of the single attempt that Retry itself makes.
const retryTimeout = 30 * time.Second

// Retry removes the blocker of the transaction or purge with this id, so that the workers of all
// nodes start again with it. For a transaction, Retry makes one attempt itself before it returns. A
// purge that is still waiting for its time begins at once.
//
// Errors: KindBadRequest if id is not an id, KindNotFound if no unfinished work has it,
// KindUnprocessable if the record of the transaction or purge cannot be read. Retry also removes an
// unreadable blocker.
func (r *Recovery) Retry(ctx context.Context, id string) (Retried, error) {
	const op = "recovery.Retry"
	entry, blocker, err := r.find(ctx, id)
	if moorage.KindOf(err) == moorage.KindNotFound && err != nil && !entry.ID.IsZero() {
		err = r.config.RetryPurge(ctx, entry.ID) // a purge that waits for its time has no task
		return Retried{Kind: KindPurge}, moorage.Annotate(op, id, err)
	}
	if err != nil {
		return Retried{}, moorage.Annotate(op, id, err)
	}
	if !entry.Exists() {
		return Retried{Kind: KindPurge}, moorage.Annotate(op, id, r.config.RetryPurge(ctx, entry.ID))
	}
	if blocker.Exists() {
		_, err = r.ledger.Step(ctx, registry.Batch{Writes: []registry.Write{registry.Delete(blocker.Key)}})
		if err != nil {
			return Retried{}, ledger.StepError(op, err)
		}
	}
	r.Kick()
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	err = r.finishTransaction(ctx, entry)
	return Retried{Kind: KindTransaction, Ended: err == nil, Reason: err}, nil
}

// find returns the transaction with the id in text, and its blocker if it has one. If only a task
// has the id, find returns the task as the blocker, and an Entry with only the id. Errors: as for
// Retry.
func (r *Recovery) find(ctx context.Context, text string) (entry txlog.Entry, blocker registry.Record, err error) {
	const op = "recovery.find"
	id, err := parseID(text)
	if err != nil {
		return entry, blocker, err
	}
	entry, found, err := r.transactions.Get(ctx, id)
	if err != nil {
		return entry, blocker, ledger.StepError(op, err)
	}
	records, err := r.ledger.Get(ctx, registry.TaskKey(id))
	if err != nil {
		return entry, blocker, err
	}
	blocker = records[0]
	switch {
	case entry.Unreadable != nil:
		return entry, blocker, errUnreadable(id)
	case found:
		return entry, blocker, nil
	}
	entry.ID = id
	switch {
	case !blocker.Exists():
		return entry, blocker, errNothingUnfinished(id)
	}
	task, err := registry.DecodeTask(blocker)
	if err != nil {
		return entry, blocker, errUnreadable(id)
	}
	if task.Kind == registry.TaskRecovery {
		if gone, err := r.transactions.DropBlocker(ctx, blocker, id); err != nil || gone {
			return entry, blocker, cmp.Or(ledger.StepError(op, err), errNothingUnfinished(id))
		}
	}
	return entry, blocker, nil
}

// Aborted is the result of an abort by an operator.
type Aborted struct {
	Was registry.State
	// Forgotten is true if the record is gone, because recovery had given up the transaction.
	// Otherwise recovery deletes its files and then its record.
	Forgotten bool
	// Left lists files of a forgotten transaction that the server does not delete. They may not
	// exist.
	Left []string
}

// Abort ends the transaction with this id. A pending transaction can no longer take effect. If
// recovery gave up the transaction, it is forgotten, and the operator must handle its files. That
// is safe in every state. Published files stay, unpublished files are never published, and Abort
// deletes no file.
//
// Errors: KindBadRequest if id is not an id, KindNotFound if no unfinished work has it.
// KindUnprocessable if it is a task of another kind, if its record cannot be read, or if it is
// neither pending nor given up.
func (r *Recovery) Abort(ctx context.Context, id string) (aborted Aborted, err error) {
	const op = "recovery.Abort"
	err = r.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		aborted, err = r.abort(ctx, id)
		return err
	})
	if err != nil {
		return Aborted{}, moorage.Annotate(op, id, err)
	}
	r.log.WarnContext(ctx, "an operator ended a transaction", "commit", id, "was", aborted.Was,
		"request", moorage.RequestID(ctx), "forgotten", aborted.Forgotten, "files_left", len(aborted.Left))
	return aborted, nil
}

// abort is one attempt of Abort. It returns ledger.ErrRetry if the transaction takes effect in the
// meantime.
func (r *Recovery) abort(ctx context.Context, id string) (Aborted, error) {
	const op = "recovery.abort"
	entry, blocker, err := r.find(ctx, id)
	switch {
	case err != nil:
		return Aborted{}, err
	case !entry.Exists():
		return Aborted{}, moorage.Errorf(moorage.KindUnprocessable,
			"%s is a purge. It can be tried again, not aborted", id)
	}
	fenced, err := r.transactions.Abort(ctx, entry)
	switch {
	case err != nil:
		return Aborted{}, ledger.StepError(op, err)
	case !fenced.Exists(): // its coordinator finished, so its published files must stay
		return Aborted{}, errNothingUnfinished(entry.ID)
	case blocker.Exists():
		return r.forget(ctx, entry.State, fenced)
	case entry.State != registry.StatePending || fenced.State != registry.StateAborted:
		return Aborted{}, moorage.Errorf(moorage.KindUnprocessable,
			"The transaction is not pending and was not given up: the servers end it")
	}
	r.Kick()
	return Aborted{Was: entry.State}, nil
}

// forget removes the record of a transaction that was given up. If the transaction has not taken
// effect, forget also writes its change as VOID. So if its coordinator wakes up later, the
// coordinator does not delete the files, which belong to the operator.
func (r *Recovery) forget(ctx context.Context, was registry.State, entry txlog.Entry) (Aborted, error) {
	const op = "recovery.forget"
	ident := moorage.Identifier{Warehouse: entry.Warehouse}
	_, _, err := r.ledger.LookOrFence(ctx, registry.Change{ID: entry.ID, Operation: txlog.Operation, Ident: ident})
	if _, failed := registry.FailedCondition(err); failed {
		return Aborted{}, ledger.ErrRetry
	}
	if err == nil {
		err = r.transactions.Finish(ctx, entry)
	}
	return Aborted{Was: was, Forgotten: true, Left: entry.Surplus()}, ledger.StepError(op, err)
}

func errNothingUnfinished(id registry.ID) error {
	return moorage.Errorf(moorage.KindNotFound, "Nothing unfinished has the id %s", id)
}

func errUnreadable(id registry.ID) error {
	return moorage.Errorf(moorage.KindUnprocessable, "The record of %s cannot be read. Run the version that wrote it; "+
		"or stop all servers and run moorage doctor forget, which removes it", id)
}

func parseID(text string) (registry.ID, error) {
	var id registry.ID
	if err := id.UnmarshalText([]byte(text)); err != nil || id.IsZero() {
		return id, moorage.Errorf(moorage.KindBadRequest, "%q is no id: want 32 hexadecimal digits", text)
	}
	return id, nil
}
