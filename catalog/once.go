package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"moorage"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

const (
	// keyGrace is how much longer than its lifetime a key is honoured: clocks differ, and a request takes time.
	keyGrace = 5 * time.Minute
	// keyPathBytesMax and keyMessageBytesMax bound what is kept of a request's path, for whoever reads the record,
	// and of the message of a refusal, of which no client gets that much.
	keyPathBytesMax    = 1 << 10
	keyMessageBytesMax = 4 << 10
)

// Key makes a mutation happen once, however often and on whichever node it is sent. It stands for a request of the
// principal of the context; the members beside ID and Warehouse tell that request from others.
type Key struct {
	ID        string // as the client drew it, in one spelling
	Warehouse string
	Method    string
	Path      string   // with the query
	Body      [32]byte // SHA-256
}

// Outcome is what a mutation answers, as far as it has something to answer: at most one member is set.
type Outcome struct {
	Table      *Table
	View       *View
	Properties map[string]string // of a new namespace, not nil
	Changed    *PropertiesResult
}

// Once calls mutate, which calls one mutation of the Catalog that it gets, unless an attempt with
// the same key has ended before; then it answers what that was answered, except that a table or view may be in a newer state.
//
// The outcome is written in the Apply that makes the mutation true, which requires that there is none yet; that comes before
// everything else that it requires. A mutation that was refused for good (see moorage.Kind.Final), or that succeeded and had
// nothing to change, writes its outcome, on the same condition, before it is answered. So of attempts that run at the
// same time, on whichever nodes, one decides, and all others answer as it did: one that hung while its retry was
// refused cannot come true any more. Nothing is read before the mutation, which would cost each a round trip: one that is
// repeated runs, fails or loses, and is answered from the record. Other failures leave nothing behind, and may be
// repeated with the same key. Neither does a staged create, which has no effect.
//
// Errors: those of mutate; KindUnprocessable if the key was used for another request; KindUnavailable if the outcome cannot
// be written, and there is none of an earlier attempt; KindCommitUnknown if it cannot be told whether there is, or if a success
// cannot be answered again. Durable when it returns.
// Source: REST specification, Idempotency-Key.
func (c *Catalog) Once(ctx context.Context, key Key,
	mutate func(ctx context.Context, keyed Verbs) (Outcome, error)) (Outcome, error) {
	return c.once(ctx, key, func(ctx context.Context, keyed *Catalog) (Outcome, error) { return mutate(ctx, keyed) })
}

// once is Once.
func (c *Catalog) once(ctx context.Context, key Key,
	mutate func(ctx context.Context, keyed *Catalog) (Outcome, error)) (Outcome, error) {
	const op = "catalog.once"
	work := c.newKeyed(ctx, key)
	for {
		end, twin := c.twins.begin(work.Record)
		if twin == nil {
			defer end()
			break
		}
		select {
		case <-twin:
		case <-ctx.Done():
			return Outcome{}, moorage.E(op, key.ID, moorage.KindUnavailable, ctx.Err())
		}
		outcome, found, err := c.lookUp(ctx, work)
		if err != nil && !found {
			err = c.untold(ctx, work, err)
		}
		if found || err != nil {
			return outcome, moorage.Annotate(op, key.ID, err)
		}
	}
	outcome, err := mutate(ctx, &Catalog{c.service, work})
	switch {
	case err == nil && work.applied:
		return outcome, nil
	case err == nil && outcome.staged():
		return c.unlessAnswered(ctx, work, outcome)
	case err == nil:
		return c.conclude(ctx, work, outcome, nil)
	case moorage.KindOf(err).Final():
		return c.conclude(ctx, work, Outcome{}, err)
	}
	return c.afterFailure(ctx, work, err)
}

// staged tells whether o is a table that was not stored.
func (o Outcome) staged() bool { return o.Table != nil && o.Table.MetadataLocation == "" }

