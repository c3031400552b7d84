package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"moorage"
	"moorage/registry"
)

// errFenced means that the outcome of an Apply was unknown, and that a fence then ensured that its
// batch never happens.
var errFenced = fmt.Errorf("%w: a write was lost and fenced", ErrRetry)

// ErrAnswered means that an idempotency key of the mutation already has an outcome. The mutation
// did not and never will happen. Callers handle it neither as ErrRetry nor as a failed condition:
// they undo prepared work. It is always an AnsweredError.
var ErrAnswered = errors.New("ledger: a key of the mutation has an outcome")

// AnsweredError is the concrete type of ErrAnswered. It has the key with the outcome.
type AnsweredError struct{ Key *Key }

// Error returns the text of the error.
func (e *AnsweredError) Error() string { return ErrAnswered.Error() + ": " + e.Key.Record.ID }

// Is reports whether target is ErrAnswered.
func (e *AnsweredError) Is(target error) bool { return target == ErrAnswered }

// Mutation is one change of the catalog: all of its writes happen in one Apply, or none.
type Mutation struct {
	Change     registry.Change
	Conditions []registry.Condition
	Writes     []registry.Write
	// Answers are the outcomes of the idempotency keys of the requests that the mutation executes.
	// They are written in the same Apply. Its first conditions require that these keys have no
	// outcome yet.
	Answers []Answer
}

// Answer is the outcome of a key.
type Answer struct {
	Key     *Key
	Outcome registry.Outcome
}

// Key is an idempotency key in stored form, with its request.
type Key struct {
	Record  registry.Key
	Request registry.Idempotency // without the outcome
}

// Put returns the condition that the key has no outcome, and the write that stores outcome.
func (k *Key) Put(outcome registry.Outcome) (registry.Condition, registry.Write, error) {
	value := k.Request
	value.Outcome = outcome
	writes, err := Encode(Put(k.Record, registry.StateNone, value))
	if err != nil {
		return registry.Condition{}, registry.Write{}, err
	}
	writes[0].Life = value.Life
	return registry.Absent(k.Record), writes[0], nil
}

// Apply applies a mutation. Every mutation has a change record; for writes without one, see Step.
// Apply returns the ETags of the writes, in their order. They are nil if the mutation happened
// although the store's answer was lost. The error is
//
//   - nil: it happened;
//   - a *registry.FailedError: it did not happen, because the condition in the error failed;
//   - an *AnsweredError: it did not and never will happen, because the key has an outcome;
//   - ErrRetry: it did not and never will happen, but may be tried again;
//   - an error of KindUnavailable: it did not and never will happen, and an immediate retry is
//     useless;
//   - an error of KindCommitUnknown: it may have happened, or may still happen.
//
// The change record alone decides an unknown outcome. If it exists, the batch happened. If not,
// Apply writes a record in state VOID at its key. After that the batch can no longer happen,
// because it requires that the key is absent. Apply relies on either record only after Confirm.
// Apply does not read the pointer, because other commits may have followed.
func (l *Ledger) Apply(ctx context.Context, m Mutation) ([]registry.ETag, error) {
	batch := registry.Batch{Change: &m.Change, Conditions: m.Conditions, Writes: m.Writes}
	if len(m.Answers) == 0 {
		return l.applyOrSettle(ctx, batch)
	}
	unanswered := make([]registry.Condition, len(m.Answers), len(m.Answers)+len(m.Conditions))
	writes := slices.Grow(slices.Clip(batch.Writes), len(m.Answers))
	for i, answer := range m.Answers {
		// If this process was suspended for that long, a retry may have been refused in the
		// meantime, and the outcome of the refusal deleted.
		if !l.now().Before(answer.Key.Request.Expires()) {
			return nil, moorage.Errorf(moorage.KindUnavailable,
				"The request took longer than its Idempotency-Key is kept; nothing was changed")
		}
		condition, write, err := answer.Key.Put(answer.Outcome)
		if err != nil {
			return nil, err
		}
		unanswered[i], writes = condition, append(writes, write)
	}
	batch.Conditions, batch.Writes = append(unanswered, m.Conditions...), writes
	etags, err := l.applyOrSettle(ctx, batch)
	if failed, ok := registry.FailedCondition(err); ok {
		if i := slices.Index(unanswered, failed); i >= 0 {
			return nil, &AnsweredError{m.Answers[i].Key}
		}
	}
	return etags, err
}

