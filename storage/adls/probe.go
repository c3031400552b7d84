package adls

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"moorage/storage"
	"moorage/storage/cloud"
)

// Probe checks that the containers of the roots exist and are writable. It writes a small blob
// below each root and deletes it. It returns ErrNotFound if a container is missing.
func (s *Store) Probe(ctx context.Context) error {
	var failures []error
	for _, root := range s.roots {
		failures = append(failures, s.probe(ctx, root))
	}
	return errors.Join(failures...)
}

func (s *Store) probe(ctx context.Context, root storage.Location) error {
	b, err := s.probed(root, newWriteID())
	if err != nil {
		return err
	}
	if err := b.create(ctx, nil); err != nil {
		if codeOf(err) == codeContainerNotFound {
			return fmt.Errorf("%w: there is no container called %s in the account %s", storage.ErrNotFound, b.container,
				b.account.name)
		}
		return explain(err)
	}
	return b.remove(ctx)
}

// probed returns the blob of a probe right below root, whose name ends in id.
func (s *Store) probed(root storage.Location, id string) (blobName, error) {
	root.Path = strings.TrimSuffix(root.Path, "/") + "/" + cloud.ProbePrefix + id
	return s.name(root)
}

// remove deletes a probe's blob, even if the probe's caller has gone.
func (b blobName) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloud.ProbeEndTimeout)
	defer cancel()
	if err := b.delete(ctx); err != nil {
		return fmt.Errorf("delete the files of the probe: %w", err)
	}
	return nil
}

// explain adds the name of the missing role to a refusal.
func explain(err error) error {
	switch {
	case statusOf(err) == http.StatusForbidden:
		return fmt.Errorf("%w: the identity of the server needs the role Storage Blob Data Contributor on the "+
			"container", err)
	case codeOf(err) == codeNoAuthentication:
		return fmt.Errorf("%w: there is neither an identity nor a key for the account", err)
	}
	return err
}