// record returns what is kept of o.
func (o Outcome) record() registry.Outcome {
	switch {
	case o.Table != nil:
		return registry.Outcome{Table: &registry.TableVersion{
			Ident: o.Table.Identifier, Pointer: o.Table.pointer, TableUUID: o.Table.Document.UUID(), MetadataLocation: o.Table.MetadataLocation,
			Registration: o.Table.Registration,
		}}
	case o.View != nil:
		return registry.Outcome{View: &registry.TableVersion{
			Ident: o.View.Identifier, Pointer: o.View.pointer, TableUUID: o.View.Document.UUID(), MetadataLocation: o.View.MetadataLocation,
		}}
	case o.Changed != nil:
		changed := registry.ChangedProperties(*o.Changed)
		return registry.Outcome{Changed: &changed}
	}
	return registry.Outcome{Properties: o.Properties}
}

// keyed is one attempt of a mutation that was sent with a key. The Catalog that the verb is called on has it.
type keyed struct {
	ledger.Key
	silent  bool // what the mutation returns is not answered
	applied bool // the mutation happened, and the outcome is stored
}

func (c *Catalog) newKeyed(ctx context.Context, key Key) *keyed {
	now := c.now()
	return &keyed{Key: ledger.Key{
		Record: registry.IdempotencyKey(hashOf(moorage.Principal(ctx), key.Warehouse, key.ID)),
		Request: registry.Idempotency{
			Method:  key.Method,
			Path:    moorage.Cut(key.Path, keyPathBytesMax),
			Request: hashOf(key.Method, key.Path, string(key.Body[:])),
			Created: now,
			Expires: now.Add(c.keyLifetime + keyGrace),
		},
	}}
}

// hashOf tells lists of texts apart; the length before each keeps "a","bc" from "ab","c".
func hashOf(texts ...string) registry.Hash {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	return sha256.Sum256(all)
}

// apply makes a mutation true, which answers answer. If it was sent with a key, the key gets its
// outcome in the same Apply (see Once). Steps on the way to the effect, and work of the catalog's own,
// go to the ledger. The results are those of Ledger.Apply.
func (c *Catalog) apply(ctx context.Context, change registry.Change, batch registry.Batch, answer Outcome) ([]registry.ETag, error) {
	mutation := ledger.Mutation{Change: change, Conditions: batch.Conditions, Writes: batch.Writes}
	work := c.key
	if work == nil {
		return c.ledger.Apply(ctx, mutation)
	}
	mutation.Key = &work.Key
	if !work.silent {
		mutation.Answer = answer.record()
	}
	etags, err := c.ledger.Apply(ctx, mutation)
	work.applied = work.applied || err == nil
	return etags, err
}

// replayableUntil returns until when a version of a table may have to be answered again that a mutation of c makes;
// kept is until when another one may.
func (c *Catalog) replayableUntil(kept time.Time) time.Time {
	if work := c.key; work != nil && !work.silent && work.Request.Expires.After(kept) {
		return work.Request.Expires
	}
	return kept
}

// unlessAnswered returns outcome, that of a staged create, which is stored nowhere; or what became of an earlier attempt, if there was one. If
// that cannot be looked for nothing has happened all the same: no attempt of a staged create changes anything.
func (c *Catalog) unlessAnswered(ctx context.Context, work *keyed, outcome Outcome) (Outcome, error) {
	earlier, found, err := c.lookUp(ctx, work)
	if found || err != nil {
		return earlier, err
	}
	return outcome, nil
}

// conclude stores how work ended, which changed nothing, and returns that; or what became of an earlier attempt, if there
// was one. A refusal is told only once it is stored, because another attempt could still come true.
func (c *Catalog) conclude(ctx context.Context, work *keyed, outcome Outcome, refusal error) (Outcome, error) {
	const op = "catalog.conclude"
	answer := outcome.record()
	if refusal != nil {
		answer.Failure = &registry.Failure{Kind: moorage.KindOf(refusal), Message: moorage.Cut(moorage.MessageOf(refusal), keyMessageBytesMax)}
	}
	ctx, looking, cancel := c.detachedLook(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := c.ledger.Answer(ctx, &work.Key, answer)
		switch {
		case err == nil:
			return outcome, refusal
		case refusal == nil && moorage.KindOf(err) == moorage.KindTooLarge: // the success had no effect, so it can be refused
			return c.conclude(ctx, work, Outcome{}, err)
		}
		earlier, found, lookErr := c.lookUp(ctx, work)
		_, failed := registry.FailedCondition(err)
		switch {
		case found:
			return earlier, lookErr
		case lookErr == nil && !failed && !errors.Is(err, registry.ErrUnknown):
			return Outcome{}, ledger.StoreError(op, err)
		case lookErr != nil && c.ledger.StopsLooking(looking, attempt, lookErr):
			return Outcome{}, c.untold(ctx, work, errors.Join(err, lookErr))
		case lookErr == nil && c.ledger.Pause(looking, attempt) != nil:
			return Outcome{}, moorage.E(op, work.Record.ID, moorage.KindUnavailable, err)
		}
	}
}

