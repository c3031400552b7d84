package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"moorage"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// racesMax is how many times a commit may lose the compare-and-set to other nodes before it
// takes the pointer's lock, for one try.
const racesMax = 3

// Commit changes one table, or makes one if its requirements say so (assert-create):
//
//	resolve → check → build → write → apply
//
// The pointer is read; the requirements are checked against the document that it names; the
// updates make a new document; its file is written under a name never used before; one Apply moves
// the pointer from the version that was read. If only the pointer's version changed meanwhile, all
// of it is done again, requirements included, until the request's deadline: a commit whose
// requirements hold is not refused because others were faster. A requirement that fails is
// refused at once, before anything is written.
//
// No lock is taken: the Apply's condition alone makes this correct. Commits to one table
// on one node take turns, which only saves them from losing races against each other.
//
// Updates that change nothing write nothing, and answer the current version.
//
// Errors: KindNoSuchTable; KindCommitFailed if a requirement fails, or at the deadline (nothing was
// applied); KindBadRequest, KindIllegalArgument, KindValidation for updates that can never
// succeed; KindUnavailable (nothing was applied); KindCommitUnknown (it may have been).
// Durable when it returns. Source: REST specification, updateTable.
func (c *Catalog) Commit(ctx context.Context, ident moorage.Identifier, request CommitRequest) (*Table, error) {
	const op = "catalog.Commit"
	table, err := c.commitSteps(ctx, ident, []metadata.Step{request.step()})
	if err != nil {
		return nil, moorage.Annotate(op, ident.String(), err)
	}
	return table, nil
}

