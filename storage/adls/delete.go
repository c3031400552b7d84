package adls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"moorage/storage"
	"moorage/storage/cloud"
)

// deletesMax is the number of blobs that are deleted at a time. Azure's batch request does not
// support hierarchical accounts.
const deletesMax = 16

// Delete removes blobs, several at a time. A folder that is not empty stays. If the account keeps
// old versions of blobs, they stay too.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	blobs, failures := cloud.Located(locations, func(location string) (blobName, error) {
		return s.locate(ctx, location)
	})
	return errors.Join(append(failures, deleteAll(ctx, blobs)...)...)
}

// deleteAll removes blobs, and returns the result of each.
func deleteAll(ctx context.Context, blobs []blobName) []error {
	results := make([]error, len(blobs))
	room := make(chan struct{}, deletesMax)
	var under sync.WaitGroup
	for i, b := range blobs {
		room <- struct{}{}
		under.Go(func() {
			results[i] = b.delete(ctx)
			<-room
		})
	}
	under.Wait()
	return results
}

// delete removes a blob.
func (b blobName) delete(ctx context.Context) error {
	_, err := b.client().Delete(ctx, nil)
	if err == nil {
		return nil
	}
	err = translate(b, shorten(err))
	if errors.Is(err, storage.ErrNotFound) || codeOf(err) == codeDirectoryIsNotEmpty {
		return nil
	}
	return fmt.Errorf("delete %w", err)
}
