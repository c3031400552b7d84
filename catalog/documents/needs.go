package documents

import (
	"context"

	"moorage/catalog/directory"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// PlaceOf returns the place of the files of a warehouse. It implements check.Files.
func (d *Documents) PlaceOf(warehouse registry.Warehouse) storage.Place {
	return d.directory.PlaceOf(warehouse)
}

// OwnPlaceOf returns the locations that a table has claimed, and how to reach them according to the
// table's record. It implements check.Files.
func (d *Documents) OwnPlaceOf(pointer registry.Pointer) storage.Place {
	return storage.Place{
		Roots: pointer.Claims, Options: pointer.Storage,
		Secret: directory.SecretOf(pointer.Secret, pointer.WarehouseID, 0),
	}
}

// UUIDIn returns the uuid in the current metadata file of pointer, read from the storage of place.
// It borrows the storage, so it creates no folder. It implements check.Files.
func (d *Documents) UUIDIn(ctx context.Context, place storage.Place, pointer registry.Pointer) (string, error) {
	store, giveBack, err := d.directory.Borrow(ctx, place)
	if err != nil {
		return "", err
	}
	defer giveBack()
	document, err := d.Read(ctx, directory.KindOf(pointer), pointer.Warehouse, store, pointer.MetadataLocation)
	if err != nil {
		return "", err
	}
	return document.UUID(), nil
}

// StatIn checks whether there is a file at location in the storage of place. It implements
// check.Files.
func (d *Documents) StatIn(ctx context.Context, place storage.Place, location string) error {
	store, giveBack, err := d.directory.Borrow(ctx, place)
	if err != nil {
		return err
	}
	defer giveBack()
	_, err = store.Stat(ctx, location)
	return err
}

// StorageOf borrows a storage for the files of table, whose record has this state, and for files
// below the additional locations in the parameter also. The caller gives the storage back by
// calling the returned function. It implements purge.Tables.
func (d *Documents) StorageOf(ctx context.Context, table registry.Pointer, state registry.State, also ...string) (
	storage.Store, func(), error) {
	return d.directory.StorageOf(ctx, table, state, also...)
}

// ReadMetadata reads the current metadata file of table from its storage. It returns KindNotFound
// if the file does not exist. It implements purge.Tables.
func (d *Documents) ReadMetadata(ctx context.Context, table registry.Pointer, files storage.Store) (
	*metadata.Document, error) {
	read, err := d.Read(ctx, directory.Table(), table.Warehouse, files, table.MetadataLocation)
	if err != nil {
		return nil, err
	}
	return read.(*metadata.Document), nil
}

// DeleteSurplus deletes unused files of a transaction in the storage of place: files that no
// pointer names, has ever named, or will name.
func (d *Documents) DeleteSurplus(ctx context.Context, place storage.Place, files []string) error {
	if len(files) == 0 {
		return nil
	}
	store, giveBack, err := d.directory.Borrow(ctx, place)
	if err != nil {
		return err
	}
	defer giveBack()
	return DeleteUnpublished(ctx, store, files)
}
