package reach

import (
	"context"
	"errors"

	"moorage/manifest"
	"moorage/metadata"
)

// ManifestsLeft is Manifests for a document that may belong to no catalog. It skips missing lists,
// because nothing reaches files through them any more. The lists of expired snapshots are missing.
func ManifestsLeft(ctx context.Context, files Reader, document *metadata.Document,
	wanted func(metadata.Snapshot) bool) ([]manifest.Listed, error) {
	return manifestsOf(ctx, files, document, wanted, unlessGone)
}

// LiveLeft is LiveIn for the manifests of such a document. It skips missing manifests.
func LiveLeft(ctx context.Context, files Reader, manifests []manifest.Listed, set *Set) error {
	return liveIn(ctx, files, manifests, set, unlessGone)
}

// unlessGone returns err, and nil if err means that a file does not exist.
func unlessGone(err error) error {
	if unreadable, ok := errors.AsType[*UnreadableError](err); ok && isMissing(unreadable) {
		return nil
	}
	return err
}

// always returns err.
func always(err error) error { return err }
