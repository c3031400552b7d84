package txlog

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"moorage/ledger"
	"moorage/registry"
)

// Log is the log of the transactions in a store. It is safe for concurrent use.
//
// Its methods return errors of the store unchanged. A *registry.FailedError means that the
// transaction has changed since the caller read it. registry.ErrUnknown means that the step may
// have been taken, or may still be taken later.
type Log struct{ ledger *ledger.Ledger }

// New returns the log in the store of l.
func New(l *ledger.Ledger) *Log { return &Log{l} }

// Begin records t as PENDING. The record is durable when Begin returns. The caller must not write a
// file of t before Begin has returned. Call it only once for each id: after registry.ErrUnknown,
// the id and the names of the files must not be used again.
func (l *Log) Begin(ctx context.Context, t Transaction) (Entry, error) {
	key := registry.TransactionKey(t.ID)
	return l.put(ctx, registry.Absent(key), Entry{Transaction: t, State: registry.StatePending})
}

// Extend replaces the record of a transaction, if the record still has the version of e. The new
// record has the given participants, with the versions that the transaction now expects. Extend
// adds files, which the transaction will write, to the recorded files. The record is durable when
// Extend returns. After registry.ErrUnknown, Get shows whether the write has happened, but it may
// also happen later.
func (l *Log) Extend(ctx context.Context, e Entry, participants []Participant, files []string) (Entry, error) {
	if err := e.checkPending("extend"); err != nil {
		return Entry{}, err
	}
	before := registry.ETagIs(registry.TransactionKey(e.ID), e.ETag)
	e.Participants = participants
	e.Files = slices.Concat(e.Files, files)
	return l.put(ctx, before, e)
}

// put writes e if the condition holds, and returns it with its new version.
func (l *Log) put(ctx context.Context, condition registry.Condition, e Entry) (Entry, error) {
	value, err := registry.Encode(e.Transaction)
	if err != nil {
		return Entry{}, err
	}
	etags, err := l.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{condition},
		Writes:     []registry.Write{registry.Put(condition.Key, e.State, value)},
	})
	if err != nil {
		return Entry{}, err
	}
	e.ETag = etags[0]
	return e, nil
}

// Commit returns the condition and the write that make the transaction take effect, for the Apply
// that publishes the files. The condition is that the transaction still has the version of e. If
// all its files are published, the write deletes its record. Otherwise the write sets state
// COMMITTED, and the caller must call Finish once it has deleted the surplus. Commit fails if e is
// not PENDING or a published file was not recorded.
func (e Entry) Commit(published []string) (registry.Condition, registry.Write, error) {
	key := registry.TransactionKey(e.ID)
	if err := e.checkPending("commit"); err != nil {
		return registry.Condition{}, registry.Write{}, err
	}
	condition := registry.ETagIs(key, e.ETag)
	if slices.Equal(published, e.Files) { // usually true, if there was only one try
		return condition, registry.Delete(key), nil
	}
	for _, file := range published {
		if !slices.Contains(e.Files, file) {
			return registry.Condition{}, registry.Write{},
				fmt.Errorf("txlog: commit %s with %s, which was not recorded", e.ID, file)
		}
	}
	e.Published = published
	if len(e.Surplus()) == 0 {
		return condition, registry.Delete(key), nil
	}
	value, err := registry.Encode(e.Transaction)
	if err != nil {
		return registry.Condition{}, registry.Write{}, err
	}
	return condition, registry.Put(key, registry.StateCommitted, value), nil
}

// abortTriesMax is the maximum number of tries of an Abort. A try fails if the coordinator extends
// its transaction at the same time, which a coordinator does only a few times.
const abortTriesMax = 10

// Abort keeps a PENDING transaction from ever taking effect, even if it was extended since e was
// read. It returns the new state of the transaction. A transaction that is no longer PENDING stays
// unchanged, and Abort returns it. For an unreadable transaction, Abort returns an error.
func (l *Log) Abort(ctx context.Context, e Entry) (Entry, error) {
	for try := 1; ; try++ {
		if err := e.checkReadable("abort"); err != nil {
			return Entry{}, err
		}
		if e.State != registry.StatePending {
			return e, nil
		}
		aborted := e
		aborted.State = registry.StateAborted
		aborted, err := l.put(ctx, registry.ETagIs(registry.TransactionKey(e.ID), e.ETag), aborted)
		if err == nil {
			return aborted, nil
		}
		if _, failed := registry.FailedCondition(err); !failed || try == abortTriesMax {
			return Entry{}, err
		}
		now, found, err := l.Get(ctx, e.ID)
		if err != nil {
			return Entry{}, err
		}
		if !found {
			return Entry{Transaction: e.Transaction}, nil
		}
		e = now
	}
}

