package documents

import (
	"context"
	"errors"
	"slices"

	"moorage"
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
