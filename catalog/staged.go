package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/storage"
)

// reachStaged sets the reach of a staged table. A location that the client chose is not reserved
// until the commit claims it. The client gets access to it only if isDrawn returns true.
func reachStaged(ctx context.Context, p *planner, table *Table, version *commit.Version, chosen bool) error {
	path, err := p.directory.Path(ctx, table.Identifier.Warehouse, table.Identifier.Namespace)
	if err != nil || len(path.Warehouse.Delegation) == 0 {
		return err
	}
	location, err := storage.Normalise(table.Document.Location())
	if err != nil {
		return err
	}
	if chosen {
		folder := folderOf(path, table.Identifier.Namespace)
		if drawn, err := isDrawn(ctx, version.Storage, location, folder); err != nil || !drawn {
			return err
		}
	}
	table.staged = reachAt(p, path, table.Identifier, location)
	if !chosen {
		table.staged.staged = location
	}
	return nil
}

// reachAt returns the reach of a table that is not stored yet, at a location in the warehouse of
// path.
func reachAt(p *planner, path *directory.Path, ident moorage.Identifier, location string) *reach {
	return &reach{
		ident: ident, offers: path.Warehouse.Delegation, store: path.Storage, locations: []string{location},
		warehouse: path.Warehouse.ID, place: p.directory.PlaceOf(path.Warehouse),
	}
}

// reachNow returns the reach of ident for a caller of the verb stored. If the table is not stored
// yet, the verb is about, and staged is the location that the server chose for the table. through
// are the views through which the caller reaches a stored table.
func (c *Catalog) reachNow(ctx context.Context, stored, about gate.Verb, ident moorage.Identifier, staged string,
	through []moorage.Identifier) (*reach, error) {
	p := c.planner
	if staged != "" {
		found, err := p.directory.Find(ctx, directory.Table(), ident)
		if err != nil || !slices.Contains(found.Pointer.Claims, staged) {
			return c.reachBefore(ctx, about, ident, staged)
		}
	}
	resolved, err := c.resolve(ctx, stored, ident, through...)
	if err != nil {
		return nil, err
	}
	return reachOf(resolved.Found, ident, resolved.By.Through), nil
}

// reachBefore is reachNow for a table that is not stored yet. A table that is stored at, above or
// below its location is another table. Then the caller's table does not exist.
func (c *Catalog) reachBefore(ctx context.Context, v gate.Verb, ident moorage.Identifier, staged string) (
	r *reach, err error) {
	p, by := c.planner, askerOf(c, v)
	request := gate.Request{Caller: c.caller, Verb: v, On: []moorage.Identifier{ident}}
	err = gate.Pass(ctx, c.gate, request, func() error {
		path, entry, err := p.directory.PathAndEntry(ctx, ident)
		if err != nil {
			return p.directory.Missing(ctx, by, ident.Warehouse, err)
		}
		if err := p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfContainer, gate.Always), path, ident); err != nil {
			return err
		}
		free := false
		if !entry.Record.Exists() {
			if free, err = p.claims.IsFree(ctx, staged); err != nil {
				return err
			}
		}
		if !free {
			return directory.Table().NoSuch(ident)
		}
		r = reachAt(p, path, ident, staged)
		r.staged = staged
		return nil
	})
	return r, err
}
