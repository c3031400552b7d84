package documents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage/storage"
)

// tryOutEnd bounds how long TryOut tries to delete its file.
const tryOutEnd = 5 * time.Second

// TryOut writes a small file in a new folder below root, and reads it. It lists the folder if the
// store can list, and deletes the file. id must be unique, because it is a part of the folder's
// name. TryOut returns the first failure of the store, or nil. It always tries to delete the file.
func TryOut(ctx context.Context, store storage.Store, root, id string) (err error) {
	folder := storage.Trim(root) + "/moorage-probe-" + id
	location := folder + "/data"
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryOutEnd)
		defer cancel()
		if deleteErr := deleteTrial(ctx, store, location); deleteErr != nil && err == nil {
			err = fmt.Errorf("delete %s: %w", location, deleteErr)
		}
		if folders, ok := store.(storage.Folders); ok {
			_, _ = folders.RemoveEmptyFolder(ctx, folder, 0) // an empty folder does no harm
		}
	}()
	if err := store.Create(ctx, location, []byte(id)); err != nil {
		return fmt.Errorf("write %s: %w", location, err)
	}
	read, err := storage.ReadAll(ctx, store, location, int64(len(id)))
	if err == nil && string(read) != id {
		err = errors.New("its content differs from what was written")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", location, err)
	}
	lister, ok := store.(storage.Lister)
	if !ok {
		return nil
	}
	page, err := lister.List(ctx, folder, "", 1)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err == nil && len(page.Files) == 0:
		err = errors.New("a file that was written is not listed")
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	return nil
}
