package documents

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// lostFence is a duration. For this long after the name of a file was drawn, a register accepts
	// the file only if the table or view is known to have named it. The name itself shows when it
	// was drawn, so no record is needed.
	lostFence = 2 * time.Minute
	// lostBeginMax bounds when the deletion of a lost file may begin: at most this long after its
	// name was drawn. By then the deadline of a transaction has passed. The check and the deletion
	// that follow take at most deleteTimeout each, and end well before lostFence.
	lostBeginMax = 80 * time.Second
)

// Lost is the metadata file of a commit that is known to have failed. It cannot simply be deleted:
// another client may have registered it (perhaps the commit failed because of that), and later
// commits may be based on it.
type Lost struct {
	File
	Base string // the metadata file that the version would have followed; empty for the first
	// Lists are manifest lists that were written for the metadata file. Only that file names them,
	// so they are deleted or kept with it.
	Lists []storage.File
}

// IsFresh reports whether a Moorage server drew the name of a file so recently that a failed commit
// may be about to delete it. A name with a time in the future, from a clock that is ahead, also
// counts.
func (d *Documents) IsFresh(location string) bool { return d.isDrawnWithin(location, lostFence) }

func (d *Documents) isDrawnWithin(location string, limit time.Duration) bool {
	at, ok := drawnAt(location)
	return ok && d.now().Sub(at).Abs() < limit
}

// mayStillGo reports whether the deletion of a lost file may still begin. A file with an older name
// stays, because a register may soon accept it.
func (d *Documents) mayStillGo(ctx context.Context, file Lost) bool {
	if d.isDrawnWithin(file.Location, lostBeginMax) {
		return true
	}
	d.log.InfoContext(ctx, "the metadata file of a failed commit stays: the commit took too long",
		"location", file.Location)
	return false
}

// DeleteLostBehind deletes the file of an earlier attempt of a commit. It relies on what the
// present attempt has read: the table or view, and its current version. So attempts that race for a
// table need no extra reads.
func (d *Documents) DeleteLostBehind(ctx context.Context, file Lost, now *directory.Found, present Document) {
	if file.Pointer != now.Pointer.ID { // another table or view has the name now
		d.DeleteLost(ctx, file)
		return
	}
	unnamed := now.Pointer.MetadataLocation == file.Base ||
		!Names(now.Pointer.MetadataLocation, present, file.Location)
	if unnamed && d.mayStillGo(ctx, file) {
		d.delete(ctx, file)
	}
}

// NoteUnlooked is the log message for a file that stays because the check whether it is in use
// failed.
const NoteUnlooked = "could not check whether the metadata file of a failed commit is in use, it stays"

// DeleteLost deletes a file, unless it is in use. A file is in use if the pointer that now has its
// table-uuid names it, or has it in its metadata log. If that cannot be determined, the file stays
// as an orphan.
func (d *Documents) DeleteLost(ctx context.Context, file Lost) {
	if !d.mayStillGo(ctx, file) {
		return
	}
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

// delete deletes a file that no record names, with its lists. Registers still refuse the file
// during the deletion. A failure only leaves orphans.
func (d *Documents) delete(ctx context.Context, file Lost) {
	ctx, cancel := moorage.Detached(ctx, deleteTimeout)
	defer cancel()
	files := make([]string, 0, 1+len(file.Lists))
	for _, list := range file.Lists {
		files = append(files, list.Location)
	}
	if err := deleteFiles(ctx, file.Storage, append(files, file.Location)); err != nil {
		d.log.WarnContext(ctx, "could not delete the metadata file of a failed commit",
			"location", file.Location, "error", err)
	}
}

// IsNamed reports whether a table or view names or logs a file. A register claims the table-uuid in
// the file for a pointer, so no other pointer can name the file.
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
	return err == nil && Names(pointer.MetadataLocation, present, file.Location), err
}

// Names reports whether file equals location, where document is stored, or is in the metadata log
// of document. It compares normalised locations.
func Names(location string, document Document, file string) bool {
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
