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
	// lostFence is for how long after its name was drawn a register takes a file only if the table
	// or view is known to have named it. The name itself shows the time, so no record is written.
	lostFence = 2 * time.Minute
	// lostBeginMax is how long after its name was drawn the deletion of a lost file may begin: a
	// transaction has passed its deadline by then. A look and a deletion follow, each of at most
	// deleteTimeout. They end well before lostFence.
	lostBeginMax = 80 * time.Second
)

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

// IsFresh reports whether a server of this kind drew the name of a file so lately that a commit may
// be about to delete it, if that failed. A name from a clock that is ahead counts likewise.
func (d *Documents) IsFresh(location string) bool { return d.isDrawnWithin(location, lostFence) }

func (d *Documents) isDrawnWithin(location string, limit time.Duration) bool {
	at, ok := drawnAt(location)
	return ok && d.now().Sub(at).Abs() < limit
}

// mayStillGo reports whether the deletion of a lost file may begin. A file that is too old for that
// stays: a register may take it soon.
func (d *Documents) mayStillGo(ctx context.Context, file Lost) bool {
	if d.isDrawnWithin(file.Location, lostBeginMax) {
		return true
	}
	d.log.InfoContext(ctx, "the metadata file of a commit that did not happen stays: the commit took too long",
		"location", file.Location)
	return false
}

// DeleteLostBehind deletes the file of an earlier attempt of work, by what this one has read since
// then: the table or view as it is now, and its present version. So those who race for a table need
// not look for themselves.
func (d *Documents) DeleteLostBehind(ctx context.Context, file Lost, now *directory.Found, present Document) {
	if file.Pointer != now.Pointer.ID { // the name leads to another one by now
		d.DeleteLost(ctx, file)
		return
	}
	unnamed := now.Pointer.MetadataLocation == file.Base ||
		!Names(now.Pointer.MetadataLocation, present, file.Location)
	if unnamed && d.mayStillGo(ctx, file) {
		d.delete(ctx, file)
	}
}

// NoteUnlooked is what the log says of a file that stays because nobody could look whether it is in
// use.
const NoteUnlooked = "could not look whether the metadata file of a commit that did not happen is in use, it stays"

// DeleteLost deletes a file unless the pointer that has its uuid by now names it, or has a version
// that does. If that cannot be told the file stays: an orphan, and no more.
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

// delete deletes a file that nothing names, with its lists. No register takes the file while that
// lasts. Failing to do so leaves orphans and no more.
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
	return err == nil && Names(pointer.MetadataLocation, present, file.Location), err
}

// Names reports whether a version, which is in document, at location, is in file or logs it,
// however each is spelled.
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
