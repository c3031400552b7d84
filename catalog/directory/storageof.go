package directory

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// StorageOf borrows the storage that reaches a table's files, and the additional locations in the
// parameter also. pointer is the table's pointer, and state is the state of the pointer's record.
//
// Normally it is the storage of the table's warehouse. But the warehouse may be gone, another
// warehouse may have its name now, or it may no longer allow the table's locations. Then StorageOf
// borrows a storage that reaches only the table's own locations.
func (d *Directory) StorageOf(ctx context.Context, pointer registry.Pointer, state registry.State,
	also ...string) (storage.Store, func(), error) {
	own := storage.Place{
		Roots: append(ownRoots(pointer), also...), Options: pointer.Storage,
		Secret: SecretOf(pointer.Secret, pointer.WarehouseID, 0),
	}
	began := d.now()
	records, err := d.ledger.Get(ctx, registry.WarehouseKey(pointer.Warehouse))
	if err != nil {
		return nil, nil, err
	}
	if records[0].Exists() {
		warehouse, err := ledger.Decode[registry.Warehouse](records[0])
		switch {
		case err != nil:
			return nil, nil, err
		case isOfWarehouse(pointer, state, warehouse) && reachesAll(warehouse.Roots(), own.Roots):
			ch, err := d.newPath(ctx, records[0], pointer.Warehouse, began)
			if err != nil {
				return nil, nil, err
			}
			return ch.Storage, func() {}, nil
		case isOfWarehouse(pointer, state, warehouse):
			own.Options, own.Secret = warehouse.Storage, d.PlaceOf(warehouse).Secret
		}
	}
	store, giveBack, err := d.storages.borrow(ctx, own)
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return nil, nil, moorage.E("directory.StorageOf", "", moorage.KindUnavailable, err)
	case err != nil:
		return nil, nil, moorage.E("directory.StorageOf", "", moorage.KindInternal, err)
	}
	return store, giveBack, nil
}

// isOfWarehouse reports whether a table belongs to warehouse. warehouse is the present warehouse
// with the name in the table's pointer. A live table always belongs to it: a warehouse with tables
// cannot be dropped. A dropped table may have belonged to an earlier warehouse of that name; then
// its pointer has the earlier warehouse's id.
func isOfWarehouse(pointer registry.Pointer, state registry.State, warehouse registry.Warehouse) bool {
	if !pointer.WarehouseID.IsZero() {
		return pointer.WarehouseID == warehouse.ID
	}
	return !state.IsDropped()
}

// ownRoots returns the locations that a table has claimed, and the folder of its metadata file,
// which may be outside these locations.
func ownRoots(pointer registry.Pointer) []string {
	roots := slices.Clone(pointer.Claims)
	file, err := storage.Parse(pointer.MetadataLocation)
	if err != nil {
		return roots
	}
	if folder := file.Parent(); folder != file && !reaches(roots, folder) {
		roots = append(roots, folder.String())
	}
	return roots
}

// reachesAll reports whether each of locations lies below one of roots.
func reachesAll(roots, locations []string) bool {
	return !slices.ContainsFunc(locations, func(location string) bool {
		parsed, err := storage.Parse(location)
		return err != nil || !reaches(roots, parsed)
	})
}

// reaches reports whether location lies below one of roots.
func reaches(roots []string, location storage.Location) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		parsed, err := storage.Parse(root)
		return err == nil && parsed.Contains(location)
	})
}
