package reach

import (
	"context"
	"errors"

	"moorage/manifest"
	"moorage/metadata"
)

// ManifestsLeft is Manifests of a document that no catalog may know. Lists that are gone are passed
// over: nobody reaches anything by them any more. Those of snapshots that expired are.
func ManifestsLeft(ctx context.Context, files Reader, document *metadata.Document,
	wanted func(metadata.Snapshot) bool) ([]manifest.Listed, error) {
	return manifestsOf(ctx, files, document, wanted, unlessGone)
}

// LiveLeft is LiveIn of manifests of such a document. Manifests that are gone are passed over.
func LiveLeft(ctx context.Context, files Reader, manifests []manifest.Listed, set *Set) error {
	return liveIn(ctx, files, manifests, set, unlessGone)
}

// unlessGone returns err, unless it says that a file is not there.
func unlessGone(err error) error {
	if unreadable, ok := errors.AsType[*UnreadableError](err); ok && isMissing(unreadable) {
		return nil
	}
	return err
}

// always returns err.
func always(err error) error { return err }
