package catalog

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// racesMax is how many times a commit may lose the compare-and-set to other nodes. Then it takes
// the pointer's lock, for one try.
const racesMax = 3

// Commit changes one table, or makes one if its requirements say so (assert-create):
//
//	resolve → check → build → write → apply
//
// Commit reads the pointer and checks the requirements against the document that it names. The
// updates make a new document, and Commit writes its file under a name never used before. One Apply
// moves the pointer from the version that was read. If only the pointer's version changed
// meanwhile, Commit does all of it again, requirements included, until the request's deadline.
//
// So a commit whose requirements hold is not refused because others were faster. A requirement that
// fails is refused at once, before anything is written.
//
// Commit takes no lock: the condition of the Apply alone makes it correct. Commits to one table on
// one node take turns, which only saves them from losing races against each other.
//
// Updates that change nothing write nothing, and answer the current version.
//
// Errors: KindNoSuchTable; KindCommitFailed if a requirement fails, or at the deadline (nothing was
// applied); KindBadRequest, KindIllegalArgument, KindValidation for updates that can never succeed;
// KindUnavailable (nothing was applied); KindCommitUnknown (it may have been). Durable when it
// returns. Source: REST specification, updateTable.
func (c *Catalog) Commit(ctx context.Context, ident moorage.Identifier, request CommitRequest) (*Table, error) {
	committed, err := c.commitTable(ctx, ident, []metadata.Step{request.step()})
	return committed.table(), moorage.Annotate("catalog.Commit", ident.String(), err)
}

