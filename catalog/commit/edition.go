package commit

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/metadata"
	"moorage/registry"
)

// edition is an edit of one table or view that is in progress. It belongs to one goroutine at a
// time: its own, or the goroutine of another edition that carries this one out.
type edition struct {
	*work
	Target
	// pinned is true if the requirements name the uuid; see Edit.Pins.
	pinned bool
	member registry.Member // the entry of the edit in a group's change record
	shares bool            // true if it can share a version
	bytes  int             // the maximum size that it adds to a shared version

	ended  bool
	answer *Version // set on success, once it has ended
	err    error    // set on failure, once it has ended
}

// end records the result of e.
func (e *edition) end(answer *Version, err error) { e.ended, e.answer, e.err = true, answer, err }

// authorize returns nil if the caller of e may change found, the target of e.
func (e *edition) authorize(ctx context.Context, d *directory.Directory, found *directory.Found) error {
	return d.May(ctx, e.asker(), e.Asks, found, e.Ident)
}

// replays reports whether base contains the effect of an earlier attempt of e. It is false for a
// request with a client's key: runWithKey finds its earlier attempt by the outcome of the key.
func (e *edition) replays(base documents.Document) bool {
	return !e.hasClientKey() && e.Edit.Asks() && e.Edit.Replays(base)
}

// moves reports whether e must and may be moved on top of ground. It returns false if the edit
// applies to ground unchanged.
func (e *edition) moves(ctx context.Context, ground Ground) bool {
	movable, ok := e.Edit.(Movable)
	return ok && !e.ended && e.Edit.Check(ground.Base) != nil && movable.Moves(ctx, ground)
}

// prepare reads the data for moving e, while other edits are in front. It reports whether e can
// probably be moved on top of ground.
func (e *edition) prepare(ctx context.Context, ground Ground) bool {
	movable, ok := e.Edit.(Movable)
	if !ok {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, turnMax)
	defer stop()
	return movable.Prepare(ctx, ground)
}

// newEdition returns the edit of w.
func newEdition(ctx context.Context, w *work, now time.Time) *edition {
	target := w.Edits[0]
	e := &edition{work: w, Target: target, pinned: target.Edit.Pins(), member: registry.Member{
		Operation: string(w.Verb), Principal: w.Caller.Name, RequestID: moorage.RequestID(ctx),
		TraceID: moorage.TraceID(ctx), Client: w.Caller.Client, Time: now,
	}}
	if shared, ok := target.Edit.(Shared); ok {
		e.member.Snapshot = shared.Snapshot()
		e.bytes, e.shares = shared.Shares()
	}
	// Other members must not fail because of its lease, or wait for the reads of Admits.
	e.shares = e.shares && w.Lease == nil && e.Admits == nil
	return e
}

// nextVersion returns the next version of base, the document to which found points. It returns base
// itself if edit changes nothing.
func nextVersion(
	now time.Time, found *directory.Found, base documents.Document, edit Edit,
) (documents.Document, error) {
	return edit.Next(base, envOf(now, found))
}

// envOf returns the inputs of a new version, except for its base. found is the pointer to the base.
func envOf(now time.Time, found *directory.Found) metadata.Env {
	return metadata.Env{Now: now, BaseLocation: found.Pointer.MetadataLocation}
}
