package catalog

import (
	"context"
	"errors"
	"strings"

	"moorage"
	"moorage/storage"
)

// LoadTable returns the current version of a table. It takes no locks and, for a table
// loaded before, makes one read of the store.
//
// Errors: KindNoSuchTable, also if the namespace is missing; KindNotFound if the metadata
// file is missing. Source: REST specification, loadTable.
func (c *Catalog) LoadTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	_, loaded, err := c.load(ctx, aTable, ident)
	return loaded.table(), moorage.Annotate("catalog.LoadTable", ident.String(), err)
}

// TableExists returns nil if there is such a table, else the error that LoadTable returns. It does
// not look at the metadata file.
func (c *Catalog) TableExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.resolve(ctx, aTable, ident)
	return moorage.Annotate("catalog.TableExists", ident.String(), err)
}

// load returns the pointer called ident and the version that it names.
func (c *Catalog) load(ctx context.Context, k *kind, ident moorage.Identifier) (found *resolved, loaded *version, err error) {
	err = c.attempts(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = c.resolve(ctx, k, ident); err != nil {
			return err
		}
		document, err := c.currentDocument(ctx, found)
		if err == nil {
			loaded = found.version(ident, document)
		}
		return err
	})
	return found, loaded, err
}

// currentDocument returns the document that a pointer names. If its file is missing that is
// an error only if the pointer, read again, still names it; else errAgain.
func (c *Catalog) currentDocument(ctx context.Context, found *resolved) (document, error) {
	document, err := c.documentOf(ctx, kindOf(found.pointer), found.storage, found.pointer.MetadataLocation, found.pointer.TableUUID)
	if moorage.KindOf(err) != moorage.KindNotFound {
		return document, err
	}
	now, readErr := c.readPointer(ctx, found)
	if readErr != nil {
		return nil, readErr
	}
	if now != found {
		return nil, errAgain
	}
	return nil, err
}

// documentOf is presentDocument of the table or view with this uuid.
func (c *Catalog) documentOf(ctx context.Context, k *kind, store storage.Store, location, uuid string) (document, error) {
	document, err := c.presentDocument(ctx, k, store, location)
	if err == nil && !strings.EqualFold(document.UUID(), uuid) {
		// This node has read the file before its owner wrote it anew and another node registered it.
		c.documents.forget(k, location)
		document, err = c.document(ctx, k, store, location)
	}
	return document, err
}

// presentDocument is document, except that where a look at a file is cheap it looks, each time,
// whether the file is still there.
func (c *Catalog) presentDocument(ctx context.Context, k *kind, store storage.Store, location string) (document, error) {
	document, kept := c.documents.get(k, location)
	if !kept {
		return c.document(ctx, k, store, location)
	}
	if local, ok := store.(storage.Local); ok && local.MayBeGone(location) {
		if _, err := store.Stat(ctx, location); errors.Is(err, storage.ErrNotFound) {
			c.documents.forget(k, location)
			return nil, fileError(location, err)
		}
	}
	return document, nil
}
