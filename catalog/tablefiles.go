package catalog

import (
	"context"

	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// StorageOf borrows the storage that reaches the files of table, whose record has this state. The
// caller gives it back by a call of the function.
func (c *Catalog) StorageOf(ctx context.Context, table registry.Pointer, state registry.State) (storage.Store, func(), error) {
	return c.directory.StorageOf(ctx, table, state)
}

// ReadMetadata reads the present metadata file of table from its storage: KindNotFound if it is not
// there.
func (c *Catalog) ReadMetadata(ctx context.Context, table registry.Pointer, files storage.Store) (*metadata.Document, error) {
	read, err := c.documents.Read(ctx, aTable.Kind, table.Warehouse, files, table.MetadataLocation)
	if err != nil {
		return nil, err
	}
	return read.(*metadata.Document), nil
}
