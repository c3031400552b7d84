package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/verb"
	"moorage/registry"
)

// operationForward is the name that change records have for a purge that a create begins.
const operationForward = "purge-forward"

// forwarding returns what begins the purge, which waits for its time, of a dropped table that has
// the location of a new one: see claims.Claimant. That takes purge on the dropped table. For a
// location that the server chooses it is nil: then the server chooses another one. check returns
// why the request can never succeed, for which no purge begins; nil: it was asked before.
func forwarding(p *planner, by directory.Asker, ident moorage.Identifier, location string, check func() error,
) func(context.Context, registry.Pointer) (bool, error) {
	if location == "" {
		return nil
	}
	return func(ctx context.Context, dropped registry.Pointer) (bool, error) {
		if p.guarded {
			above, err := p.directory.AboveOf(ctx, dropped)
			if err != nil {
				return false, err
			}
			found := &directory.Found{Pointer: dropped, Above: above}
			asked := by.Verb.Needs(verb.OfDropped, verb.IfForwarding)
			err = p.directory.May(ctx, by, asked, found, dropped.Identifier())
			if kind := moorage.KindOf(err); err != nil && (kind == moorage.KindForbidden || moorage.IsHidden(err)) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		if check != nil {
			if err := check(); err != nil {
				return false, err
			}
		}
		same := func(now registry.Pointer) bool { return now.Task == dropped.Task }
		begun, err := p.claims.BeginPurge(ctx, by.Caller, operationForward, dropped.ID, false, same)
		if err == nil && begun {
			p.kickPurge()
			p.log.InfoContext(ctx, "a create began the purge of a dropped table before its time, for its location",
				"dropped", dropped.Identifier().String(), "create", ident.String(), "warehouse", ident.Warehouse,
				"location", location, "owner", moorage.NameOf(dropped.Creator), "purge", dropped.Task,
				"caller", by.Caller.Name, "request", moorage.RequestID(ctx))
		}
		return true, err // if it was not begun here, another request has done it, or it is over
	}
}

// taking returns what decides whether the claim of a dropped table or view may be taken over for a
// new one at a location; empty: the server chooses, and leaves those alone if anything is decided
// at all.
func taking(p *planner, by directory.Asker, location string) func(context.Context, registry.Pointer) error {
	if location == "" && p.guarded {
		return func(context.Context, registry.Pointer) error { return new(claims.TakenError) }
	}
	return p.directory.Taking(by)
}

// resettling returns what decides whether a new table or view may live at, above or below a
// tombstone, as at a location of its own. location is what the request names. The server never
// chooses one there.
func resettling(p *planner, by directory.Asker, path *directory.Path, ident moorage.Identifier,
	location string) func(context.Context, registry.Tombstone) error {
	switch {
	case location == "":
		return func(context.Context, registry.Tombstone) error { return new(claims.TakenError) }
	case !p.guarded:
		return nil
	}
	return func(ctx context.Context, _ registry.Tombstone) error {
		asked := by.Verb.Needs(verb.OfContainer, verb.IfCreating|verb.IfLocated)
		return p.directory.MayAt(ctx, by, asked, path, ident)
	}
}
