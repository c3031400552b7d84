package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/directory"
)

// LoadTable returns the current version of a table. It takes no locks and, for a table
// loaded before, makes one read of the store.
//
// Errors: KindNoSuchTable, also if the namespace is missing; KindNotFound if the metadata
// file is missing, KindInternal if it cannot be read. Source: REST specification, loadTable.
func (c *Catalog) LoadTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	_, loaded, err := c.load(ctx, aTable, ident)
	return loaded.table(), moorage.Annotate("catalog.LoadTable", ident.String(), err)
}

// TableExists returns nil if there is such a table, else the error that LoadTable returns. It does
// not look at the metadata file.
func (c *Catalog) TableExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.directory.Find(ctx, aTable.Kind, ident)
	return moorage.Annotate("catalog.TableExists", ident.String(), err)
}

// load returns the pointer called ident and the version that it names.
func (c *Catalog) load(ctx context.Context, k *kind,
	ident moorage.Identifier) (found *directory.Found, loaded *version, err error) {
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = c.directory.Find(ctx, k.Kind, ident); err != nil {
			return err
		}
		document, err := c.documents.Current(ctx, found)
		if err == nil {
			loaded = newVersion(found, ident, document)
		}
		return err
	})
	return found, loaded, err
}
