package commit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

const (
	// KeyGrace is how long a key's outcome is still returned after its lifetime. It covers clock
	// differences and the duration of a request.
	KeyGrace = 5 * time.Minute
	// internalKeyLifetime is the lifetime of an internal key. Both the node that drew the key and
	// the node that received the forwarded request finish sooner.
	internalKeyLifetime = 2 * time.Minute
	// keyPathBytesMax bounds the stored part of a request's path, which is only meant for human
	// readers of the record. keyMessageBytesMax bounds the stored part of a refusal's message.
	// Messages to clients are shorter than that.
	keyPathBytesMax    = 1 << 10
	keyMessageBytesMax = 4 << 10
)

// runWithKey carries out w, whose request has a key. If an earlier attempt with the same key has
// ended, this attempt changes nothing, and runWithKey returns the answer of the earlier attempt.
// Only a table or view in that answer may be in a newer state.
//
// The Apply that commits w also writes the outcome of w. The first condition of that Apply is that
// the key has no outcome yet. For an intent without an effect, runWithKey writes the outcome on the
// same condition, then returns it. Such an intent was refused for good (see moorage.Kind.Final), or
// succeeded and had nothing to change.
//
// So one of several concurrent attempts, on any nodes, decides the outcome, and all other attempts
// return its answer. If an attempt hangs and its retry is refused, the Apply of the hung attempt
// can no longer succeed. runWithKey reads nothing before the work: a read would cost each mutation
// a round trip. A repeated mutation runs until it fails or finds the outcome of the earlier
// attempt. Then runWithKey returns the recorded answer.
//
// Other failures leave nothing behind and may be repeated with the same key. A staged create has no
// effect and leaves nothing behind either. runWithKey handles each case as follows:
//
//	w ended as                   and runWithKey
//	applied                      returns the answer: the same Apply stored the outcome
//	staged                       returns an earlier outcome if there is one, else the answer
//	succeeded without an effect  stores the outcome, then returns it; or returns an earlier one
//	refused, but its effect is   treats it as a success: it was sent under another key, or its
//	there                        key was forgotten
//	refused for good             stores the refusal, then returns it; or returns an earlier outcome
//	hidden, or forbidden         returns an earlier outcome; without one the refusal
//	refused for good, to a       returns an earlier outcome; without one the refusal
//	caller that does not see
//	the warehouse
//	failed otherwise             returns an earlier outcome; without one the failure
//
// Errors: the errors of the plan. KindUnavailable if the outcome cannot be written and no earlier
// attempt has one. KindCommitUnknown if the store cannot report whether there is one, or if a
// success cannot be returned again. Source: REST specification, Idempotency-Key.
func (p *Pipeline) runWithKey(ctx context.Context, w *work) (Outcome, error) {
	const op = "commit.runWithKey"
	for {
		end, other := p.inflight.begin(w.key.Record)
		if other == nil {
			defer end()
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return Outcome{}, moorage.E(op, w.Key.ID, moorage.KindUnavailable, ctx.Err())
		}
		outcome, found, err := p.lookUp(ctx, w.key)
		if err != nil && !found {
			err = p.outcomeUnknown(ctx, w.key, err)
		}
		if found || err != nil {
			return outcome, moorage.Annotate(op, w.Key.ID, err)
		}
	}
	outcome, err := p.run(ctx, w)
	switch {
	case err == nil && w.applied:
		return outcome, nil
	case err == nil && outcome.IsStaged():
		return p.unlessAnswered(ctx, w.key, outcome)
	case err == nil:
		return p.conclude(ctx, w, outcome, nil)
	case moorage.KindOf(err).Final() && !moorage.IsHidden(err):
		earlier, there, lookErr := p.effectOf(ctx, w)
		switch {
		case lookErr != nil: // the change may have happened, so nothing is stored
			return p.afterFailure(ctx, w.key, lookErr)
		case there:
			return p.conclude(ctx, w, earlier, nil)
		}
		return p.concludeRefused(ctx, w, err)
	}
	return p.afterFailure(ctx, w.key, err)
}

// effectOf handles a refused w if its tables show that an earlier attempt has happened. It returns
// the answer of that attempt. The client sent the earlier attempt with another key, or the key's
// outcome has expired. A repeated request without a key is recognised earlier; see edition.replays.
//
// Errors: KindUnavailable if this cannot be determined.
func (p *Pipeline) effectOf(ctx context.Context, w *work) (outcome Outcome, there bool, err error) {
	ctx, cancel := moorage.Detached(ctx, RequestTimeout)
	defer cancel()
	asks := false
	for _, target := range w.Edits {
		if target.Create != nil {
			if len(w.Edits) > 1 {
				return Outcome{}, false, nil
			}
			made := p.madeBefore(ctx, target)
			return Outcome{Version: made}, made != nil, nil
		}
		found, base, err := p.findTarget(ctx, &edition{work: w, Target: target})
		switch {
		case err != nil && moorage.KindOf(err).Final():
			return Outcome{}, false, nil
		case err != nil:
			return Outcome{}, false, moorage.E("commit.effectOf", target.Ident.String(), moorage.KindUnavailable, err)
		case !target.Edit.Replays(base):
			return Outcome{}, false, nil
		}
		asks = asks || target.Edit.Asks()
		outcome = Outcome{Version: VersionOf(found, target.Ident, base)}
	}
	if w.Silent {
		outcome = Outcome{}
	}
	return outcome, asks, nil
}

