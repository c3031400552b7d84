package catalog

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/storage"
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
func (c *Catalog) load(ctx context.Context, k *kind, ident moorage.Identifier) (found *directory.Found, loaded *version, err error) {
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = c.directory.Find(ctx, k.Kind, ident); err != nil {
			return err
		}
		document, err := c.currentDocument(ctx, found)
		if err == nil {
			loaded = newVersion(found, ident, document)
		}
		return err
	})
	return found, loaded, err
}

// currentDocument returns the document that a pointer names. If its file is missing that is
// an error only if the pointer, read again, still names it; else ledger.ErrRetry. That it cannot be read is no fault of who asks for it.
func (c *Catalog) currentDocument(ctx context.Context, found *directory.Found) (document, error) {
	document, err := c.document(ctx, placeOfDocument(found.Pointer, found.Storage))
	switch moorage.KindOf(err) {
	case moorage.KindNotFound:
	case moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation, moorage.KindTooLarge: // of a file that is registered
		return nil, moorage.E("catalog.currentDocument", found.Pointer.MetadataLocation, moorage.KindInternal, err)
	default:
		return document, err
	}
	now, readErr := c.directory.Reread(ctx, found)
	if readErr != nil {
		return nil, readErr
	}
	if now != found {
		return nil, ledger.ErrRetry
	}
	return nil, err
}

// document returns the metadata document at a place: that which is kept, or read and parsed, once for all who ask at the same time. A
// file that is missing is KindNotFound, one that cannot be parsed has the kind of metadata.Parse or ParseView.
func (c *Catalog) document(ctx context.Context, at documentPlace) (document, error) {
	if kept := c.keptDocument(ctx, at); kept != nil {
		return kept, nil
	}
	document, err := c.readDocumentOnce(ctx, at)
	if err == nil && !at.isOf(document) { // others began to read before its owner wrote it anew
		c.documents.forget(at.pointer, at.edition)
		document, err = c.readDocumentOnce(ctx, at)
	}
	return document, err
}

// keptDocument returns the metadata document at a place if it is kept, else nil. Where a look at a file is cheap it looks, each time,
// whether the file is still there.
func (c *Catalog) keptDocument(ctx context.Context, at documentPlace) document {
	kept, ok := c.documents.get(at.pointer, at.edition)
	if !ok {
		return nil
	}
	good := at.isOf(kept) // else this node has read the file before its owner wrote it anew and another node registered it
	if local, ok := at.storage.(storage.Local); ok && good && local.MayBeGone(at.location) {
		_, err := at.storage.Stat(ctx, at.location)
		good = !errors.Is(err, storage.ErrNotFound)
	}
	if !good {
		c.documents.forget(at.pointer, at.edition)
		return nil
	}
	return kept
}

// readDocumentOnce reads and parses a metadata document, once for all who ask at the same time, and keeps it.
func (c *Catalog) readDocumentOnce(ctx context.Context, at documentPlace) (document, error) {
	return c.documents.readOnce(ctx, at.pointer, at.edition, func() (document, error) {
		ctx, cancel := moorage.Detached(ctx, requestTimeout) // others may wait for this read
		defer cancel()
		return c.readDocument(ctx, at.kind, at.warehouse, at.storage, at.location)
	})
}
