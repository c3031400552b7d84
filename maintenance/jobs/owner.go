package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"moorage"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

const ownerBytesMax = 1 << 10

// ownFolder makes sure that no other store maintains the tables of a warehouse. The server's folder
// in the warehouse contains a file called owner. The file has the id of the store that removes
// orphans. The first store creates the file. Without the file, two stores over one folder would
// each take the other's files for orphans.
//
// Errors: BlockedError; KindUnavailable if the storage fails; the errors of the store.
func ownFolder(ctx context.Context, j *Jobs, store storage.Store, warehouse string) error {
	id, err := j.ledger.StoreID(ctx)
	if err != nil {
		return err
	}
	other, err := ownerOf(ctx, store, warehouse, id)
	switch {
	case err != nil:
		return moorage.E("jobs.ownFolder", warehouse, moorage.KindUnavailable, err)
	case other == "":
		return nil
	}
	return foreignOwner(other, warehouse)
}

func foreignOwner(other, warehouse string) error {
	return &BlockedError{fmt.Sprintf("another store, %s, removes orphans in %s. If that store is gone: "+
		"moorage maintain run orphans warehouse NAME --adopt", moorage.Cut(cmp.Or(other, "without a name"), 100),
		warehouse)}
}

// ownerOf creates the owner file with id if it does not exist. It returns the id in the file, or
// the empty string if that equals id.
func ownerOf(ctx context.Context, store storage.Store, warehouse string, id registry.ID) (other string, err error) {
	file := ownerFile(warehouse)
	err = store.Create(ctx, file, []byte(id.String()+"\n"))
	if err == nil || !errors.Is(err, storage.ErrExists) {
		return "", err
	}
	there, err := storage.ReadAll(ctx, store, file, ownerBytesMax)
	if err != nil {
		return "", err
	}
	if other = strings.TrimSpace(string(there)); other == id.String() {
		return "", nil
	}
	return cmp.Or(other, "without a name"), nil
}

// foreign explains why this store may not remove orphans in a warehouse. It returns "" if it may.
// It creates no owner file.
func foreign(ctx context.Context, j *Jobs, warehouse string) (why string, err error) {
	location, store, err := j.tables.WarehouseLocation(ctx, warehouse)
	if err != nil {
		return "", err
	}
	there, err := storage.ReadAll(ctx, store, ownerFile(location), ownerBytesMax)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	records, err := j.ledger.Get(ctx, registry.StoreIDKey())
	if err != nil {
		return "", err
	}
	owner := strings.TrimSpace(string(there))
	if records[0].Exists() {
		id, err := ledger.Decode[registry.StoreID](records[0])
		if err != nil || id.ID.String() == owner {
			return "", err
		}
	}
	return foreignOwner(owner, location).Error(), nil
}

// Adopt makes this store the owner of a warehouse. Only the owner removes orphans there. Adopt
// returns the id of the former owner, or "" if there was none. The former owner's jobs in the
// warehouse become blocked. The operator must know that no other store has tables in the folder.
//
// Errors: the errors of the catalog and of the storage; KindUnavailable if a third store was
// faster. After an error, the warehouse may have no owner.
func (j *Jobs) Adopt(ctx context.Context, warehouse string) (other string, err error) {
	const op = "jobs.Adopt"
	location, store, err := j.tables.WarehouseLocation(ctx, warehouse)
	if err != nil {
		return "", moorage.Annotate(op, warehouse, err)
	}
	id, err := j.ledger.StoreID(ctx)
	if err != nil {
		return "", moorage.Annotate(op, warehouse, err)
	}
	if other, err = ownerOf(ctx, store, location, id); err != nil || other == "" {
		return "", moorage.Annotate(op, warehouse, err)
	}
	if err := documents.DeleteOwner(ctx, store, ownerFile(location)); err != nil {
		return other, moorage.E(op, warehouse, moorage.KindUnavailable, err)
	}
	third, err := ownerOf(ctx, store, location, id)
	if err == nil && third != "" {
		err = moorage.Errorf(moorage.KindUnavailable, "The store %s was faster", moorage.Cut(third, 100))
	}
	return other, moorage.Annotate(op, warehouse, err)
}

func ownerFile(warehouse string) string { return storage.Join(warehouse, Folder, "owner") }