// commitTable is Commit of several changes of one table. They make one version, in order.
func (c *Catalog) commitTable(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (*version, error) {
	create, err := metadata.IsCreate(steps[0].Requirements)
	switch {
	case err != nil:
		return nil, err
	case create:
		return c.commitCreate(ctx, ident, steps)
	}
	return c.commit(ctx, c.newCommit(aTable, ident, &tableEdit{steps}))
}

// edit is what a commit asks of a table or view.
type edit interface {
	// check checks what is required of the present version, before any update.
	check(base document) error
	// next returns base after the updates, or base itself if they change nothing. It checks all
	// requirements on the way.
	next(base document, env metadata.Env) (document, error)
	// replays reports whether the edit changes something, and base shows that it has happened
	// before.
	replays(base document) bool
	// pins reports whether the requirements name the uuid.
	pins() bool
}

// tableEdit is the edit of a table.
type tableEdit struct{ steps []metadata.Step } // not empty

func (e *tableEdit) check(base document) error {
	return metadata.Check(base.(*metadata.Document), e.steps[0].Requirements)
}

func (e *tableEdit) next(base document, env metadata.Env) (document, error) {
	return metadata.ApplySteps(base.(*metadata.Document), e.steps, env)
}

// replays reports whether the edit has updates and base shows all of them, snapshots among them:
// see metadata.Document.IsReplay. Then the answer to an earlier attempt was lost. The requirements
// held before that attempt, and need not hold now.
func (e *tableEdit) replays(base document) bool {
	asks := false
	for _, step := range e.steps {
		asks = asks || len(step.Updates) > 0
		if !base.(*metadata.Document).IsReplay(step.Updates) {
			return false
		}
	}
	return asks
}

func (e *tableEdit) pins() bool {
	return slices.ContainsFunc(e.steps, func(step metadata.Step) bool {
		return metadata.AssertsUUID(step.Requirements)
	})
}

// commit is one commit under way, of one table or view.
type commit struct {
	kind  *kind
	ident moorage.Identifier
	edit  edit
	// pinned says that the requirements name the uuid. Then the commit follows its pointer, even
	// through a rename; otherwise it follows the name.
	pinned bool
	// keyed says that the request has an idempotency key, whose outcome shows whether it happened
	// before.
	keyed bool
	// unwanted is the file of an attempt that lost, until it is deleted.
	unwanted *documents.Lost
}

// newCommit returns the commit of edit to the table or view called ident.
func (c *Catalog) newCommit(k *kind, ident moorage.Identifier, edit edit) *commit {
	return &commit{kind: k, ident: ident, edit: edit, pinned: edit.pins(), keyed: c.key != nil}
}

// replays reports whether base shows that the commit happened before.
func (w *commit) replays(base document) bool { return !w.keyed && w.edit.replays(base) }

// commit runs work to its end.
func (c *Catalog) commit(ctx context.Context, work *commit) (*version, error) {
	release, begun := c.turnIfFree(work.ident)
	defer func() { release() }()
	found, current, err := c.load(ctx, work.kind, work.ident)
	if err != nil {
		return nil, err
	}
	// What fails against the present version is refused without waiting for a turn.
	if work.replays(current.document) {
		return current, nil
	}
	if err := work.edit.check(current.document); err != nil {
		return nil, err
	}
	ctx, cancel := moorage.Detached(ctx, requestTimeout)
	defer cancel()
	size := len(current.document.Raw())
	if !begun {
		current = nil // frees its memory
		if release, err = c.turns.take(ctx, found.Pointer.ID); err != nil {
			release = func() {}
			return nil, moorage.E("catalog.commit", work.ident.String(), moorage.KindUnavailable, err)
		}
	}
	held := c.documents.Room().Enter(work.ident.Warehouse) // in its turn: commits that wait hold nothing
	defer held.GiveBack()
	if err := held.Take(ctx, documents.HeldBytes(size)); err != nil {
		return nil, err
	}
	defer func() {
		if work.unwanted != nil { // no attempt came after the one that lost, or it did not get far
			c.documents.DeleteLost(ctx, *work.unwanted)
		}
	}()
	var committed *version
	err = c.ledger.Retry(ctx, moorage.KindCommitFailed, func(attempt int) (err error) {
		switch {
		case attempt == 0 && begun: // what was read is as it was when the turn began, or newer
			committed, err = c.commitOn(ctx, work, found, current.document)
		case attempt >= racesMax:
			committed, err = c.tryCommitLocked(ctx, work, found)
		default:
			committed, err = c.tryCommit(ctx, work, found)
		}
		return err
	})
	return committed, err
}

// turnIfFree begins a turn at the pointer called ident if the node knows that pointer and nobody is
// in front. Then one read serves the whole commit.
func (c *Catalog) turnIfFree(ident moorage.Identifier) (release func(), begun bool) {
	known, ok := c.directory.Known(ident)
	if !ok {
		return func() {}, false
	}
	return c.turns.takeIfFree(known.Pointer.ID)
}

// tryCommitLocked is tryCommit while no other contended commit of the pointer is under way.
func (c *Catalog) tryCommitLocked(ctx context.Context, work *commit, found *directory.Found) (*version, error) {
	hold, err := c.lock(ctx, work.kind.commitContended, lockScope{
		warehouse: work.ident.Warehouse, pointers: []registry.ID{found.Pointer.ID},
	})
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	return c.tryCommit(ctx, work, found) // not the hold's context: losing the lock is harmless
}

// tryCommit reads the pointer again and makes one attempt. It returns ledger.ErrRetry if only the
// pointer's version changed meanwhile. known is the pointer as the commit found it first.
func (c *Catalog) tryCommit(ctx context.Context, work *commit, known *directory.Found) (*version, error) {
	found, err := c.resolveForCommit(ctx, work, known)
	if err != nil {
		return nil, err
	}
	base, err := c.documents.Current(ctx, found)
	if err != nil {
		return nil, err
	}
	if work.unwanted != nil {
		c.documents.DeleteLostBehind(ctx, *work.unwanted, found, base)
		work.unwanted = nil
	}
	return c.commitOn(ctx, work, found, base)
}

// commitOn makes one attempt on base, the document that found names. It returns ledger.ErrRetry if
// only the pointer's version changed meanwhile.
func (c *Catalog) commitOn(ctx context.Context, work *commit, found *directory.Found, base document) (*version, error) {
	if work.replays(base) {
		return newVersion(found, work.ident, base), nil
	}
	next, err := c.buildNext(found, base, work.edit)
	if err != nil {
		return nil, err
	}
	if next.Document == base {
		return newVersion(found, work.ident, base), nil
	}
	change, err := c.ledger.NewChange(ctx, string(work.kind.commit), found.Pointer.Identifier())
	if err != nil {
		return nil, err
	}
	change.MetadataLocation = next.Location
	move, err := c.planMove(ctx, found, base, next)
	if err != nil {
		return nil, err
	}
	committed := &version{work.ident, found.Pointer.ID, next.Location, next.Document, found.Storage, registry.ID{}}
	etags, isUnwanted, err := c.publish(ctx, next, change, move.batch, committed.outcome())
	if isUnwanted {
		work.unwanted = &documents.Lost{File: next, Base: found.Pointer.MetadataLocation}
	}
	if err != nil {
		return nil, ledger.RetryOnConflict(err)
	}
	if len(etags) > 0 {
		c.directory.RememberMove(move.to, move.batch.Writes[0], etags[0])
	}
	trimmed := documents.TrimmedBy(directory.Latest(found, move.to), base, next)
	c.documents.DeleteTrimmed(ctx, []documents.Trimmed{trimmed})
	return committed, nil
}

// resolveForCommit returns the pointer that the commit is about, as it is now.
func (c *Catalog) resolveForCommit(ctx context.Context, work *commit, known *directory.Found) (
	*directory.Found, error) {
	if !work.pinned {
		return c.directory.Find(ctx, work.kind.Kind, work.ident)
	}
	found, err := c.directory.Reread(ctx, known)
	if err == nil && !found.IsIn(work.ident.Warehouse) {
		err = work.kind.NoSuch(work.ident)
	}
	return found, err
}

// buildNext makes the next version of base, which found names, and names its file. If the edit
// changes nothing the document of the result is base itself, and the file has no name.
func (c *Catalog) buildNext(found *directory.Found, base document, asked edit) (documents.File, error) {
	document, err := asked.next(base, metadata.Env{Now: c.now(), BaseLocation: found.Pointer.MetadataLocation})
	if err != nil || document == base {
		return documents.File{Document: base}, err
	}
	before := documents.File{Location: found.Pointer.MetadataLocation, Document: base}
	return c.documents.Name(kindOf(found.Pointer).Kind, found.Pointer.ID, found.Storage, document, before)
}

// move is what one Apply must require and write to make a pointer name another version.
type move struct {
	batch registry.Batch   // its first write is the pointer's
	to    *directory.Found // what that write makes of the pointer, without the record
}

// planMove returns the move to next, which was built on base, the current version.
func (c *Catalog) planMove(ctx context.Context, found *directory.Found, base document, next documents.File) (
	move, error) {
	to := &directory.Found{
		Pointer: found.Pointer, Storage: found.Storage, Place: found.Place, Warehouse: found.Warehouse,
	}
	pointer := &to.Pointer
	pointer.MetadataLocation, pointer.Registration = next.Location, registry.ID{}
	pointer.ReplayableUntil = c.replayableUntil(pointer.ReplayableUntil)
	conditions := []registry.Condition{ledger.Unchanged(found.Record)}
	var puts []ledger.Write
	if next.Document.Location() != base.Location() {
		moved, err := c.claimMove(ctx, found, next.Document.Location())
		if err != nil {
			return move{}, err
		}
		conditions, puts = append(conditions, moved.Conditions...), moved.Puts
		if pointer.Claims, err = claims.With(pointer.Claims, moved.Normalised); err != nil {
			return move{}, err
		}
	}
	puts = append([]ledger.Write{ledger.Put(found.Record.Key, registry.StateLive, pointer)}, puts...)
	writes, err := ledger.Encode(puts...)
	return move{registry.Batch{Conditions: conditions, Writes: writes}, to}, err
}

// claimMove plans the claim of a location that set-location asked for. The table or view keeps the
// old claim.
func (c *Catalog) claimMove(ctx context.Context, found *directory.Found, location string) (claims.Claim, error) {
	ch, err := c.directory.Path(ctx, found.Pointer.Warehouse, nil)
	if err != nil {
		return claims.Claim{}, err
	}
	claimant := claims.Claimant{Pointer: found.Pointer.ID}
	planned, err := c.locations.Plan(ctx, c.directory.Roots(ch.Warehouse), location, claimant)
	return planned, claims.Refusal(err, location)
}

// publish writes file, then applies batch, which names it, as the commit change, with the outcome
// answer. If the commit certainly did not happen and never will, the file is unwanted, and the
// caller deletes it. If it may have happened, the file stays. The ETags are those of batch.Writes,
// as far as they are known.
func (c *Catalog) publish(ctx context.Context, file documents.File, change registry.Change, batch registry.Batch,
	answer Outcome) (etags []registry.ETag, unwanted bool, err error) {
	if err := file.Write(ctx); err != nil {
		return nil, moorage.KindOf(err) == moorage.KindUnavailable && !errors.Is(err, storage.ErrExists), err
	}
	etags, err = c.apply(ctx, change, batch, answer)
	if err == nil {
		c.documents.Keep(file.Pointer, file.Location, file.Document)
	}
	return etags, err != nil && moorage.KindOf(err) != moorage.KindCommitUnknown, err
}
