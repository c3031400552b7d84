package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/gate"
)

// Left is a tombstone and its location.
type Left = claims.Left

// Tombstones returns a page of the tombstones in the warehouse called name: the locations of ended
// tables and views that may have left files. They are in the order of the locations. next is the
// After of the next page, empty if this is the last page. The caller needs locate on the warehouse.
//
// Further errors: KindNoSuchWarehouse.
func (w Warehouses) Tombstones(ctx context.Context, name string, page moorage.Page) ([]Left, string, error) {
	const op = "catalog.Tombstones"
	roots, err := w.rootsFor(ctx, gate.ListTombstones, name)
	if err != nil {
		return nil, "", moorage.Annotate(op, name, err)
	}
	found, next, err := w.catalog.planner.claims.Tombstones(ctx, roots, page.After, page.Limit)
	return found, next, moorage.Annotate(op, name, err)
}

// ClearTombstone removes the tombstone at a location in the warehouse called name, and returns it.
// Afterwards any table or view may live there, and the removal of orphans may delete the files
// there. The caller needs locate and purge on the warehouse.
//
// Further errors: KindNoSuchWarehouse; those of claims.Clear.
func (w Warehouses) ClearTombstone(ctx context.Context, name, location string) (Left, error) {
	const op = "catalog.ClearTombstone"
	roots, err := w.rootsFor(ctx, gate.ClearTombstone, name)
	if err != nil {
		return Left{}, moorage.Annotate(op, name, err)
	}
	left, err := w.catalog.planner.claims.Clear(ctx, roots, location)
	return left, moorage.Annotate(op, name, err)
}

// rootsFor returns the roots of a warehouse for a caller of v.
func (w Warehouses) rootsFor(ctx context.Context, v gate.Verb, name string) ([]string, error) {
	resolved, err := w.catalog.resolve(ctx, v, moorage.Identifier{Warehouse: name})
	if err != nil {
		return nil, err
	}
	return w.catalog.planner.directory.Roots(resolved.Path.Warehouse), nil
}
