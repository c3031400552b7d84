package catalog

import (
	"context"

	"moorage"

	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// unwanted is a metadata file that was written, or may have been, for a version that certainly will never be. But whoever saw it may have
// registered it meanwhile, which is why the commit lost, and others may have committed on top of that.
type unwanted struct {
	metadataFile
	base string // the metadata file that the version would have followed; empty for the first
}

// discardBehind deletes the file of an earlier attempt of work, by what this one has read since then: the table or view as it is now, and
// its present version. So those who race for a table need not look for themselves.
func (c *Catalog) discardBehind(ctx context.Context, work *commit, now *directory.Found, present document) {
	file := work.unwanted
	if file == nil {
		return
	}
	work.unwanted = nil
	if file.pointer != now.Pointer.ID { // the name leads to another one by now
		c.discard(ctx, *file)
		return
	}
	if now.Pointer.MetadataLocation == file.base || !namesFile(now.Pointer.MetadataLocation, present, file.location) {
		c.delete(ctx, file.metadataFile)
	}
}

// noteUnlooked is what the log says of a file that stays because nobody could look whether it is in use.
const noteUnlooked = "could not look whether the metadata file of a commit that did not happen is in use, it stays"

// discard deletes a file unless the pointer that has its uuid by now names it, or has a version that does. If that cannot be told the file stays: an
// orphan, and no more.
func (c *Catalog) discard(ctx context.Context, file unwanted) {
	ctx, cancel := moorage.Detached(ctx, settleTimeout)
	defer cancel()
	named, err := c.isNamed(ctx, file)
	switch {
	case err != nil:
		c.log.WarnContext(ctx, noteUnlooked, "location", file.location, "error", err)
	case !named:
		c.delete(ctx, file.metadataFile)
	}
}

// delete deletes a file that nothing names. Failing to do so leaves an orphan and no more.
func (c *Catalog) delete(ctx context.Context, file metadataFile) {
	ctx, cancel := moorage.Detached(ctx, settleTimeout)
	defer cancel()
	if err := file.storage.Delete(ctx, file.location); err != nil {
		c.log.WarnContext(ctx, "could not delete the metadata file of a commit that did not happen", "location", file.location, "error", err)
	}
}

// isNamed tells whether a file is that of a version of a table or view. Whoever registers it claims its uuid, for the pointer that had it
// or another one.
func (c *Catalog) isNamed(ctx context.Context, file unwanted) (bool, error) {
	records, err := c.ledger.Get(ctx, registry.UUIDKey(file.document.UUID()), registry.PointerKey(file.pointer))
	if err != nil || !records[0].Exists() {
		return false, err
	}
	claim, err := ledger.Decode[registry.TableUUIDClaim](records[0])
	if err != nil {
		return false, err
	}
	holder := records[1]
	if claim.Pointer != file.pointer {
		if records, err = c.ledger.Get(ctx, registry.PointerKey(claim.Pointer)); err != nil || !records[0].Exists() {
			return false, err
		}
		holder = records[0]
	}
	pointer, err := ledger.Decode[registry.Pointer](holder)
	if err != nil || pointer.MetadataLocation == file.base {
		return false, err
	}
	store, giveBack, err := c.directory.StorageOf(ctx, pointer, holder.State)
	if err != nil {
		return false, err
	}
	defer giveBack()
	present, err := c.document(ctx, placeOfDocument(pointer, store))
	return err == nil && namesFile(pointer.MetadataLocation, present, file.location), err
}

// namesFile tells whether a version, which is in document, at location, is in file or logs it, however each is spelled.
func namesFile(location string, document document, file string) bool {
	file = normalised(file)
	if normalised(location) == file {
		return true
	}
	table, ok := document.(*metadata.Document)
	if !ok { // a view has no metadata log
		return false
	}
	for _, entry := range table.MetadataLog() {
		if normalised(entry.MetadataLocation) == file {
			return true
		}
	}
	return false
}
