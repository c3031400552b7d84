package documents

import (
	"context"
	"errors"
	"slices"

	"moorage"

	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// deleteFiles is the only call of storage.Store.Delete in the server. Each function that calls it
// says why no reader can need the files any more.
func deleteFiles(ctx context.Context, store storage.Store, files []string) error {
	return store.Delete(ctx, files...)
}

// deleteTrial deletes the file that TryOut wrote. Nobody can need it: its name was drawn for that,
// and no record names it.
func deleteTrial(ctx context.Context, store storage.Store, location string) error {
	return deleteFiles(ctx, store, []string{location})
}

// unpublishedBatchMax is how many files DeleteUnpublished deletes in one call.
const unpublishedBatchMax = 1000

// DeleteUnpublished deletes the files that a dead transaction wrote and did not publish. That is
// safe because the transaction is fenced: no pointer names, ever named or will name them. A
// register refuses the files of a transaction whose record is there. Files outside of what store
// reaches were refused when they were to be written, so it passes over them.
func DeleteUnpublished(ctx context.Context, store storage.Store, files []string) error {
	for batch := range slices.Chunk(files, unpublishedBatchMax) {
		err := deleteFiles(ctx, store, batch)
		if !isUnreachable(err) {
			if err != nil {
				return err
			}
			continue
		}
		for _, file := range batch { // one by one
			if err := deleteFiles(ctx, store, []string{file}); err != nil && !isUnreachable(err) {
				return err
			}
		}
	}
	return nil
}

func isUnreachable(err error) bool {
	return errors.Is(err, storage.ErrOutside) || errors.Is(err, storage.ErrLocation)
}

// DeletePurged deletes files of a dropped table that is being purged. That is safe because the
// table cannot come back from that state, and its locations pass on to no other table before the
// purge is over. So nothing can name the files again after the caller's look, however long the
// storage takes. The caller reads the pointer and its claims before each batch, and
// leaves out what lies elsewhere.
func DeletePurged(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// Lost is the metadata file of a commit that is known to have failed. It cannot simply be deleted:
// another client may have registered it (perhaps that made the commit fail), and later commits may
// build on it.
type Lost struct {
	File
	Base string // the metadata file that the version would have followed; empty for the first
	// Lists are manifest lists that were written for it. Nothing but the metadata file names them,
	// so they go with it or stay with it.
	Lists []storage.File
}

// DeleteLostBehind deletes the file of an earlier attempt of work, by what this one has read since
// then: the table or view as it is now, and its present version. So those who race for a table need
// not look for themselves.
func (d *Documents) DeleteLostBehind(ctx context.Context, file Lost, now *directory.Found, present Document) {
	if file.Pointer != now.Pointer.ID { // the name leads to another one by now
		d.DeleteLost(ctx, file)
		return
	}
	if now.Pointer.MetadataLocation == file.Base || !namesFile(now.Pointer.MetadataLocation, present, file.Location) {
		d.delete(ctx, file)
	}
}

// NoteUnlooked is what the log says of a file that stays because nobody could look whether it is in
// use.
const NoteUnlooked = "could not look whether the metadata file of a commit that did not happen is in use, it stays"

// DeleteLost deletes a file unless the pointer that has its uuid by now names it, or has a version
// that does. If that cannot be told the file stays: an orphan, and no more.
func (d *Documents) DeleteLost(ctx context.Context, file Lost) {
	ctx, cancel := moorage.Detached(ctx, deleteTimeout)
	defer cancel()
	named, err := d.IsNamed(ctx, file)
	switch {
	case err != nil:
		d.log.WarnContext(ctx, NoteUnlooked, "location", file.Location, "error", err)
	case !named:
		d.delete(ctx, file)
	}
}

// delete deletes a file that nothing names, with its lists. Failing to do so leaves orphans and no
// more.
func (d *Documents) delete(ctx context.Context, file Lost) {
	ctx, cancel := moorage.Detached(ctx, deleteTimeout)
	defer cancel()
	files := make([]string, 0, 1+len(file.Lists))
	for _, list := range file.Lists {
		files = append(files, list.Location)
	}
	if err := deleteFiles(ctx, file.Storage, append(files, file.Location)); err != nil {
		d.log.WarnContext(ctx, "could not delete the metadata file of a commit that did not happen",
			"location", file.Location, "error", err)
	}
}

// IsNamed reports whether a file is that of a version of a table or view. A register claims its
// uuid, for the pointer that had it or another one.
func (d *Documents) IsNamed(ctx context.Context, file Lost) (bool, error) {
	records, err := d.ledger.Get(ctx, registry.UUIDKey(file.Document.UUID()), registry.PointerKey(file.Pointer))
	if err != nil || !records[0].Exists() {
		return false, err
	}
	claim, err := ledger.Decode[registry.TableUUIDClaim](records[0])
	if err != nil {
		return false, err
	}
	holder := records[1]
	if claim.Pointer != file.Pointer {
		if records, err = d.ledger.Get(ctx, registry.PointerKey(claim.Pointer)); err != nil || !records[0].Exists() {
			return false, err
		}
		holder = records[0]
	}
	pointer, err := ledger.Decode[registry.Pointer](holder)
	if err != nil || pointer.MetadataLocation == file.Base {
		return false, err
	}
	store, giveBack, err := d.directory.StorageOf(ctx, pointer, holder.State)
	if err != nil {
		return false, err
	}
	defer giveBack()
	present, err := d.Of(ctx, RefOf(pointer, store))
	return err == nil && namesFile(pointer.MetadataLocation, present, file.Location), err
}

// namesFile reports whether a version, which is in document, at location, is in file or logs it,
// however each is spelled.
func namesFile(location string, document Document, file string) bool {
	file = Normalised(file)
	if Normalised(location) == file {
		return true
	}
	table, ok := document.(*metadata.Document)
	if !ok { // a view has no metadata log
		return false
	}
	for _, entry := range table.MetadataLog() {
		if Normalised(entry.MetadataLocation) == file {
			return true
		}
	}
	return false
}

// DeleteExpired deletes files that only expired snapshots of a live table reached. That is safe
// because the snapshots are gone for good: no commit can bring them back, and the caller has looked
// before each batch at all that was committed since. ctx ends soon after that look. It leaves out
// what the present version reaches, metadata files, and what lies outside the table's claims.
func DeleteExpired(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// DeleteOrphans deletes files in the claims of a live table that no version of it reached, neither
// when they were found nor now. That is safe because they are as old as they were found, days ago:
// a commit that was under way then has ended, or names them now. The caller has looked before each
// batch, and ctx ends soon after that look.
func DeleteOrphans(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// DeleteJobFiles deletes the files that a maintenance job kept in folder, which is its own. That is
// safe because the job has ended, or never began: no record names them, and no other job writes
// there. A file elsewhere is an error, and nothing is deleted.
func DeleteJobFiles(ctx context.Context, store storage.Store, folder string, files []string) error {
	for _, file := range files {
		if within, err := storage.Within(folder, file); err != nil || !within {
			return moorage.Errorf(moorage.KindInternal, "The file %s is not in the folder of the job, %s", file, folder)
		}
	}
	return deleteFiles(ctx, store, files)
}

// DeleteOwner deletes the file that says which store removes orphans in a warehouse, for an
// operator who says that this store does from now on. No record names it.
func DeleteOwner(ctx context.Context, store storage.Store, file string) error {
	return deleteFiles(ctx, store, []string{file})
}