// ledgerKey returns the key of caller's request in the form that records use.
func (p *Pipeline) ledgerKey(caller moorage.Caller, key Key) *ledger.Key {
	now, lifetime := p.now(), p.idempotencyLifetime
	if key.Internal {
		lifetime = min(lifetime, internalKeyLifetime)
	}
	return &ledger.Key{
		Record: registry.IdempotencyKey(hashOf(caller.Name, key.Warehouse, key.ID)),
		Request: registry.Idempotency{
			Method:  key.Method,
			Path:    moorage.Cut(key.Path, keyPathBytesMax),
			Request: hashOf(key.Method, key.Path, string(key.Body[:])),
			Created: now,
			Life:    lifetime + KeyGrace,
		},
	}
}

// hashOf returns a hash that distinguishes lists of texts. The length before each text
// distinguishes "a","bc" from "ab","c".
func hashOf(texts ...string) registry.Hash {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	return sha256.Sum256(all)
}

// unlessAnswered returns outcome, the result of a staged create, which is not stored. If there was
// an earlier attempt, it returns the answer of that attempt. If the lookup fails, it returns
// outcome. That is safe: no attempt of a staged create changes anything.
func (p *Pipeline) unlessAnswered(ctx context.Context, key *ledger.Key, outcome Outcome) (Outcome, error) {
	earlier, found, err := p.lookUp(ctx, key)
	if found || err != nil {
		return earlier, err
	}
	return outcome, nil
}

// conclude stores the outcome of w, which changed nothing, and returns it. If there was an earlier
// attempt, it returns the answer of that attempt. A refusal is returned only after it is stored,
// because another attempt could still succeed.
func (p *Pipeline) conclude(ctx context.Context, w *work, outcome Outcome, refusal error) (Outcome, error) {
	const op = "commit.conclude"
	answer := outcome.record()
	if refusal != nil {
		message := moorage.Cut(moorage.MessageOf(refusal), keyMessageBytesMax)
		answer.Failure = &registry.Failure{Kind: moorage.KindOf(refusal), Message: message}
	}
	ctx, looking, cancel := p.detachedLook(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := p.ledger.Answer(ctx, w.key, answer)
		switch {
		case err == nil:
			return outcome, refusal
		case refusal == nil && moorage.KindOf(err) == moorage.KindTooLarge:
			// The success had no effect, so it can still become a refusal.
			return p.conclude(ctx, w, Outcome{}, err)
		}
		earlier, found, lookErr := p.lookUp(ctx, w.key)
		_, failed := registry.FailedCondition(err)
		switch {
		case found:
			return earlier, lookErr
		case lookErr == nil && !failed && !errors.Is(err, registry.ErrUnknown):
			return Outcome{}, ledger.StoreError(op, err)
		case lookErr != nil && p.ledger.StopsLooking(looking, attempt, lookErr):
			return Outcome{}, p.outcomeUnknown(ctx, w.key, errors.Join(err, lookErr))
		case lookErr == nil && p.ledger.Pause(looking, attempt) != nil:
			return Outcome{}, moorage.E(op, w.key.Record.ID, moorage.KindUnavailable, err)
		}
	}
}

// afterFailure returns the answer of an earlier attempt with key. If there was no earlier attempt,
// it returns failure.
func (p *Pipeline) afterFailure(ctx context.Context, key *ledger.Key, failure error) (Outcome, error) {
	ctx, looking, cancel := p.detachedLook(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		outcome, found, err := p.lookUp(ctx, key)
		switch {
		case found:
			return outcome, err
		case err == nil && !errors.Is(failure, ledger.ErrAnswered):
			return Outcome{}, failure
		case err == nil, // the outcome has just expired
			p.ledger.StopsLooking(looking, attempt, err):
			return Outcome{}, p.outcomeUnknown(ctx, key, errors.Join(failure, err))
		}
	}
}