// commitSteps is Commit of several changes of one table, in order, as one version.
func (c *Catalog) commitSteps(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (*Table, error) {
	create, err := metadata.IsCreate(steps[0].Requirements)
	switch {
	case err != nil:
		return nil, err
	case create:
		return c.commitCreate(ctx, ident, steps)
	}
	return c.commitUpdate(ctx, ident, steps)
}

// commit is one Commit under way.
type commit struct {
	ident moorage.Identifier
	steps []metadata.Step
	// pinned tells that the requirements name the table-uuid, so that the commit follows its pointer
	// even when it is renamed; otherwise it follows the name.
	pinned bool
	// keyed tells that the request has a key, which tells whether it happened before.
	keyed bool
}

// newCommit returns the commit of steps to the table called ident.
func newCommit(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) commit {
	pinned := slices.ContainsFunc(steps, func(step metadata.Step) bool { return metadata.AssertsUUID(step.Requirements) })
	return commit{ident: ident, steps: steps, pinned: pinned, keyed: keyedOf(ctx) != nil}
}

// replays tells whether the commit adds snapshots and does nothing else, all of which base shows to have happened before:
// the answer to an earlier attempt was lost. What it requires was so before that attempt, and need not be so now.
func (w commit) replays(base *metadata.Document) bool {
	if w.keyed {
		return false
	}
	asks := false
	for _, step := range w.steps {
		asks = asks || len(step.Updates) > 0
		if !base.IsReplay(step.Updates) {
			return false
		}
	}
	return asks
}

func (c *Catalog) commitUpdate(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (*Table, error) {
	work := newCommit(ctx, ident, steps)
	release, begun := c.turnIfFree(ident)
	defer func() { release() }()
	table, found, err := c.loadTable(ctx, ident)
	if err != nil {
		return nil, err
	}
	// What fails against the present version is refused without waiting for a turn.
	if work.replays(table.Document) {
		return table, nil
	}
	if err := metadata.Check(table.Document, steps[0].Requirements); err != nil {
		return nil, err
	}
	ctx, cancel := detached(ctx, requestTimeout)
	defer cancel()
	if !begun {
		if release, err = c.turns.take(ctx, found.pointer.ID); err != nil {
			release = func() {}
			return nil, moorage.E("catalog.turn", ident.String(), moorage.KindUnavailable, err)
		}
	}
	err = c.attempts(ctx, moorage.KindCommitFailed, func(attempt int) (err error) {
		switch {
		case attempt == 0 && begun: // what was read is as it was when the turn began, or newer
			table, err = c.commitOn(ctx, work, found, table.Document)
		case attempt >= racesMax:
			table, err = c.tryCommitLocked(ctx, work, found)
		default:
			table, err = c.tryCommit(ctx, work, found)
		}
		return err
	})
	return table, err
}

// turnIfFree begins the turn of the table called ident if it is known which pointer that is and nobody is in front.
// Then one read serves the whole commit.
func (c *Catalog) turnIfFree(ident moorage.Identifier) (release func(), begun bool) {
	known, ok := c.names.cache.GetIfPresent(cacheKey(ident.Warehouse, ident.Namespace, ident.Name))
	if !ok {
		return func() {}, false
	}
	return c.turns.takeIfFree(known.pointer.ID)
}

// tryCommitLocked is tryCommit while no other contended commit of the pointer is under way.
func (c *Catalog) tryCommitLocked(ctx context.Context, work commit, found *resolved) (*Table, error) {
	hold, err := c.lock(ctx, OpCommitContended, lockScope{warehouse: work.ident.Warehouse, pointers: []registry.ID{found.pointer.ID}})
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	return c.tryCommit(ctx, work, found) // not the hold's context: to lose the lock is harmless
}

// tryCommit reads the pointer again and makes one attempt; errAgain if only its version changed meanwhile. known is
// the pointer as it was found first.
func (c *Catalog) tryCommit(ctx context.Context, work commit, known *resolved) (*Table, error) {
	found, err := c.resolveForCommit(ctx, work, known)
	if err != nil {
		return nil, err
	}
	base, err := c.currentDocument(ctx, found)
	if err != nil {
		return nil, err
	}
	return c.commitOn(ctx, work, found, base)
}

// commitOn makes one attempt on the document base that found names; errAgain if only the pointer's version
// changed meanwhile.
func (c *Catalog) commitOn(ctx context.Context, work commit, found *resolved, base *metadata.Document) (*Table, error) {
	next, err := c.buildNext(found, base, work)
	if err != nil {
		return nil, err
	}
	if next.document == base {
		return newTable(work.ident, found.pointer.ID, found.pointer.MetadataLocation, base, found.storage), nil
	}
	change, err := c.newChange(ctx, string(OpCommit), found.pointer.Identifier())
	if err != nil {
		return nil, err
	}
	change.MetadataLocation = next.location
	batch, err := c.moveBatch(ctx, found, base, next)
	if err != nil {
		return nil, err
	}
	table := newTable(work.ident, found.pointer.ID, next.location, next.document, found.storage)
	if err := again(c.publish(ctx, next, change, batch, Outcome{Table: table})); err != nil {
		return nil, err
	}
	c.deleteTrimmed(ctx, found, base, next)
	return table, nil
}

// resolveForCommit returns the pointer that the commit is about, as it is now.
func (c *Catalog) resolveForCommit(ctx context.Context, work commit, known *resolved) (*resolved, error) {
	if !work.pinned {
		return c.resolveTable(ctx, work.ident)
	}
	found, err := c.readPointer(ctx, known)
	if err == nil && !found.isIn(work.ident.Warehouse) {
		err = noSuchTable(work.ident)
	}
	return found, err
}

// buildNext checks the requirements of work against base, which found names, applies its updates, and names the file of
// the result. If they change nothing, or have been applied before, the result's document is base itself, and it has no name.
func (c *Catalog) buildNext(found *resolved, base *metadata.Document, work commit) (metadataFile, error) {
	if work.replays(base) {
		return metadataFile{document: base}, nil
	}
	return c.applySteps(found, base, work.steps)
}

// applySteps is buildNext that knows of no replays.
func (c *Catalog) applySteps(found *resolved, base *metadata.Document, steps []metadata.Step) (metadataFile, error) {
	env, err := c.env(found.pointer.MetadataLocation)
	if err != nil {
		return metadataFile{}, err
	}
	document, err := metadata.ApplySteps(base, steps, env)
	if err != nil || document == base {
		return metadataFile{document: base}, err
	}
	return c.nameFile(found.storage, document, found.pointer.MetadataLocation)
}

// moveBatch returns what one Apply must require and write to make next, which was built on base, the current version.
func (c *Catalog) moveBatch(ctx context.Context, found *resolved, base *metadata.Document, next metadataFile) (registry.Batch, error) {
	pointer := found.pointer
	pointer.MetadataLocation = next.location
	pointer.ReplayableUntil = replayableUntil(ctx, pointer.ReplayableUntil)
	conditions := []registry.Condition{unchangedSince(found.record)}
	var puts []put
	if next.document.Location() != base.Location() {
		moved, err := c.claimMove(ctx, found, next.document.Location())
		if err != nil {
			return registry.Batch{}, err
		}
		conditions, puts = append(conditions, moved.conditions...), moved.puts
		pointer.Claims = append(slices.DeleteFunc(slices.Clone(pointer.Claims),
			func(kept string) bool { return kept == moved.normalised }), moved.normalised)
	}
	writes, err := encodePuts(append([]put{{found.record.Key, registry.StateLive, pointer}}, puts...)...)
	return registry.Batch{Conditions: conditions, Writes: writes}, err
}

// claimMove plans the claim of a location that set-location asked for; the old one is kept.
func (c *Catalog) claimMove(ctx context.Context, found *resolved, location string) (claim, error) {
	ch, err := c.resolveChain(ctx, found.pointer.Warehouse, nil)
	if err != nil {
		return claim{}, err
	}
	planned, err := c.planClaim(ctx, c.roots(ch.warehouse), location, claimant{pointer: found.pointer.ID})
	return planned, explicitTaken(err, location)
}

// deleteTrimmed deletes the metadata files that fell out of the table's metadata log with a commit that
// certainly happened, if the table wants that. A failure leaves files that nothing names.
func (c *Catalog) deleteTrimmed(ctx context.Context, found *resolved, base *metadata.Document, next metadataFile) {
	if !trims(next.document) {
		return
	}
	kept := map[string]bool{next.location: true}
	for _, entry := range next.document.MetadataLog() {
		kept[entry.MetadataLocation] = true
	}
	var trimmed []string
	for _, entry := range base.MetadataLog() {
		if !kept[entry.MetadataLocation] && withinClaims(found.pointer.Claims, entry.MetadataLocation) {
			trimmed = append(trimmed, entry.MetadataLocation)
		}
	}
	if len(trimmed) == 0 || !c.namesNone(ctx, found, trimmed) {
		return
	}
	if err := next.storage.Delete(ctx, trimmed...); err != nil {
		c.log.WarnContext(ctx, "could not delete old metadata files", "ident", found.pointer.Identifier(), "error", fmt.Errorf("delete %d files: %w", len(trimmed), err))
	}
}

// trims tells whether a table wants metadata files to be deleted that fall out of its metadata log.
func trims(document *metadata.Document) bool {
	wanted, _ := document.Property(propDeleteAfterCommit)
	enabled, err := strconv.ParseBool(wanted)
	return err == nil && enabled
}

// namesNone tells whether the pointer is live and its current version is none of files, which are about to be
// deleted: somebody may have registered one of them since. It is false if that cannot be told.
func (c *Catalog) namesNone(ctx context.Context, found *resolved, files []string) bool {
	now, err := c.readPointer(ctx, found)
	return err == nil && now != nil && !slices.Contains(files, now.pointer.MetadataLocation)
}

// withinClaims tells whether a file lies within one of a table's claimed locations.
func withinClaims(claims []string, location string) bool {
	return slices.ContainsFunc(claims, func(claim string) bool {
		inside, err := storage.Within(claim, location)
		return err == nil && inside
	})
}
