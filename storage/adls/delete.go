package adls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"moorage/storage"
)

// deletesMax is how many blobs are deleted at a time. Azure's batch request does not support
// hierarchical accounts.
const deletesMax = 16

// Delete removes blobs, several at a time. A folder that is not empty stays, and so do the old
// versions of an account that keeps them.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	failures := make([]error, len(locations))
	room := make(chan struct{}, deletesMax)
	var under sync.WaitGroup
	for i, location := range locations {
		b, err := s.locate(ctx, location)
		switch {
		case errors.Is(err, storage.ErrNotFound): // no blob can have such a name
			continue
		case err != nil:
			failures[i] = err
			continue
		}
		room <- struct{}{}
		under.Go(func() {
			failures[i] = b.delete(ctx)
			<-room
		})
	}
	under.Wait()
	return errors.Join(failures...)
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
