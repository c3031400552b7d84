package vending

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/storage"
)

// ReachStaged returns the reach of a staged table whose location the server chose, in the namespace
// of path. With this reach, clients can renew the credentials until the table is stored. It is nil
// if the warehouse offers no delegation. The error is the error of storage.Normalise.
func (v *Vending) ReachStaged(path *directory.Path, ident moorage.Identifier, location string) (*Reach, error) {
	if len(path.Warehouse.Delegation) == 0 {
		return nil, nil
	}
	location, err := storage.Normalise(location)
	if err != nil {
		return nil, err
	}
	r := v.reachAt(path, ident, location)
	r.staged = location
	return r, nil
}

// ReachDrawn returns the reach of a staged table at a location that its client chose in the
// namespace of path. folder is the folder for the tables of that namespace. The location is not
// reserved until the commit claims it. So the reach is nil unless the name at the end of the
// location ends in a random UUID, and the location is empty.
//
// Trino creates tables this way, and writes to them before it commits. Such a location cannot be
// guessed, so only the client that chose it gets credentials for it. ReachDrawn checks that the
// location is empty, because otherwise the credentials would reach files that a dropped table left
// there.
//
// Errors: KindUnavailable if the storage cannot be listed.
func (v *Vending) ReachDrawn(ctx context.Context, path *directory.Path, ident moorage.Identifier,
	location, folder string) (*Reach, error) {
	if len(path.Warehouse.Delegation) == 0 {
		return nil, nil
	}
	location, err := storage.Normalise(location)
	if err != nil {
		return nil, err
	}
	home, err := storage.Normalise(folder)
	if err != nil {
		return nil, err
	}
	name, within := strings.CutPrefix(location, home+"/")
	lister, ok := path.Storage.(storage.Lister)
	if !ok || !within || !drawnName.MatchString(name) {
		return nil, nil
	}
	page, err := lister.List(ctx, location, "", 1)
	if err != nil {
		return nil, moorage.E("vending.ReachDrawn", location, moorage.KindUnavailable, err)
	}
	if len(page.Files) > 0 || page.Next != "" {
		return nil, nil
	}
	return v.reachAt(path, ident, location), nil
}

// drawnName matches the names that Trino gives to folders of new tables: they end in a random UUID.
var drawnName = regexp.MustCompile(`^[^/]+-[0-9a-f]{32}$`)

// reachAt returns the reach of a table that is not stored yet, at a location in the warehouse of
// path.
func (v *Vending) reachAt(path *directory.Path, ident moorage.Identifier, location string) *Reach {
	return &Reach{
		ident: ident, offers: path.Warehouse.Delegation, store: path.Storage, locations: []string{location},
		warehouse: path.Warehouse.ID, place: v.directory.PlaceOf(path.Warehouse),
	}
}

// find returns the reach of the table, and the asker, which includes the views through which the
// caller came. If the table is stored, the gate checks the verb in the parameter stored. Otherwise
// it checks the verb in the parameter staged.
func (v *Vending) find(ctx context.Context, stored, staged gate.Verb, table Named) (directory.Asker, *Reach, error) {
	by := directory.Asker{Caller: table.Caller, Verb: stored}
	if table.Staged != "" {
		found, err := v.directory.Find(ctx, directory.Table(), table.Table)
		if err != nil || !slices.Contains(found.Pointer.Claims, table.Staged) {
			reach, err := v.findStaged(ctx, staged, table)
			return by, reach, err
		}
	}
	views, err := v.Views(table.Through)
	if err != nil {
		return by, nil, err
	}
	resolved, err := v.directory.Resolve(ctx, table.Caller, stored, table.Table, views)
	if err != nil {
		return by, nil, err
	}
	return resolved.By, ReachOf(resolved.Found, table.Table), nil
}

// findStaged is like find, for a table that is not stored yet. If another table is stored at, above
// or below its location, the caller's table does not exist.
func (v *Vending) findStaged(ctx context.Context, verb gate.Verb, table Named) (r *Reach, err error) {
	by := directory.Asker{Caller: table.Caller, Verb: verb}
	request := gate.Request{Caller: table.Caller, Verb: verb, On: []moorage.Identifier{table.Table}}
	err = gate.Pass(ctx, v.gate, request, func() error {
		path, entry, err := v.directory.PathAndEntry(ctx, table.Table)
		if err != nil {
			return v.directory.Missing(ctx, by, table.Table.Warehouse, err)
		}
		asked := verb.Needs(gate.OfContainer, gate.Always)
		if err := v.directory.MayAt(ctx, by, asked, path, table.Table); err != nil {
			return err
		}
		free := false
		if !entry.Record.Exists() {
			if free, err = v.claims.IsFree(ctx, table.Staged); err != nil {
				return err
			}
		}
		if !free {
			return directory.Table().NoSuch(table.Table)
		}
		r = v.reachAt(path, table.Table, table.Staged)
		r.staged = table.Staged
		return nil
	})
	return r, err
}
