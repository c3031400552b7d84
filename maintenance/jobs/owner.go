package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

const ownerBytesMax = 1 << 10

// ownFolder makes sure that no other store looks after the tables of a warehouse: the file owner in
// the server's folder there has the id of the store that removes orphans. It is made by the first.
// Two stores over one folder would each take the files of the other for orphans.
func ownFolder(ctx context.Context, j *Jobs, store storage.Store, warehouse string) error {
	if j.skip[checkOwner] {
		return nil
	}
	id, err := storeID(ctx, j.ledger)
	if err != nil {
		return err
	}
	file := ownerFile(warehouse)
	err = store.Create(ctx, file, []byte(id.String()+"\n"))
	if err == nil || !errors.Is(err, storage.ErrExists) {
		return err
	}
	there, err := storage.ReadAll(ctx, store, file, ownerBytesMax)
	if err != nil {
		return err
	}
	if other := strings.TrimSpace(string(there)); other != id.String() {
		return &BlockedError{fmt.Sprintf("another store, %s, removes orphans in %s. If that store is gone, delete the "+
			"file %s", other, warehouse, file)}
	}
	return nil
}

func ownerFile(warehouse string) string { return storage.Join(warehouse, Folder, "owner") }

// storeID returns the id of the store, which the first caller draws.
func storeID(ctx context.Context, l *ledger.Ledger) (registry.ID, error) {
	drawn, err := l.NewID()
	if err != nil {
		return registry.ID{}, err
	}
	writes, err := ledger.Encode(ledger.Put(registry.StoreIDKey(), registry.StateNone, registry.StoreID{ID: drawn}))
	if err != nil {
		return registry.ID{}, err
	}
	records, err := l.Get(ctx, registry.StoreIDKey())
	if err != nil {
		return registry.ID{}, err
	}
	if !records[0].Exists() {
		_, err = l.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{registry.Absent(registry.StoreIDKey())}, Writes: writes,
		})
		if _, failed := registry.FailedCondition(err); err != nil && !failed {
			return registry.ID{}, ledger.StepError("jobs.storeID", err)
		}
		if records, err = l.Get(ctx, registry.StoreIDKey()); err != nil {
			return registry.ID{}, err
		}
	}
	value, err := ledger.Decode[registry.StoreID](records[0])
	return value.ID, err
}