// afterFailure returns what became of an earlier attempt of work, if there was one, else failure.
func (c *Catalog) afterFailure(ctx context.Context, work *keyed, failure error) (Outcome, error) {
	ctx, looking, cancel := c.detachedLook(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		outcome, found, err := c.lookUp(ctx, work)
		switch {
		case found:
			return outcome, err
		case err == nil && !errors.Is(failure, ledger.ErrAnswered):
			return Outcome{}, failure
		case err == nil || c.ledger.StopsLooking(looking, attempt, err): // without an error it has expired just now
			return Outcome{}, c.untold(ctx, work, errors.Join(failure, err))
		}
	}
}

// detachedLook returns a context in which to ask the store what became of a mutation, and one that ends when it is not to be asked
// again.
func (c *Catalog) detachedLook(ctx context.Context) (asking, looking context.Context, cancel func()) {
	asking, endAsking := moorage.Detached(ctx, settleTimeout)
	looking, endLooking := context.WithTimeout(asking, c.ledger.SettleTimeout)
	return asking, looking, func() { endLooking(); endAsking() }
}

// untold is the answer to an attempt that changed nothing, when an earlier one may have, or has. It is no refusal and does not ask
// for the attempt to be repeated: a client that takes it for the end would delete the files of a commit that happened.
func (c *Catalog) untold(ctx context.Context, work *keyed, cause error) error {
	c.log.ErrorContext(ctx, "what became of a mutation with a key cannot be told", "key", work.Record.ID, "method", work.Request.Method, "path", work.Request.Path, "error", cause)
	return &moorage.Error{Op: "catalog.untold", Ident: work.Record.ID, Kind: moorage.KindCommitUnknown,
		Message: "Cannot tell what became of the requests with this Idempotency-Key", Err: cause}
}

// lookUp returns how an attempt of work ended; found tells whether one has. An error that was not found says that it could
// not be looked.
func (c *Catalog) lookUp(ctx context.Context, work *keyed) (outcome Outcome, found bool, err error) {
	records, err := c.ledger.Get(ctx, work.Record)
	if err != nil || !records[0].Exists() {
		return Outcome{}, false, err
	}
	if err := c.ledger.Confirm(ctx, records[0]); err != nil {
		return Outcome{}, false, ledger.StoreError("catalog.lookUp", err)
	}
	value, err := ledger.Decode[registry.Idempotency](records[0])
	switch {
	case err != nil:
		return Outcome{}, true, c.untold(ctx, work, err)
	case value.Request != work.Request.Request:
		return Outcome{}, true, moorage.Errorf(moorage.KindUnprocessable, "The Idempotency-Key was used for another request: %s %s", value.Method, value.Path)
	}
	outcome, err = c.answerAgain(ctx, value.Outcome)
	if err != nil && value.Outcome.Failure == nil && !isGone(err) {
		err = c.untold(ctx, work, err) // it happened
	}
	return outcome, true, err
}

// isGone tells whether err, with which a success could not be answered again, says that nothing is left of what it was about. That this node
// does not see a file does not: the table may be there, and a client that hears that its commit failed deletes what it wrote for it.
func isGone(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchWarehouse, moorage.KindNoSuchTable, moorage.KindNoSuchView:
		return true
	}
	return false
}

// answerAgain returns what stored says that a mutation was answered.
func (c *Catalog) answerAgain(ctx context.Context, stored registry.Outcome) (Outcome, error) {
	switch {
	case stored.Failure != nil:
		return Outcome{}, &moorage.Error{Op: "catalog.answerAgain", Kind: stored.Failure.Kind, Message: stored.Failure.Message}
	case stored.Table != nil:
		again, err := c.versionAgain(ctx, aTable, *stored.Table)
		return Outcome{Table: again.table()}, err
	case stored.View != nil:
		again, err := c.versionAgain(ctx, aView, *stored.View)
		return Outcome{View: again.view()}, err
	case stored.Changed != nil:
		changed := PropertiesResult(*stored.Changed)
		return Outcome{Changed: &changed}, nil
	}
	return Outcome{Properties: stored.Properties}, nil
}

