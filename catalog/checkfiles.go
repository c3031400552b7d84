package catalog

import (
	"context"

	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/storage"
)

// PlaceOf implements check.Files.
func (c *Catalog) PlaceOf(warehouse registry.Warehouse) storage.Place {
	return c.directory.PlaceOf(warehouse)
}

// UUIDIn implements check.Files. It borrows the storage, so it makes no folder.
func (c *Catalog) UUIDIn(ctx context.Context, place storage.Place, pointer registry.Pointer) (string, error) {
	store, giveBack, err := c.directory.Borrow(ctx, place)
	if err != nil {
		return "", err
	}
	defer giveBack()
	document, err := c.documents.Read(ctx, directory.KindOf(pointer), pointer.Warehouse, store, pointer.MetadataLocation)
	if err != nil {
		return "", err
	}
	return document.UUID(), nil
}