// detachedLook returns two contexts for reading the outcome of a mutation from the store. asking is
// for the reads; the caller starts no further read once looking has ended.
func (p *Pipeline) detachedLook(ctx context.Context) (asking, looking context.Context, cancel func()) {
	asking, endAsking := moorage.Detached(ctx, SettleTimeout)
	looking, endLooking := context.WithTimeout(asking, p.ledger.SettleTimeout)
	return asking, looking, func() { endLooking(); endAsking() }
}

// outcomeUnknown returns the error for an attempt that changed nothing if an earlier attempt with
// the same key may have succeeded. The error must not look like a refusal: the client would delete
// the files of a successful commit. It must not look like a request to retry either.
func (p *Pipeline) outcomeUnknown(ctx context.Context, key *ledger.Key, cause error) error {
	p.log.ErrorContext(ctx, "the outcome of a change with an Idempotency-Key cannot be read",
		"key", key.Record.ID, "method", key.Request.Method, "path", key.Request.Path, "error", cause)
	return &moorage.Error{Op: "commit.outcomeUnknown", Ident: key.Record.ID, Kind: moorage.KindCommitUnknown,
		Message: "The outcome of the requests with this Idempotency-Key is unknown", Err: cause}
}

// lookUp returns the outcome of an attempt with key. found is true if there is an outcome. If found
// is false and err is not nil, the lookup failed.
func (p *Pipeline) lookUp(ctx context.Context, key *ledger.Key) (outcome Outcome, found bool, err error) {
	records, err := p.ledger.Get(ctx, key.Record)
	if err != nil || !records[0].Exists() {
		return Outcome{}, false, err
	}
	if err := p.ledger.Confirm(ctx, records[0]); err != nil {
		return Outcome{}, false, ledger.StoreError("commit.lookUp", err)
	}
	value, err := ledger.Decode[registry.Idempotency](records[0])
	switch {
	case err != nil:
		return Outcome{}, true, p.outcomeUnknown(ctx, key, err)
	case value.Request != key.Request.Request:
		return Outcome{}, true, moorage.Errorf(moorage.KindUnprocessable,
			"The Idempotency-Key was used for another request: %s %s", value.Method, value.Path)
	}
	outcome, err = p.answerAgain(ctx, value.Outcome)
	outcome.IsStored = true
	if err != nil && value.Outcome.Failure == nil && !isGone(err) {
		err = p.outcomeUnknown(ctx, key, err) // it happened
	}
	return outcome, true, err
}

// refusalsMax is the maximum number of refusals of one caller that a node stores under keys in a
// minute. Each refusal is a record that lives for half an hour. Many writers that share one caller
// name and lose races cause a few thousand refusals a minute.
const refusalsMax = 6000

// refusals counts the refusals that were stored in the present minute. It is safe for concurrent
// use.
type refusals struct {
	mu     sync.Mutex // guards the fields below; no lock is taken under it
	minute time.Time
	of     map[string]int // by caller name
}

// admit reports whether one more refusal of a caller may be stored at the time now.
func (r *refusals) admit(caller string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(r.minute) {
		r.minute, r.of = minute, make(map[string]int)
	}
	if r.of[caller] >= refusalsMax {
		return false
	}
	r.of[caller]++
	return true
}

// concludeRefused stores the refusal of w, if the warehouse is visible to the caller. For other
// callers it stores nothing: they could fill the store, and they do not need the outcome of their
// key.
func (p *Pipeline) concludeRefused(ctx context.Context, w *work, refusal error) (Outcome, error) {
	isIn, err := p.directory.Sees(ctx, w.asker(), w.Key.Warehouse)
	switch {
	case err != nil:
		return Outcome{}, err
	case !isIn:
		return p.afterFailure(ctx, w.key, refusal)
	case !p.refusals.admit(w.Caller.Name, p.now()):
		return p.afterFailure(ctx, w.key, moorage.Errorf(moorage.KindTooManyRequests,
			"Over %d requests with an Idempotency-Key were refused within a minute; try again later", refusalsMax))
	}
	return p.conclude(ctx, w, Outcome{}, refusal)
}

// inflight holds the mutations with keys that are in progress on this node. An attempt waits for an
// earlier attempt with its key, only to save work: correctness does not depend on the wait.
// inflight is safe for concurrent use.
type inflight struct {
	mu       sync.Mutex // guards underWay; no lock is taken under it
	underWay map[registry.Key]chan struct{}
}

func newInflight() *inflight { return &inflight{underWay: make(map[registry.Key]chan struct{})} }

// begin registers a mutation with this key and returns the function that ends it. If a mutation
// with the key is already in progress, begin instead returns a channel that is closed when that
// mutation ends.
func (i *inflight) begin(key registry.Key) (end func(), other <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ended, ok := i.underWay[key]; ok {
		return nil, ended
	}
	ended := make(chan struct{})
	i.underWay[key] = ended
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.underWay, key)
		close(ended)
	}, nil
}