// versionAgain returns a version of a table or view that was answered before. Its file may be gone: trimmed after later commits, or
// deleted by an engine. Then the present version is answered, also of what was dropped meanwhile: its purge waits until nobody may
// ask any more (see registry.Pointer). The warehouse may be gone too, or another one have its name.
func (c *Catalog) versionAgain(ctx context.Context, k *kind, answered registry.TableVersion) (present *version, err error) {
	ch, err := c.directory.Path(ctx, answered.Ident.Warehouse, nil)
	if err == nil {
		present, err = c.versionAt(ctx, k, answered, ch.Storage)
	}
	if err == nil || !isElsewhere(err) {
		return present, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		present, err = c.presentVersion(ctx, k, answered)
		return err
	})
	return present, err
}

// versionAt returns a version that was answered before, from store.
func (c *Catalog) versionAt(ctx context.Context, k *kind, answered registry.TableVersion, store storage.Store) (*version, error) {
	edition := documents.FileVersion(answered.MetadataLocation, answered.Registration)
	document, err := c.documents.Of(ctx, documents.Ref{
		Kind: k.Kind, Warehouse: answered.Ident.Warehouse, Pointer: answered.Pointer, UUID: answered.TableUUID,
		Storage: store, Location: answered.MetadataLocation, Version: edition,
	})
	if err != nil {
		return nil, err
	}
	return &version{answered.Ident, answered.Pointer, answered.MetadataLocation, document, store, answered.Registration}, nil
}

// isElsewhere reports whether err says that a file is not where it was looked for, so that it may be in another storage, or gone.
func isElsewhere(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindNoSuchWarehouse:
		return true
	}
	return errors.Is(err, storage.ErrOutside)
}

// presentVersion returns the version that answered is, if it is in the storage that reaches the table now, or else the present
// version of the table, whatever that is called now.
func (c *Catalog) presentVersion(ctx context.Context, k *kind, answered registry.TableVersion) (*version, error) {
	records, err := c.ledger.Get(ctx, registry.PointerKey(answered.Pointer))
	if err != nil {
		return nil, err
	}
	if !records[0].Exists() {
		return nil, k.NoSuch(answered.Ident)
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return nil, err
	}
	store, giveBack, err := c.directory.StorageOf(ctx, pointer, records[0].State)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	if found, err := c.versionAt(ctx, k, answered, store); err == nil || !isElsewhere(err) {
		return found, err
	}
	document, err := c.documents.Of(ctx, documents.RefOf(pointer, store))
	if moorage.KindOf(err) == moorage.KindNotFound {
		if now, readErr := c.ledger.Get(ctx, records[0].Key); readErr != nil || now[0].ETag != records[0].ETag {
			return nil, cmp.Or(readErr, ledger.ErrRetry) // trimmed since the pointer was read
		}
		if records[0].State == registry.StatePurging {
			return nil, k.NoSuch(answered.Ident)
		}
	}
	if err != nil {
		return nil, err
	}
	return &version{answered.Ident, pointer.ID, pointer.MetadataLocation, document, store, pointer.Registration}, nil
}

// twins are the mutations with keys that are under way on this node. That one waits for another with the same
// key spares it work, and protects nothing. It is safe for concurrent use.
type twins struct {
	mu       sync.Mutex // guards underWay; a leaf
	underWay map[registry.Key]chan struct{}
}

func newTwins() *twins { return &twins{underWay: make(map[registry.Key]chan struct{})} }

// begin says that a mutation with this key begins, and returns what says that it has ended; or, if one is under
// way, a channel that is closed when that has ended.
func (t *twins) begin(key registry.Key) (end func(), twin <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ended, ok := t.underWay[key]; ok {
		return nil, ended
	}
	ended := make(chan struct{})
	t.underWay[key] = ended
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.underWay, key)
		close(ended)
	}, nil
}
