package documents

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/storage"
)

// deleteFiles is the only call of storage.Store.Delete in the server. The comment of each caller
// explains why no reader can need the files any more.
func deleteFiles(ctx context.Context, store storage.Store, files []string) error {
	return store.Delete(ctx, files...)
}

// deleteTrial deletes the file that TryOut wrote. No reader can need it: its name is fresh, and no
// record names it.
func deleteTrial(ctx context.Context, store storage.Store, location string) error {
	return deleteFiles(ctx, store, []string{location})
}

// unpublishedBatchMax is the number of files that DeleteUnpublished deletes in one call.
const unpublishedBatchMax = 1000

// DeleteUnpublished deletes the files that a dead transaction wrote and did not publish. That is
// safe because the transaction is fenced: no pointer names, ever named or will name them, and a
// register refuses files of a transaction that still has a record. DeleteUnpublished skips files
// that store cannot reach, because the transaction could not write them either.
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

// DeletePurged deletes files of a dropped table in state purging. That is safe because the table
// cannot leave that state, and no other table can claim its locations before the purge is over. So
// after the caller's check no record can name the files again, however long the storage takes.
// Before each batch the caller reads the pointer and its claims, and omits files outside the
// claimed locations.
func DeletePurged(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// DeleteExpired deletes files that were reached only by expired snapshots of a live table. That is
// safe because no commit can restore the snapshots. Before each batch the caller has checked
// everything that was committed since the expiry, and ctx ends soon after that check. The caller
// omits files reached by the current version, metadata files, and files outside the table's claims.
func DeleteExpired(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// DeleteOrphans deletes files within the claims of a live table that no version of the table
// reached when they were found, and that none reaches now. That is safe because they were found
// days ago: a commit that was running then has failed, or a version now reaches its files. The
// caller has checked before each batch, and ctx ends soon after that check.
func DeleteOrphans(ctx context.Context, store storage.Store, files []string) error {
	return deleteFiles(ctx, store, files)
}

// DeleteJobFiles deletes the files that a maintenance job keeps for itself in folder. That is safe
// because the job has ended, or never began: no record names the files, and no other job writes to
// folder. If a file is not in folder, it returns an error and deletes nothing.
func DeleteJobFiles(ctx context.Context, store storage.Store, folder string, files []string) error {
	for _, file := range files {
		if within, err := storage.Within(folder, file); err != nil || !within {
			return moorage.Errorf(moorage.KindInternal, "The file %s is not in the folder of the job, %s", file, folder)
		}
	}
	return deleteFiles(ctx, store, files)
}

// DeleteOwner deletes the file that names the owner of a warehouse: the store that removes orphans
// there. An operator requests the deletion to make this store the owner. No record names the file.
func DeleteOwner(ctx context.Context, store storage.Store, file string) error {
	return deleteFiles(ctx, store, []string{file})
}
