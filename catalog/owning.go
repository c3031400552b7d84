package catalog

import (
	"cmp"
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// owning holds conditions and writes for the Apply that creates a new version of a view. They
// ensure that the owner of a definer view is the author of its definition. The zero value changes
// nothing.
type owning struct {
	conditions []registry.Condition
	writes     []registry.Write
	items      []registry.Item
	grants     bool // whether the pointer must record that it has grants
}

// viewChange is the creation or change of a view. base is the view's present version. It is nil if
// the view is created or restored.
type viewChange struct {
	by         directory.Asker
	ident      moorage.Identifier
	pointer    registry.Pointer
	above      []access.Object // the view's containers
	base, next *metadata.ViewDocument
}

// owned checks whether the caller may make the change c. If next is a definer view, owned plans the
// writes that make the caller its owner.
//
// Errors: KindForbidden if the caller may not make the change; the errors of the ledger.
func (c viewChange) owned(ctx context.Context, p *parts) (owning, error) {
	after := vending.IsDefiner(c.next)
	changes := c.base != nil && !vending.HasSameDefiner(c.base, c.next)
	if p.guard == nil || !after && !changes {
		return owning{}, nil
	}
	maker, err := p.guard.Maker(ctx, c.by.Caller)
	if err != nil || maker == nil {
		return owning{}, err
	}
	record, unchanged, err := p.readGrants(ctx, c.pointer)
	if err != nil {
		return owning{}, err
	}
	var grants registry.Grants
	if record.Exists() {
		if grants, err = ledger.Decode[registry.Grants](record); err != nil {
			return owning{}, err
		}
	}
	owns := maker.Is(cmp.Or(grants.Owner, c.pointer.Creator))
	switch {
	case changes && !owns && !maker.IsTrusted(c.object()):
		return owning{}, moorage.Errorf(moorage.KindForbidden,
			"Not allowed: change whose rights view %s is read with. It requires its owner, or delegate on warehouse %s",
			c.ident, c.ident.Warehouse)
	case !after, owns: // the grants must be unchanged until the Apply
		return owning{conditions: unchanged}, nil
	case c.by.Caller.Only != nil:
		return owning{}, moorage.Errorf(moorage.KindForbidden,
			"Not allowed: write view %s, which is read with the rights of its owner. "+
				"A credential that is limited to roles owns nothing", c.ident)
	}
	return c.becomeOwner(ctx, p, maker.Identity(), grants, record)
}

// readGrants reads the grants record of a pointer. unchanged are the conditions under which the
// grants are as they were read, for an Apply that does not write them. A missing record cannot be a
// condition, because not every engine can lock a missing row. But the first grant on a pointer
// changes the pointer, and the Apply requires the pointer's version. Each later grant increments
// the epoch. The epoch comes from the same read, because a later one could include a new grant.
func (p *parts) readGrants(ctx context.Context, pointer registry.Pointer) (
	record registry.Record, unchanged []registry.Condition, err error) {
	records, err := p.ledger.Get(ctx, registry.GrantsKey(pointer.ID), registry.EpochKey())
	if err != nil {
		return record, nil, err
	}
	record, epoch := records[0], records[1]
	switch {
	case record.Exists():
		unchanged = []registry.Condition{ledger.Unchanged(record)}
	case pointer.Granted && epoch.Exists():
		unchanged = []registry.Condition{ledger.Unchanged(epoch)}
	}
	return record, unchanged, nil
}

func (c viewChange) object() gate.Object {
	return (&directory.Found{Pointer: c.pointer, Above: c.above}).Object(c.ident)
}

// becomeOwner plans the writes that make the identity maker the owner of the view. grants are the
// view's grants, as read from record.
func (c viewChange) becomeOwner(ctx context.Context, p *parts, maker string, grants registry.Grants,
	record registry.Record) (owning, error) {
	snapshot, _, err := p.guard.Known(ctx)
	if err == nil && grants.IsEmpty() {
		err = snapshot.CheckRoom(1)
	}
	if err != nil {
		return owning{}, err
	}
	if grants.Owner = maker; grants.Owner == c.pointer.Creator {
		grants.Owner = ""
	}
	grants.Kind, grants.Ancestors = access.View.String(), gate.IDs(c.above)
	key := registry.GrantsKey(c.pointer.ID)
	var policy ledger.Policy
	unchanged := ledger.AsRead(record, key)
	switch {
	case !grants.IsEmpty():
		policy, err = p.ledger.ChangePolicy(ctx, ledger.Put(key, registry.StateNone, grants))
	case record.Exists():
		policy, err = p.ledger.DropPolicy(ctx, []registry.Key{key})
	default:
		return owning{}, nil // the owner is the creator, so no grants record is needed
	}
	return owning{
		conditions: append(policy.Conditions, unchanged), writes: policy.Writes, grants: true,
		items: []registry.Item{{Kind: registry.ItemGrants, ID: c.pointer.ID, Ident: c.ident}},
	}, err
}

// Beside implements commit.Accompanied. A caller that replaces a definer view becomes its owner in
// the same Apply.
func (e viewEdit) Beside(ctx context.Context, found *directory.Found, base, next document) (commit.Beside, error) {
	change := viewChange{
		by: e.by, ident: found.Pointer.Identifier(), pointer: found.Pointer, above: found.Above,
		base: base.(*metadata.ViewDocument), next: next.(*metadata.ViewDocument),
	}
	owning, err := change.owned(ctx, e.parts)
	return commit.Beside{
		Conditions: owning.conditions, Writes: owning.writes, Items: owning.items, Grants: owning.grants, Again: true,
	}, err
}
