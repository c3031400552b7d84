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
	// keyGrace is how much longer than its lifetime a key is honoured. Clocks differ, and a request
	// takes time.
	keyGrace = 5 * time.Minute
	// keyPathBytesMax bounds what a record keeps of a request's path, which is for people who read
	// the record. keyMessageBytesMax bounds what it keeps of the message of a refusal. Clients get
	// less than that of a message.
	keyPathBytesMax    = 1 << 10
	keyMessageBytesMax = 4 << 10
)

// Key makes a mutation happen once, however often it is sent, and to whichever node. It stands for
// a request of the principal of the context. Method, Path and Body distinguish that request from
// others.
type Key struct {
	ID        string // as the client drew it, in one spelling
	Warehouse string
	Method    string
	Path      string   // with the query
	Body      [32]byte // SHA-256
}

// Outcome is what a mutation answers. At most one member is set, and none if there is nothing to
// answer.
type Outcome struct {
	Table      *Table
	View       *View
	Properties map[string]string // of a new namespace, not nil
	Changed    *PropertiesResult
}

// Once calls mutate, which calls one mutation of the Catalog that it gets. If an attempt with the
// same key has ended before, this one changes nothing, and Once answers what the earlier one was
// answered. Only a table or view may be in a newer state.
//
// The Apply that makes the mutation true also writes its outcome. Before all its other conditions,
// that Apply requires that there is no outcome yet. A mutation without an effect writes its outcome
// on the same condition, before Once answers it. That is one that was refused for good (see
// moorage.Kind.Final), or that succeeded and had nothing to change.
//
// So of several concurrent attempts, on whichever nodes, one decides, and all others answer as it
// did. An attempt that hung while its retry was refused can no longer happen. Once reads nothing
// before the mutation: a read would cost each mutation a round trip. A repeated mutation runs,
// fails or loses, and Once answers it from the record.
//
// Other failures leave nothing behind and may be repeated with the same key. A staged create has no
// effect and leaves nothing behind either.
//
// Errors: those of mutate. KindUnprocessable if the key was used for another request.
// KindUnavailable if the outcome cannot be written and no earlier attempt has one.
// KindCommitUnknown if the store cannot say whether there is one, or if a success cannot be
// answered again. Durable when it returns.
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
			err = c.outcomeUnknown(ctx, work, err)
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

// staged reports whether o is a table that was not stored.
func (o Outcome) staged() bool { return o.Table != nil && o.Table.MetadataLocation == "" }

// record returns what is kept of o.
func (o Outcome) record() registry.Outcome {
	switch {
	case o.Table != nil:
		return registry.Outcome{Table: &registry.TableVersion{
			Ident: o.Table.Identifier, Pointer: o.Table.pointer, TableUUID: o.Table.Document.UUID(),
			MetadataLocation: o.Table.MetadataLocation, Registration: o.Table.Registration,
		}}
	case o.View != nil:
		return registry.Outcome{View: &registry.TableVersion{
			Ident: o.View.Identifier, Pointer: o.View.pointer, TableUUID: o.View.Document.UUID(),
			MetadataLocation: o.View.MetadataLocation,
		}}
	case o.Changed != nil:
		changed := registry.ChangedProperties(*o.Changed)
		return registry.Outcome{Changed: &changed}
	}
	return registry.Outcome{Properties: o.Properties}
}

// keyed is one attempt of a mutation that was sent with a key. The Catalog that the verb is called
// on has it.
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

// hashOf returns a hash that distinguishes lists of texts. The length before each text keeps
// "a","bc" from "ab","c".
func hashOf(texts ...string) registry.Hash {
	var all []byte
	for _, text := range texts {
		all = binary.AppendUvarint(all, uint64(len(text)))
		all = append(all, text...)
	}
	return sha256.Sum256(all)
}

// apply makes a mutation true. If a client sent it with a key, the same Apply writes answer as the
// key's outcome (see Once). Steps on the way to the effect, and the catalog's own work, go to the
// ledger directly. The results are those of Ledger.Apply.
func (c *Catalog) apply(ctx context.Context, change registry.Change, batch registry.Batch,
	answer Outcome) ([]registry.ETag, error) {
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

// replayableUntil returns until when a version of a table may have to be answered again, if a
// mutation of c makes that version. kept is until when another version of the table may; the later
// of the two counts.
func (c *Catalog) replayableUntil(kept time.Time) time.Time {
	if work := c.key; work != nil && !work.silent && work.Request.Expires.After(kept) {
		return work.Request.Expires
	}
	return kept
}

// unlessAnswered returns outcome, the result of a staged create, which is stored nowhere. If there
// was an earlier attempt, it returns what became of that one. If the lookup fails, nothing has
// happened either: no attempt of a staged create changes anything.
func (c *Catalog) unlessAnswered(ctx context.Context, work *keyed, outcome Outcome) (Outcome, error) {
	earlier, found, err := c.lookUp(ctx, work)
	if found || err != nil {
		return earlier, err
	}
	return outcome, nil
}

// conclude stores how work ended, which changed nothing, and returns that. If there was an earlier
// attempt, it returns what became of that one. A refusal is answered only once it is stored,
// because another attempt could still succeed.
func (c *Catalog) conclude(ctx context.Context, work *keyed, outcome Outcome, refusal error) (Outcome, error) {
	const op = "catalog.conclude"
	answer := outcome.record()
	if refusal != nil {
		message := moorage.Cut(moorage.MessageOf(refusal), keyMessageBytesMax)
		answer.Failure = &registry.Failure{Kind: moorage.KindOf(refusal), Message: message}
	}
	ctx, looking, cancel := c.detachedLook(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := c.ledger.Answer(ctx, &work.Key, answer)
		switch {
		case err == nil:
			return outcome, refusal
		case refusal == nil && moorage.KindOf(err) == moorage.KindTooLarge:
			// The success had no effect, so it can be refused.
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
			return Outcome{}, c.outcomeUnknown(ctx, work, errors.Join(err, lookErr))
		case lookErr == nil && c.ledger.Pause(looking, attempt) != nil:
			return Outcome{}, moorage.E(op, work.Record.ID, moorage.KindUnavailable, err)
		}
	}
}

// afterFailure returns what became of an earlier attempt of work. If there was none, it returns
// failure.
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
			return Outcome{}, c.outcomeUnknown(ctx, work, errors.Join(failure, err))
		}
	}
}

