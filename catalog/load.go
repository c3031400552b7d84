package catalog

import (
	"context"
	"errors"
	"strings"

	"moorage"
	"moorage/metadata"
	"moorage/storage"
)

// LoadTable returns the current version of a table. It takes no locks and, for a table
// loaded before, makes one read of the store.
//
// Errors: KindNoSuchTable, also if the namespace is missing; KindNotFound if the metadata
// file is missing. Source: REST specification, loadTable.
func (c *Catalog) LoadTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	table, _, err := c.loadTable(ctx, ident)
	if err != nil {
		return nil, moorage.Annotate("catalog.LoadTable", ident.String(), err)
	}
	return table, nil
}

// TableExists returns nil if there is such a table, else the error that LoadTable returns. It does
// not look at the metadata file.
func (c *Catalog) TableExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.resolveTable(ctx, ident)
	return moorage.Annotate("catalog.TableExists", ident.String(), err)
}

func (c *Catalog) loadTable(ctx context.Context, ident moorage.Identifier) (*Table, *resolved, error) {
	var table *Table
	var found *resolved
	err := c.attempts(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = c.resolveTable(ctx, ident); err != nil {
			return err
		}
		document, err := c.currentDocument(ctx, found)
		if err != nil {
			return err
		}
		table = newTable(ident, found.pointer.ID, found.pointer.MetadataLocation, document, found.storage)
		return nil
	})
	return table, found, err
}

// currentDocument returns the document that a pointer names. If its file is missing that is
// an error only if the pointer, read again, still names it; else errAgain.
func (c *Catalog) currentDocument(ctx context.Context, found *resolved) (*metadata.Document, error) {
	document, err := c.documentOf(ctx, found.storage, found.pointer.MetadataLocation, found.pointer.TableUUID)
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

// documentOf is presentDocument of the table with this uuid.
func (c *Catalog) documentOf(ctx context.Context, store storage.Store, location, uuid string) (*metadata.Document, error) {
	document, err := c.presentDocument(ctx, store, location)
	if err == nil && !strings.EqualFold(document.UUID(), uuid) {
		// This node has read the file before its owner wrote it anew and another node registered it.
		c.documents.cache.Invalidate(location)
		document, err = c.document(ctx, store, location)
	}
	return document, err
}

// presentDocument is document, except that where a look at a file is cheap it looks, each time,
// whether the file is still there.
func (c *Catalog) presentDocument(ctx context.Context, store storage.Store, location string) (*metadata.Document, error) {
	document, kept := c.documents.cache.GetIfPresent(location)
	if !kept {
		return c.document(ctx, store, location)
	}
	if local, ok := store.(storage.Local); ok && local.MayBeGone(location) {
		if _, err := store.Stat(ctx, location); errors.Is(err, storage.ErrNotFound) {
			c.documents.cache.Invalidate(location)
			return nil, fileError(location, err)
		}
	}
	return document, nil
}
