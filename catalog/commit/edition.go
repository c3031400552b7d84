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

// edition is the edit of one table or view under way. It belongs to one goroutine at a time: its
// own, or that of the edition which carries it out.
type edition struct {
	*work
	Target
	// pinned says that the requirements name the uuid; see Edit.Pins.
	pinned bool
	member registry.Member // what the change record says of it in a group
	shares bool            // it can share a version
	bytes  int             // that it adds to one at most

	ended  bool
	answer *Version // once it has ended, if it succeeded
	err    error    // once it has ended
}

// end notes how e ended.
func (e *edition) end(answer *Version, err error) { e.ended, e.answer, e.err = true, answer, err }

// may returns nil if the caller of e may change found, which e is about.
func (e *edition) may(ctx context.Context, d *directory.Directory, found *directory.Found) error {
	return d.May(ctx, e.asker(), e.Asks, found, e.Ident)
}

// replays reports whether base shows that e happened before. A request with a key of its client is
// recognised by the outcome of the key.
func (e *edition) replays(base documents.Document) bool {
	return !e.hasClientKey() && e.Edit.Asks() && e.Edit.Replays(base)
}

// moves reports whether e may be moved on top of ground. An edit that fits there as it is need not
// be.
func (e *edition) moves(ctx context.Context, ground Ground) bool {
	movable, ok := e.Edit.(Movable)
	return ok && !e.ended && e.Edit.Check(ground.Base) != nil && movable.Moves(ctx, ground)
}

// prepare reads what moving e may take, while others are in front. It reports whether e can be
// moved to the top of ground, as far as that can be told.
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
		Client: w.Caller.Client, Time: now,
	}}
	if shared, ok := target.Edit.(Shared); ok {
		e.member.Snapshot = shared.Snapshot()
		e.bytes, e.shares = shared.Shares()
	}
	e.shares = e.shares && w.Lease == nil // the others must not fail with its lease
	return e
}

// next makes the next version of base, which found names: base itself if edit changes nothing.
func next(now time.Time, found *directory.Found, base documents.Document, edit Edit) (documents.Document, error) {
	return edit.Next(base, envOf(now, found))
}

// envOf returns what a version depends on besides the one before it, which found names.
func envOf(now time.Time, found *directory.Found) metadata.Env {
	return metadata.Env{Now: now, BaseLocation: found.Pointer.MetadataLocation}
}