// detachedLook returns two contexts. The caller asks the store in asking what became of a mutation,
// and does not ask again once looking has ended.
func (c *Catalog) detachedLook(ctx context.Context) (asking, looking context.Context, cancel func()) {
	asking, endAsking := moorage.Detached(ctx, settleTimeout)
	looking, endLooking := context.WithTimeout(asking, c.ledger.SettleTimeout)
	return asking, looking, func() { endLooking(); endAsking() }
}

// outcomeUnknown returns the error of an attempt that changed nothing, although an earlier one with
// the same key may have succeeded. It must not look like a refusal: the client would delete the
// files of a commit that happened. It must not look like a request to retry either.
func (c *Catalog) outcomeUnknown(ctx context.Context, work *keyed, cause error) error {
	c.log.ErrorContext(ctx, "what became of a mutation with a key cannot be told",
		"key", work.Record.ID, "method", work.Request.Method, "path", work.Request.Path, "error", cause)
	return &moorage.Error{Op: "catalog.outcomeUnknown", Ident: work.Record.ID, Kind: moorage.KindCommitUnknown,
		Message: "Cannot tell what became of the requests with this Idempotency-Key", Err: cause}
}

// lookUp returns how an attempt of work ended. found reports whether one has. An error without
// found says that the lookup failed.
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
		return Outcome{}, true, c.outcomeUnknown(ctx, work, err)
	case value.Request != work.Request.Request:
		return Outcome{}, true, moorage.Errorf(moorage.KindUnprocessable,
			"The Idempotency-Key was used for another request: %s %s", value.Method, value.Path)
	}
	outcome, err = c.answerAgain(ctx, value.Outcome)
	if err != nil && value.Outcome.Failure == nil && !isGone(err) {
		err = c.outcomeUnknown(ctx, work, err) // it happened
	}
	return outcome, true, err
}

// isGone reports whether err, for which a success could not be answered again, says that nothing is
// left of what it was about. A file that this node does not see is no proof of that. The table may
// be there, and a client that hears that its commit failed deletes what it wrote for it.
func isGone(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchWarehouse, moorage.KindNoSuchTable, moorage.KindNoSuchView:
		return true
	}
	return false
}

// answerAgain returns the answer of a mutation that stored keeps.
func (c *Catalog) answerAgain(ctx context.Context, stored registry.Outcome) (Outcome, error) {
	switch {
	case stored.Failure != nil:
		failure := stored.Failure
		return Outcome{}, &moorage.Error{Op: "catalog.answerAgain", Kind: failure.Kind, Message: failure.Message}
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

// versionAgain returns a version of a table or view that was answered before. A trim after later
// commits, or an engine, may have deleted its file. Then versionAgain returns the present version,
// also of what was dropped meanwhile: a purge waits until nobody may ask any more (see
// registry.Pointer). The warehouse may be gone too, or another one may have its name.
func (c *Catalog) versionAgain(ctx context.Context, k *kind,
	answered registry.TableVersion) (present *version, err error) {
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
func (c *Catalog) versionAt(ctx context.Context, k *kind, answered registry.TableVersion,
	store storage.Store) (*version, error) {
	edition := documents.FileVersion(answered.MetadataLocation, answered.Registration)
	document, err := c.documents.Of(ctx, documents.Ref{
		Kind: k.Kind, Warehouse: answered.Ident.Warehouse, Pointer: answered.Pointer, UUID: answered.TableUUID,
		Storage: store, Location: answered.MetadataLocation, Version: edition,
	})
	if err != nil {
		return nil, err
	}
	return &version{
		answered.Ident, answered.Pointer, answered.MetadataLocation, document, store, answered.Registration,
	}, nil
}

// isElsewhere reports whether err says that a file is not where it was looked for. It may be in
// another storage, or gone.
func isElsewhere(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindNoSuchWarehouse:
		return true
	}
	return errors.Is(err, storage.ErrOutside)
}

// presentVersion returns the version that answered names, if that is in the storage that reaches
// the table now. Else it returns the present version of the table, whatever its name is now.
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

// twins are the mutations with keys that are under way on this node. An attempt that waits for
// another one with its key saves work. The wait protects nothing. It is safe for concurrent use.
type twins struct {
	mu       sync.Mutex // guards underWay; a leaf
	underWay map[registry.Key]chan struct{}
}

func newTwins() *twins { return &twins{underWay: make(map[registry.Key]chan struct{})} }

// begin says that a mutation with this key begins, and returns the function that ends it. If one is
// under way, begin returns a channel instead, which is closed when that one has ended.
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
