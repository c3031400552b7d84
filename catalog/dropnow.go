package catalog

import (
	"context"
	"log/slog"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Purge begins the purge of a dropped table now. From then on, the table cannot be restored, and a
// worker deletes its files as soon as no answer to a repeated request can need them. It is not an
// error if the purge has already begun. The caller needs purge on the table.
//
// Errors: KindNotFound; KindForbidden; KindBadRequest for a view, which has no files to purge;
// KindAlreadyExists if the table is live, or if a purge of it was cancelled after it had begun;
// KindUnavailable; KindCommitUnknown. Durable when it returns.
func (d Dropped) Purge(ctx context.Context, name DroppedName) error {
	err := d.end(ctx, gate.PurgeDropped, name, d.catalog.planPurgeNow)
	return moorage.Annotate("catalog.Purge", name.Ident.String(), err)
}

// Forget ends a dropped table or view now: it can no longer be restored, and its files stay where
// they are. A waiting purge is cancelled. The caller needs drop on the object.
//
// Errors: KindNotFound; KindForbidden; KindAlreadyExists if the object is live, or if its purge has
// begun; KindUnavailable; KindCommitUnknown. Durable when it returns.
func (d Dropped) Forget(ctx context.Context, name DroppedName) error {
	err := d.end(ctx, gate.Forget, name, d.catalog.planForget)
	return moorage.Annotate("catalog.Forget", name.Ident.String(), err)
}

// end carries out a verb that ends a dropped object before its time.
func (d Dropped) end(ctx context.Context, verb gate.Verb, name DroppedName,
	plan func(ctx context.Context, attempt *commit.Attempt, found droppedPointer) (*commit.Plan, error)) error {
	c := d.catalog
	by, asked := c.asker(verb), verb.Needs(gate.OfDropped, gate.Always)
	var found droppedPointer
	name, err := c.resolveDropped(ctx, by, name)
	if err == nil {
		found, err = c.droppedByID(ctx, by, asked, name)
	}
	if err != nil { // an earlier attempt with the same key decides the outcome
		_, err = c.submit(ctx, refusal(verb, name.Ident, err))
		return err
	}
	name.Ident = found.pointer.Identifier()
	_, err = c.submit(ctx, commit.Intent{
		Verb: verb, On: []moorage.Identifier{name.Ident}, Silent: true,
		Look: func(context.Context) (commit.Scope, error) {
			return commit.Scope{Warehouse: name.Ident.Warehouse, Pointers: []registry.ID{name.ID}}, nil
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			found, err := c.readDroppedToEnd(ctx, by, name)
			if err != nil {
				return nil, err
			}
			return plan(ctx, attempt, found)
		},
	})
	return err
}

// readDroppedToEnd reads a dropped object that will end before its time.
func (p *parts) readDroppedToEnd(ctx context.Context, by directory.Asker, name DroppedName) (droppedPointer, error) {
	d, err := p.droppedByID(ctx, by, by.Verb.Needs(gate.OfDropped, gate.Always), name)
	switch {
	case err != nil:
		return d, err
	case d.record.State == registry.StateLive:
		return d, moorage.Errorf(moorage.KindAlreadyExists, "%s is live: drop it first", d.pointer.Identifier())
	case d.record.State == registry.StatePurging && d.pointer.Task.IsZero():
		return d, p.purgingError(ctx, d)
	}
	d.kept, err = p.unprotectedDropped(ctx, d.pointer)
	return d, err
}

// unprotectedDropped returns the conditions for a change of a dropped object that protection can
// refuse: see unprotected. A namespace that was recreated after the object's own namespace was
// dropped does not count. For namespaces above it, the records do not show whether the object was
// in them, so these count by name.
func (p *parts) unprotectedDropped(ctx context.Context, pointer registry.Pointer) ([]registry.Condition, error) {
	path, err := p.directory.Path(ctx, pointer.Warehouse, pointer.Namespace)
	switch kind := moorage.KindOf(err); {
	case err == nil, kind == moorage.KindNoSuchNamespace:
	case kind == moorage.KindNoSuchWarehouse:
		return nil, nil
	default:
		return nil, err
	}
	if !isOfWarehouse(pointer, path) {
		return nil, nil
	}
	if path.Depth() == len(pointer.Namespace) && path.ID() != pointer.NamespaceID {
		path = path.Up()
	}
	return unprotected(path, pointer, pointer.Identifier())
}

// planPurgeNow plans the beginning of a purge.
func (p *parts) planPurgeNow(ctx context.Context, attempt *commit.Attempt, d droppedPointer) (*commit.Plan, error) {
	pointer := d.pointer
	switch {
	case pointer.View:
		return nil, moorage.Errorf(moorage.KindBadRequest, "%s is a view, which has no files to purge: forget it",
			pointer.Identifier())
	case !pointer.Task.IsZero() && !pointer.PurgeWaits(): // its purge has begun or is about to begin
		return &commit.Plan{Empty: true}, nil
	}
	now, err := p.ledger.Time(ctx)
	if err != nil {
		return nil, err
	}
	if pointer.Task.IsZero() {
		if pointer.Task, err = p.ledger.NewID(); err != nil {
			return nil, err
		}
	}
	notBefore := pointer.ReplayableUntil
	if limit := now.Add(p.keyLife); notBefore.After(limit) { // a clock was ahead
		notBefore = limit
	}
	writes, err := claims.PurgeWrites(d.record, pointer, attempt.Change, now, notBefore)
	item := registry.PointerItem(pointer, registry.Pointer{})
	item.Purge = true
	return &commit.Plan{
		Conditions: append(d.kept, ledger.Unchanged(d.record)), Writes: writes, Items: []registry.Item{item},
		Purges: true,
		Told: commit.Told{
			Message: "the purge of a dropped table begins before its time",
			Attrs:   append(droppedAttrs(pointer), slog.String("purge", pointer.Task.String())),
		},
	}, err
}

// planForget plans the end of a dropped object, whose files stay.
func (p *parts) planForget(ctx context.Context, attempt *commit.Attempt, d droppedPointer) (*commit.Plan, error) {
	if d.record.State == registry.StatePurging {
		return nil, p.purgingError(ctx, d)
	}
	ending := claims.Ending{How: registry.EndedForget, Lasting: true}
	end, err := p.claims.PlanEnd(ctx, d.record, d.pointer, ending, attempt.Change)
	return &commit.Plan{
		Conditions: append(d.kept, end.Conditions...), Writes: end.Writes, Items: []registry.Item{end.Item},
		Told: commit.Told{
			Message: "forgotten before its time: its files stay", Attrs: droppedAttrs(d.pointer),
		},
	}, err
}

func droppedAttrs(pointer registry.Pointer) []slog.Attr {
	return []slog.Attr{
		slog.String("kind", nounOf(pointer)), slog.String("ident", pointer.Identifier().String()),
		slog.String("warehouse", pointer.Warehouse), slog.String("owner", moorage.NameOf(pointer.Creator)),
		slog.Time("dropped", pointer.Since.UTC().Truncate(time.Second)),
		slog.String("file", pointer.MetadataLocation),
	}
}
