package catalog

import (
	"context"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/verb"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// mayMakeNamespace returns nil if somebody may make the namespace of ident, of whose path there is
// what path says. That takes create on the lowest that he sees: one that he does not see is as if
// it did not exist.
//
// A location for it takes locate as well.
func (p *planner) mayMakeNamespace(ctx context.Context, by directory.Asker, path *directory.Path,
	ident moorage.Identifier, properties map[string]string) error {
	asked := access.Create
	if _, located := properties[PropLocation]; located {
		asked |= access.Locate
	}
	if path.Depth() == len(ident.Namespace) {
		path = path.Up()
	}
	for {
		err := p.directory.MayAt(ctx, by, asked, path, ident)
		if moorage.KindOf(err) != moorage.KindNoSuchNamespace || !moorage.IsHidden(err) {
			return err
		}
		path = path.Up()
	}
}

// mayCreate returns nil if somebody may make a table or view with properties at a location in the
// namespace of path; empty: the server chooses. A location of his own takes locate, unless it is
// one that the server might choose: in the folder of the namespace, where nobody was before. A
// property that says where files are takes locate too.
func (p *planner) mayCreate(ctx context.Context, by directory.Asker, path *directory.Path, ident moorage.Identifier,
	location string, properties map[string]string) error {
	asked := access.Create
	for name := range properties {
		if verb.IsPathProperty(name) {
			asked |= access.Locate
		}
	}
	if location != "" && p.guarded {
		folder := folderOf(path, ident.Namespace)
		normalised, err := storage.Normalise(storage.Trim(location))
		home, homeErr := storage.Normalise(folder)
		own := err != nil || homeErr != nil || folder == path.Warehouse.Location ||
			!strings.HasPrefix(normalised, home+"/")
		if !own {
			records, err := p.ledger.Get(ctx, registry.LocationKey(normalised))
			if err != nil {
				return err
			}
			own = records[0].Exists()
		}
		if own {
			asked |= access.Locate
		}
	}
	return p.directory.MayAt(ctx, by, asked, path, ident)
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
// tombstone: that takes locate. location is what the request names. A location that the server
// chooses, for an empty one, is never there.
func resettling(p *planner, by directory.Asker, path *directory.Path, ident moorage.Identifier,
	location string) func(context.Context, registry.Tombstone) error {
	switch {
	case location == "":
		return func(context.Context, registry.Tombstone) error { return new(claims.TakenError) }
	case !p.guarded:
		return nil
	}
	return func(ctx context.Context, _ registry.Tombstone) error {
		return p.directory.MayAt(ctx, by, access.Locate, path, ident)
	}
}

// mayReplace returns nil if somebody may take the name of r from what has it, and take back what
// was dropped: each takes drop.
func (p *planner) mayReplace(ctx context.Context, by directory.Asker, path *directory.Path, r *registration) error {
	if !p.guarded {
		return nil
	}
	if r.occupant.Exists() {
		if err := p.mayDrop(ctx, by, r.occupant, path.Above(), r.ident); err != nil {
			return err
		}
	}
	if !r.holder.Exists() || r.holder.Key == r.occupant.Key {
		return nil
	}
	pointer, err := ledger.Decode[registry.Pointer](r.holder)
	if err != nil {
		return err
	}
	above, err := p.directory.AboveOf(ctx, pointer)
	if err != nil {
		return err
	}
	if err := p.mayDrop(ctx, by, r.holder, above, pointer.Identifier()); err != nil {
		// That there is one of this uuid is told by the refusal of a register in any case.
		return moorage.Errorf(moorage.KindForbidden, "Not allowed: drop on the table or view that has the UUID %s",
			pointer.TableUUID)
	}
	return nil
}

// mayDrop returns nil if somebody has drop on the pointer of record, which is in above.
func (p *planner) mayDrop(ctx context.Context, by directory.Asker, record registry.Record, above []access.Object,
	ident moorage.Identifier) error {
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return err
	}
	return p.directory.May(ctx, by, access.Drop, &directory.Found{Pointer: pointer, Above: above}, ident)
}

// moveGrants plans that the grants of a pointer stand where path leads to.
func (p *planner) moveGrants(ctx context.Context, pointer registry.Pointer, path *directory.Path) (
	ledger.Policy, error) {
	if !pointer.Granted {
		return ledger.Policy{}, nil
	}
	key := registry.GrantsKey(pointer.ID)
	records, err := p.ledger.Get(ctx, key)
	if err != nil || !records[0].Exists() {
		return ledger.Policy{}, err
	}
	grants, err := ledger.Decode[registry.Grants](records[0])
	if err != nil {
		return ledger.Policy{}, err
	}
	grants.Ancestors = idsOf(path.Above())
	policy, err := p.ledger.ChangePolicy(ctx, ledger.Put(key, registry.StateNone, grants))
	policy.Conditions = append(policy.Conditions, ledger.Unchanged(records[0]))
	return policy, err
}

// idsOf returns the ids of objects.
func idsOf(objects []access.Object) []registry.ID {
	ids := make([]registry.ID, len(objects))
	for i, object := range objects {
		ids[i] = registry.ID(object.ID)
	}
	return ids
}

// askedBy returns the privileges that the updates of steps take. A commit without updates only
// needs to see the table, and to describe it, because it is answered the table.
func askedBy(steps []metadata.Step) access.Privileges {
	asked := access.Describe
	for _, step := range steps {
		for _, update := range step.Updates {
			asked |= verb.OfUpdate(update.Action(), update.Names())
		}
	}
	return asked
}

// askedByView returns the privileges that updates of a view take.
func askedByView(updates []metadata.ViewUpdate) access.Privileges {
	asked := access.Alter
	for _, update := range updates {
		asked |= verb.OfUpdate(update.Action(), update.Names())
	}
	return asked
}
