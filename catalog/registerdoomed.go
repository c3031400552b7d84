package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// refuseTransactions refuses a file that an unfinished transaction has written, because recovery
// deletes the file unless the transaction commits. A transaction without a record has already
// published its files or deleted them.
//
// An unreadable transaction record may name any file. While there is such a record,
// refuseTransactions accepts only the file named in the dropped table's pointer. Pointers name only
// published files, and the Apply requires that this pointer is unchanged.
func (p *parts) refuseTransactions(ctx context.Context, r *registration) error {
	published, err := r.holderNamesIt()
	if err != nil {
		return err
	}
	location, place := r.location, documents.Normalised(r.location)
	named := func(file string) bool { return documents.Normalised(file) == place } // by normalised location
	var unreadable error
	for entry, err := range txlog.New(p.ledger).All(ctx) {
		switch {
		case err != nil:
			return ledger.StepError("catalog.refuseTransactions", err)
		case entry.Unreadable != nil && published:
		case entry.Unreadable != nil:
			unreadable = unreadableTransaction(entry, location)
		case slices.ContainsFunc(entry.Surplus(), named):
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot register a metadata file that a transaction under way has written: %s", location)
		}
	}
	return unreadable
}

// refuseDoomed refuses a file that a commit may be about to delete. A commit deletes files that
// have left the metadata log. A failed commit also deletes its own file. See package documents.
func (p *parts) refuseDoomed(ctx context.Context, r *registration, path *directory.Path) error {
	if p.documents.IsTrimmed(r.pointer.Trims, r.location) {
		return moorage.Errorf(moorage.KindUnavailable,
			"The table is about to delete the metadata file %s, which left its metadata log; ask again in a minute",
			r.location)
	}
	if !p.documents.IsFresh(r.location) {
		return nil
	}
	wrote, err := p.wrote(ctx, r, path.Warehouse.ID)
	if err != nil || !wrote {
		return err
	}
	if p.isPublished(ctx, r, path) {
		return nil
	}
	return moorage.Errorf(moorage.KindUnavailable,
		"The metadata file %s was written a moment ago, and the table does not name it: "+
			"the commit that wrote it may be about to delete it; ask again in two minutes", r.location)
}

// wrote reports whether a server that uses this store chose the name of r's file. The server may
// have written the file for a table of warehouse, or of another warehouse that shares a root with
// it.
func (p *parts) wrote(ctx context.Context, r *registration, warehouse registry.ID) (wrote bool, err error) {
	uuid := r.document.UUID()
	if documents.WroteFor(warehouse, uuid, r.location) {
		return true, nil
	}
	err = p.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		other, err := ledger.Decode[registry.Warehouse](record)
		wrote = err == nil && documents.WroteFor(other.ID, uuid, r.location)
		return !wrote, err
	})
	return wrote, err
}

// isPublished reports whether the table or view of r names the file of r, or has it in its metadata
// log. If only a tombstone is left of the table or view, its last version counts. isPublished
// returns false if that version cannot be read.
func (p *parts) isPublished(ctx context.Context, r *registration, path *directory.Path) bool {
	if r.holder.Exists() {
		named, err := p.documents.IsNamed(ctx, documents.Lost{File: documents.File{
			Pointer: r.pointer.ID, Location: r.location, Document: r.document,
		}})
		return err == nil && named
	}
	last := r.left.MetadataLocation
	if last == "" || documents.Normalised(last) == documents.Normalised(r.location) {
		return last != ""
	}
	document, err := p.documents.Read(ctx, r.kind.Kind, r.ident.Warehouse, path.Storage, last)
	return err == nil && documents.Names(last, document, r.location)
}

// unreadableTransaction returns the error of a register while a transaction's record cannot be
// read.
func unreadableTransaction(entry txlog.Entry, location string) error {
	const cannot = "A transaction under way may have written %s, " +
		"because the record of transaction %s cannot be read; nothing was changed. "
	if entry.ID.IsZero() {
		return moorage.Errorf(moorage.KindUnavailable,
			cannot+"An operator can have that forgotten, by moorage doctor forget: %s",
			location, "without an id", entry.Unreadable)
	}
	return moorage.Errorf(moorage.KindUnavailable,
		cannot+"An operator can have that forgotten: moorage doctor forget", location, entry.ID)
}

// holderNamesIt reports whether the pointer with the table-uuid of r names the file.
func (r *registration) holderNamesIt() (bool, error) {
	if !r.holder.Exists() {
		return false, nil
	}
	holder, err := ledger.Decode[registry.Pointer](r.holder)
	return holder.MetadataLocation == r.location, err
}
