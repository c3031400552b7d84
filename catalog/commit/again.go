package commit

import (
	"cmp"
	"context"
	"errors"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// isGone reports whether err proves that the object of a repeated success no longer exists. A
// metadata file that this node cannot find is no proof: the table may still exist. A client that
// gets a refusal for its commit deletes the data files that it wrote for that commit.
func isGone(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchWarehouse, moorage.KindNoSuchTable, moorage.KindNoSuchView:
		return true
	}
	return false
}

// answerAgain returns the answer of a mutation, given its stored outcome.
func (p *Pipeline) answerAgain(ctx context.Context, stored registry.Outcome) (Outcome, error) {
	switch {
	case stored.Failure != nil:
		failure := stored.Failure
		return Outcome{}, &moorage.Error{Op: "commit.answerAgain", Kind: failure.Kind, Message: failure.Message}
	case stored.Table != nil:
		again, err := p.versionAgain(ctx, directory.Table(), *stored.Table)
		return Outcome{Version: again}, err
	case stored.View != nil:
		again, err := p.versionAgain(ctx, directory.View(), *stored.View)
		return Outcome{Version: again}, err
	case stored.Changed != nil:
		return Outcome{Changed: stored.Changed}, nil
	}
	return Outcome{Properties: stored.Properties}, nil
}

// versionAgain returns a version of a table or view that was returned before. If a later trim or an
// engine has deleted the metadata file of that version, it returns the present version. A dropped
// table can also be returned: its purge waits until the last key has expired (see
// registry.Pointer). The warehouse may be dropped too, and a new warehouse may have its name.
func (p *Pipeline) versionAgain(ctx context.Context, k *directory.Kind,
	answered registry.TableVersion) (present *Version, err error) {
	path, err := p.directory.Path(ctx, answered.Ident.Warehouse, nil)
	if err == nil {
		present, err = p.versionAt(ctx, k, answered, path.Storage)
	}
	if err == nil || !isElsewhere(err) {
		return present, err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	err = p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		present, err = p.presentVersion(ctx, k, answered)
		return err
	})
	return present, err
}

// versionAt returns a version that was returned before, from store.
func (p *Pipeline) versionAt(ctx context.Context, k *directory.Kind, answered registry.TableVersion,
	store storage.Store) (*Version, error) {
	edition := documents.FileVersion(answered.MetadataLocation, answered.Registration)
	document, err := p.documents.Of(ctx, documents.Ref{
		Kind: k, Warehouse: answered.Ident.Warehouse, Pointer: answered.Pointer, UUID: answered.TableUUID,
		Storage: store, Location: answered.MetadataLocation, Version: edition,
	})
	if err != nil {
		return nil, err
	}
	return &Version{
		Ident: answered.Ident, Pointer: answered.Pointer, Location: answered.MetadataLocation, Document: document,
		Storage: store, Registration: answered.Registration,
	}, nil
}

// isElsewhere reports whether err means that a file was not found at its location. The file may be
// in another storage, or deleted.
func isElsewhere(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindNoSuchWarehouse:
		return true
	}
	return errors.Is(err, storage.ErrOutside)
}

// presentVersion returns the version in answered if its file is in the present storage of the
// table. Otherwise it returns the present version of the table, even if the table was renamed.
func (p *Pipeline) presentVersion(ctx context.Context, k *directory.Kind, answered registry.TableVersion) (
	*Version, error) {
	records, err := p.ledger.Get(ctx, registry.PointerKey(answered.Pointer))
	if err != nil {
		return nil, err
	}
	if !records[0].Exists() {
		return nil, k.NoSuch(answered.Ident)
	}
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	if err != nil {
		return nil, err
	}
	store, giveBack, err := p.directory.StorageOf(ctx, pointer, records[0].State)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	if found, err := p.versionAt(ctx, k, answered, store); err == nil || !isElsewhere(err) {
		return found, err
	}
	document, err := p.documents.Of(ctx, documents.RefOf(pointer, store))
	if moorage.KindOf(err) == moorage.KindNotFound {
		if now, readErr := p.ledger.Get(ctx, records[0].Key); readErr != nil || now[0].ETag != records[0].ETag {
			return nil, cmp.Or(readErr, ledger.ErrRetry) // the file was trimmed after the pointer was read
		}
		if records[0].State == registry.StatePurging {
			return nil, k.NoSuch(answered.Ident)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Version{
		Ident: answered.Ident, Pointer: pointer.ID, Location: pointer.MetadataLocation, Document: document,
		Storage: store, Registration: pointer.Registration, Labels: pointer.Labels,
	}, nil
}
