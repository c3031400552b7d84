package directory

import (
	"context"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// FindPointer returns the live pointer with this id, under any name.
//
// Errors: KindNoSuchTable if it does not exist or is not live.
func (d *Directory) FindPointer(ctx context.Context, id registry.ID) (*Found, error) {
	const op = "directory.FindPointer"
	records, err := d.ledger.Get(ctx, registry.PointerKey(id))
	if err != nil {
		return nil, err
	}
	missing := moorage.Errorf(moorage.KindNoSuchTable, "There is no live table with the id %s", id)
	if !records[0].Exists() || records[0].State != registry.StateLive {
		return nil, moorage.E(op, id.String(), moorage.KindNoSuchTable, missing)
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return nil, err
	}
	path, err := d.Path(ctx, pointer.Warehouse, nil)
	if err != nil {
		return nil, err
	}
	return d.newFound(records[0], pointer, path), nil
}
