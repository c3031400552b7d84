package warehouses

import (
	"context"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/gate"
)

// Left is a tombstone and its location.
type Left = claims.Left

// Tombstones returns a page of the tombstones in the warehouse called name: the locations of ended
// tables and views that may have left files. They are sorted by location. To get the next page,
// pass the second result as page.After. It is empty on the last page. The caller needs locate on
// the warehouse.
//
// Further errors: KindNoSuchWarehouse.
func (w *Warehouses) Tombstones(ctx context.Context, name string, page moorage.Page) ([]Left, string, error) {
	const op = "warehouses.Tombstones"
	found, err := w.directory.Resolve(ctx, w.caller, gate.ListTombstones, moorage.Identifier{Warehouse: name}, nil)
	if err != nil {
		return nil, "", moorage.Annotate(op, name, err)
	}
	left, next, err := w.claims.Tombstones(ctx, found.Path.Warehouse.Roots(), page.After, page.Limit)
	return left, next, moorage.Annotate(op, name, err)
}

// ClearTombstone removes the tombstone at a location in the warehouse called name, and returns it.
// After that, any table or view may live there, and the removal of orphan files may delete the
// files there. The caller needs locate and purge on the warehouse.
//
// Further errors: KindNoSuchWarehouse; the errors of claims.Clear.
func (w *Warehouses) ClearTombstone(ctx context.Context, name, location string) (Left, error) {
	const op = "warehouses.ClearTombstone"
	found, err := w.directory.Resolve(ctx, w.caller, gate.ClearTombstone, moorage.Identifier{Warehouse: name}, nil)
	if err != nil {
		return Left{}, moorage.Annotate(op, name, err)
	}
	left, err := w.claims.Clear(ctx, found.Path.Warehouse.Roots(), location)
	return left, moorage.Annotate(op, name, err)
}