// Finish deletes the records of transactions whose work is done, and their blockers, which are
// tasks of kind registry.TaskRecovery. A transaction is done in three cases: it is COMMITTED and
// its surplus was deleted, it is ABORTED and its files were deleted, or its own coordinator deleted
// its files and abandons it. Finish may be repeated. Like Abort, it fences the coordinators. If one
// of entries is unreadable, Finish fails and deletes nothing.
func (l *Log) Finish(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var writes []registry.Write
	for _, e := range entries {
		if err := e.checkReadable("finish"); err != nil {
			return err
		}
		writes = append(writes, deletes(e.ID)...)
	}
	_, err := l.ledger.Step(ctx, registry.Batch{Writes: writes})
	return err
}

// DropBlocker removes the blocker of a transaction that finished after recovery gave it up. The
// coordinator of such a transaction was slow, and did not know about the blocker. DropBlocker
// reports whether the transaction is no longer in the log. Such a transaction never appears again.
func (l *Log) DropBlocker(ctx context.Context, blocker registry.Record, id registry.ID) (gone bool, err error) {
	_, found, err := l.Get(ctx, id)
	if err != nil || found {
		return false, err
	}
	_, err = l.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(blocker)},
		Writes:     []registry.Write{registry.Delete(blocker.Key)},
	})
	if _, failed := registry.FailedCondition(err); failed { // another process has removed the blocker
		err = nil
	}
	return true, err
}

// deletes returns the writes that remove a transaction from the store.
func deletes(id registry.ID) []registry.Write {
	return []registry.Write{registry.Delete(registry.TransactionKey(id)), registry.Delete(registry.TaskKey(id))}
}

// Get returns a transaction, which may be Unreadable. It returns false if the transaction is not in
// the log.
func (l *Log) Get(ctx context.Context, id registry.ID) (Entry, bool, error) {
	records, err := l.ledger.Get(ctx, registry.TransactionKey(id))
	if err != nil || !records[0].Exists() {
		return Entry{}, false, err
	}
	return decodeEntry(records[0]), true, nil
}

// Unfinished returns at most limit (1 to registry.ListLimitMax) transactions in the order of their
// ids. The list begins with the first id greater than after, or at the start if after is zero. A
// page shorter than limit is the last. The list includes Unreadable transactions, unless they have
// no id.
func (l *Log) Unfinished(ctx context.Context, after registry.ID, limit int) ([]Entry, error) {
	var behind string
	if !after.IsZero() {
		behind = after.String()
	}
	var entries []Entry
	for {
		wanted := limit - len(entries)
		page, last, err := l.page(ctx, behind, wanted)
		if err != nil {
			return nil, err
		}
		entries = append(entries, slices.DeleteFunc(page, func(e Entry) bool { return e.ID.IsZero() })...)
		if last == "" || len(entries) == limit {
			return entries, nil
		}
		behind = last
	}
}

// page returns the transactions of at most limit records after the key behind, and the key of the
// last record. If there are no more records, that key is "".
func (l *Log) page(ctx context.Context, behind string, limit int) (entries []Entry, last string, err error) {
	records, err := l.ledger.List(ctx, registry.TableTransaction, "", behind, limit)
	if err != nil {
		return nil, "", err
	}
	entries = make([]Entry, len(records))
	for i, record := range records {
		entries[i] = decodeEntry(record)
	}
	if !registry.IsLastPage(records, limit) {
		last = records[len(records)-1].Key.ID
	}
	return entries, last, nil
}

// All returns every transaction, page by page, in the order of their keys. It includes Unreadable
// ones, even without an id. It ends with the first error.
func (l *Log) All(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for behind := ""; ; {
			entries, last, err := l.page(ctx, behind, ledger.ScanPage)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if last == "" {
				return
			}
			behind = last
		}
	}
}
