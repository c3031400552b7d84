package catalog

import (
	"context"

	"moorage/catalog/documents"
	"moorage/storage"
	"moorage/txlog"
)

// DeleteSurplus deletes the files of a transaction that no pointer names, ever named or will name.
func (c *Catalog) DeleteSurplus(ctx context.Context, transaction txlog.Transaction) error {
	surplus := transaction.Surplus()
	if len(surplus) == 0 {
		return nil
	}
	store, giveBack, err := c.directory.Borrow(ctx, storage.Place(transaction.Place))
	if err != nil {
		return err
	}
	defer giveBack()
	return documents.DeleteUnpublished(ctx, store, surplus)
}