func (l *Ledger) applyOrSettle(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := l.store.Apply(ctx, batch)
	switch {
	case err == nil:
		l.applied()
		return etags, nil
	case errors.Is(err, registry.ErrUnknown):
		return nil, l.settle(ctx, *batch.Change)
	}
	if _, failed := registry.FailedCondition(err); failed {
		return nil, err
	}
	return nil, StoreError("ledger.applyOrSettle", err)
}

// Step writes without a change record. Such writes are fences, updates of tasks, the progress of
// sweeps, outcomes of intents without an effect, states of transactions, assignments, and the
// removal of old records. Each step must be safe to repeat. The errors are the errors of
// registry.Store.Apply.
func (l *Ledger) Step(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	return l.store.Apply(ctx, batch)
}

// Answer stores outcome for a key. If the key already has an outcome, the error is a
// *registry.FailedError. The errors are the errors of registry.Store.Apply, and KindTooLarge.
func (l *Ledger) Answer(ctx context.Context, key *Key, outcome registry.Outcome) error {
	unanswered, write, err := key.Put(outcome)
	if err != nil {
		return err
	}
	_, err = l.Step(ctx, registry.Batch{Conditions: []registry.Condition{unanswered}, Writes: []registry.Write{write}})
	return err
}

// settle finds out whether the batch of change happened.
func (l *Ledger) settle(ctx context.Context, change registry.Change) error {
	const op = "ledger.settle"
	ctx, cancel := moorage.Detached(ctx, l.SettleTimeout)
	defer cancel()
	var lastErr error
	for attempt := 0; ; attempt++ {
		happened, settled, err := l.LookOrFence(ctx, change)
		if settled {
			l.log.WarnContext(ctx, "outcome of a write was unknown",
				"commit", change.ID, "operation", change.Operation, "happened", happened)
			if happened {
				return nil
			}
			return errFenced
		}
		if err != nil {
			lastErr = err
		}
		if l.StopsLooking(ctx, attempt, err) {
			l.log.ErrorContext(ctx, "outcome of a write stays unknown",
				"commit", change.ID, "operation", change.Operation, "error", lastErr)
			err := moorage.Errorf(moorage.KindCommitUnknown,
				"It is not known whether the %s happened: the store did not answer", change.Operation)
			return moorage.E(op, change.Ident.String(), moorage.KindCommitUnknown, err)
		}
	}
}

// StopsLooking pauses after a failed lookup of an outcome. It reports whether another lookup is
// useless.
func (l *Ledger) StopsLooking(ctx context.Context, attempt int, err error) bool {
	return errors.Is(err, registry.ErrFailed) || errors.Is(err, registry.ErrClosed) || l.Pause(ctx, attempt) != nil
}

// LookOrFence reports whether a change happened. If it did not, LookOrFence writes its record in
// state VOID, so that the change never happens. settled is true if the result is certain. After an
// error the outcome is still unknown.
func (l *Ledger) LookOrFence(ctx context.Context, change registry.Change) (happened, settled bool, err error) {
	key := registry.ChangeKey(change.ID)
	records, err := l.store.Get(ctx, key)
	if err != nil {
		return false, false, err
	}
	if records[0].Exists() {
		err := l.Confirm(ctx, records[0])
		return err == nil && records[0].State != registry.StateVoid, err == nil, err
	}
	fence := registry.Change{ID: change.ID, Operation: change.Operation, Ident: change.Ident, Time: l.now()}
	void, err := fence.Encode()
	if err != nil {
		return false, false, err
	}
	_, err = l.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.Absent(key)},
		Writes:     []registry.Write{registry.Put(key, registry.StateVoid, void)},
	})
	return false, err == nil, err
}

// Confirm returns nil if record, which shows the result of a write whose answer was lost, is
// permanent. A primary can show a commit that its synchronous standby does not have yet. That
// happens if the commit's wait for the standby was cancelled, or if the primary was restarted. A
// successful Apply waits for the standby. So if an Apply with only a condition on the record
// succeeds, the record is replicated.
func (l *Ledger) Confirm(ctx context.Context, record registry.Record) error {
	_, err := l.Step(ctx, registry.Batch{Conditions: []registry.Condition{Unchanged(record)}})
	return err
}
