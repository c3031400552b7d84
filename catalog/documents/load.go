package documents

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/storage"
)

// Current returns the document named in a pointer. If the file is missing, Current reads the
// pointer again. If the pointer now names another file, the error is ledger.ErrRetry. For an
// unreadable file, the error is KindInternal, because it is not the caller's fault.
func (d *Documents) Current(ctx context.Context, found *directory.Found) (Document, error) {
	return d.documentOf(ctx, found, d.Of)
}

// Glance is Current for a caller that reads many documents once. It does not cache the documents
// that it reads, so that documents in use stay in the cache.
func (d *Documents) Glance(ctx context.Context, found *directory.Found) (Document, error) {
	return d.documentOf(ctx, found, func(ctx context.Context, at Ref) (Document, error) {
		if kept := d.Kept(ctx, at); kept != nil {
			return kept, nil
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return d.Read(ctx, at.Kind, at.Warehouse, at.Storage, at.Location)
	})
}

// documentOf returns the document named in a pointer. The function read reads it.
func (d *Documents) documentOf(ctx context.Context, found *directory.Found,
	read func(context.Context, Ref) (Document, error)) (Document, error) {
	document, err := read(ctx, RefOf(found.Pointer, found.Storage))
	if errors.Is(err, storage.ErrOutside) {
		return nil, moorage.Errorf(moorage.KindForbidden, "Warehouse %s does not allow the location of %s: %s. "+
			"Allow it with: moorage warehouse change %s --allow-location",
			found.Pointer.Warehouse, found.Pointer.Identifier(), found.Pointer.MetadataLocation,
			moorage.ShellWord(found.Pointer.Warehouse))
	}
	switch moorage.KindOf(err) {
	case moorage.KindNotFound:
	case moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation, moorage.KindTooLarge:
		// The client did not send the registered file.
		return nil, moorage.E("documents.documentOf", found.Pointer.MetadataLocation, moorage.KindInternal, err)
	default:
		return document, err
	}
	now, readErr := d.directory.Reread(ctx, found)
	if readErr != nil {
		return nil, readErr
	}
	if now != found {
		return nil, ledger.ErrRetry
	}
	return nil, err
}

// Of returns the metadata document at a reference, from the cache or from one read that concurrent
// callers share. If the file is missing, the error is KindNotFound. If it cannot be parsed, the
// kind comes from metadata.Parse or ParseView.
func (d *Documents) Of(ctx context.Context, at Ref) (Document, error) {
	if kept := d.Kept(ctx, at); kept != nil {
		return kept, nil
	}
	document, err := d.readOnce(ctx, at)
	if err == nil && !at.isOf(document) { // the shared read began before the owner overwrote the file
		d.cache.forget(at.Pointer, at.Version)
		document, err = d.readOnce(ctx, at)
	}
	return document, err
}

// Kept returns the metadata document at a reference if it is cached, and otherwise nil. If checking
// a file is cheap, it checks each time that the file still exists.
func (d *Documents) Kept(ctx context.Context, at Ref) Document {
	kept, ok := d.cache.get(at.Pointer, at.Version)
	if !ok {
		return nil
	}
	// The document may belong to another table, if this node read the file before the file's owner
	// overwrote it and another node registered it.
	good := at.isOf(kept)
	if local, ok := at.Storage.(storage.Local); ok && good && local.MayBeGone(at.Location) {
		_, err := at.Storage.Stat(ctx, at.Location)
		good = !errors.Is(err, storage.ErrNotFound)
	}
	if !good {
		d.cache.forget(at.Pointer, at.Version)
		return nil
	}
	return kept
}

// readOnce reads, parses and caches a metadata document. Concurrent callers share one read.
func (d *Documents) readOnce(ctx context.Context, at Ref) (Document, error) {
	return d.cache.readOnce(ctx, at.Pointer, at.Version, func() (Document, error) {
		ctx, cancel := moorage.Detached(ctx, readTimeout) // others may wait for this read
		defer cancel()
		return d.Read(ctx, at.Kind, at.Warehouse, at.Storage, at.Location)
	})
}

// Find returns the live pointer of kind k called ident, and the document named in it. It returns
// the errors of directory.Find and of Current.
func (d *Documents) Find(ctx context.Context, k *directory.Kind, ident moorage.Identifier) (
	found *directory.Found, document Document, err error) {
	err = d.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		if found, err = d.directory.Find(ctx, k, ident); err != nil {
			return err
		}
		document, err = d.Current(ctx, found)
		return err
	})
	return found, document, err
}
