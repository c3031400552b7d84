package catalog

import (
	"context"
	"iter"
	"slices"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// namedPlace is a file location that a table or view names in addition to its own location.
type namedPlace struct{ by, location string }

// placesOf returns the file locations in properties.
func placesOf(properties map[string]string) (places []namedPlace) {
	for name, value := range properties {
		if gate.IsPathProperty(name) && value != "" {
			places = append(places, namedPlace{"property " + name, value})
		}
	}
	return places
}

// placesIn returns the file locations in the properties of a document, and the locations of its
// statistics files.
func placesIn(document documents.Document) (places []namedPlace) {
	for _, name := range gate.PathProperties() {
		if value, _ := document.Property(name); value != "" {
			places = append(places, namedPlace{"property " + name, value})
		}
	}
	if table, ok := document.(*metadata.Document); ok {
		for _, file := range table.StatisticsFiles() {
			places = append(places, namedPlace{"statistics", file})
		}
	}
	return places
}

// mayName returns nil if the caller may let a table or view of a warehouse name places. own are the
// locations that the table or view has claimed or will claim. For a place in the location of
// another table or view, the caller needs locate on that object. The reason is that the catalog or
// engines would write there. For a folder with other tables or views below it, the caller needs
// locate on the warehouse. mayName ignores malformed locations, which other checks refuse.
func (p *parts) mayName(ctx context.Context, by directory.Asker, warehouse string, pointer registry.ID,
	own []string, places []namedPlace) error {
	if !p.guarded {
		return nil
	}
	for _, place := range places {
		parsed, err := storage.Parse(place.location)
		if err != nil || slices.ContainsFunc(own, func(location string) bool {
			claimed, err := storage.Parse(location)
			return err == nil && claimed.Contains(parsed)
		}) {
			continue
		}
		err = p.mayNameOne(ctx, by, warehouse, pointer, parsed)
		if kind := moorage.KindOf(err); err != nil && (kind == moorage.KindForbidden || moorage.IsHidden(err)) {
			return moorage.Errorf(moorage.KindForbidden, "Not allowed: the %s names %s, "+
				"which belongs to another table or view. That requires locate there", place.by, place.location)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayNameOne is mayName for one place.
func (p *parts) mayNameOne(ctx context.Context, by directory.Asker, warehouse string, pointer registry.ID,
	place storage.Location) error {
	keys := []registry.Key{registry.LocationKey(place.String())}
	for _, folder := range place.Ancestors() {
		keys = append(keys, registry.LocationKey(folder.String()))
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	for _, record := range records {
		if !record.Exists() || record.State != registry.StateOwner {
			continue
		}
		claim, err := ledger.Decode[registry.LocationClaim](record)
		if err != nil {
			return err
		}
		if claim.Pointer == pointer {
			return nil
		}
		owners, err := p.ledger.Get(ctx, registry.PointerKey(claim.Pointer))
		if err != nil {
			return err
		}
		if !owners[0].Exists() { // the table or view there no longer exists
			return p.mayLocateIn(ctx, by, warehouse)
		}
		owner, err := ledger.Decode[registry.Pointer](owners[0])
		if err != nil {
			return err
		}
		above, err := p.directory.AboveOf(ctx, owner)
		if err != nil {
			return err
		}
		return p.directory.May(ctx, by, by.Verb.Needs(gate.OfNeighbour, gate.IfForeign),
			&directory.Found{Pointer: owner, Above: above}, owner.Identifier())
	}
	if records[0].Exists() && records[0].State == registry.StateBelow {
		return p.mayLocateIn(ctx, by, warehouse)
	}
	return nil
}

// mayLocateIn returns nil if the caller has locate on a warehouse.
func (p *parts) mayLocateIn(ctx context.Context, by directory.Asker, warehouse string) error {
	asked := by.Verb.Needs(gate.OfNeighbour, gate.IfForeign)
	_, err := p.directory.PathFor(ctx, by, asked, moorage.Identifier{Warehouse: warehouse})
	return err
}

// locating is an update that can set where files are.
type locating interface {
	Properties() iter.Seq2[string, string]
	Location() string
}

// pathUpdates are the file locations that updates set.
type pathUpdates struct {
	properties map[string]string // the path properties; nil for most commits
	locations  []string
}

// pathsIn returns the file locations that updates set.
func pathsIn[U locating](updates []U) (paths pathUpdates) {
	for _, update := range updates {
		for name, value := range update.Properties() {
			if !gate.IsPathProperty(name) {
				continue
			}
			if paths.properties == nil {
				paths.properties = make(map[string]string)
			}
			paths.properties[name] = value
		}
		if location := update.Location(); location != "" {
			paths.locations = append(paths.locations, location)
		}
	}
	return paths
}

// pathsOf returns the file locations that steps set.
func pathsOf(steps []metadata.Step) pathUpdates {
	if len(steps) == 1 {
		return pathsIn(steps[0].Updates)
	}
	var updates []metadata.Update
	for _, step := range steps {
		updates = append(updates, step.Updates...)
	}
	return pathsIn(updates)
}

// checkPathUpdates returns the check of the file locations that a commit sets on an existing table
// or view, for commit.Target.Admits. It is nil if the commit sets no path property. The check calls
// vending.CheckPaths. Whether or not the warehouse offers delegations, places where other tables or
// views live require locate: see mayName.
func (p *parts) checkPathUpdates(by directory.Asker, ident moorage.Identifier, paths pathUpdates) func(
	ctx context.Context, found *directory.Found) error {
	properties := paths.properties
	if len(properties) == 0 {
		return nil
	}
	return func(ctx context.Context, found *directory.Found) error {
		own := slices.Concat(paths.locations, found.Pointer.Claims)
		if err := vending.CheckPaths(found.Delegation, properties, own...); err != nil {
			return err
		}
		return p.mayName(ctx, by, ident.Warehouse, found.Pointer.ID, own, placesOf(properties))
	}
}
