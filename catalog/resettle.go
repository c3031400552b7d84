package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/registry"
)

// operationForward is the operation in the change record of a create that begins a waiting purge.
const operationForward = "purge-forward"

// forwarding returns the function Claimant.Forward for a create at location. The function begins
// the waiting purge of a dropped table there, unless that table is protected. The caller needs
// purge on that table. If location is empty, forwarding returns nil, because the server chooses
// another location. check returns an error if the request can never succeed, and then the purge
// does not begin. check is nil if the request has already been checked.
func (p *parts) forwarding(by directory.Asker, ident moorage.Identifier, location string, check func() error,
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
			asked := by.Verb.Needs(gate.OfDropped, gate.IfForwarding)
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
		may := func(ctx context.Context, now registry.Pointer) ([]registry.Condition, bool, error) {
			if now.Task != dropped.Task {
				return nil, false, nil
			}
			kept, err := p.unprotectedDropped(ctx, now)
			return kept, err == nil, err
		}
		begun, err := p.claims.BeginPurge(ctx, by.Caller, operationForward, dropped.ID, false, may)
		if err != nil && moorage.KindOf(err) == moorage.KindForbidden { // the table is protected
			return false, nil
		}
		if err == nil && begun {
			p.kickPurge()
			p.log.InfoContext(ctx, "a create began the purge of a dropped table before its time, for its location",
				"dropped", dropped.Identifier().String(), "create", ident.String(), "warehouse", ident.Warehouse,
				"location", location, "owner", moorage.NameOf(dropped.Creator), "purge", dropped.Task,
				"caller", by.Caller.Name, "request", moorage.RequestID(ctx))
		}
		return true, err // otherwise another request has begun the purge, or the purge has ended
	}
}

// taking returns the function Claimant.MayTake for a new table or view at location. If location is
// empty, the server chooses a location. It does not choose one claimed by a dropped table, because
// that table could then not be restored.
func (p *parts) taking(by directory.Asker, location string) func(context.Context, registry.Pointer) error {
	if location == "" {
		return func(context.Context, registry.Pointer) error { return new(claims.TakenError) }
	}
	return p.directory.Taking(by)
}

// resettling returns the function Claimant.MayResettle for a new table or view. The function
// requires the same privileges as any location that the client chooses. location is the location in
// the request. The server never chooses a location at, above or below a tombstone.
func (p *parts) resettling(by directory.Asker, path *directory.Path, ident moorage.Identifier,
	location string) func(context.Context, registry.Tombstone) error {
	switch {
	case location == "":
		return func(context.Context, registry.Tombstone) error { return new(claims.TakenError) }
	case !p.guarded:
		return nil
	}
	return func(ctx context.Context, _ registry.Tombstone) error {
		asked := by.Verb.Needs(gate.OfContainer, gate.IfCreating|gate.IfLocated)
		return p.directory.MayAt(ctx, by, asked, path, ident)
	}
}
