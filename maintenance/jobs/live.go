package jobs

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"moorage/manifests"
	"moorage/metadata"
)

// readsAtOnce is how many lists, or manifests, are read concurrently.
const readsAtOnce = 8

// readCost is how much was read, or would be read.
type readCost struct {
	Lists, Manifests int64
	Bytes            int64 // of manifests
	Files            int64 // live files in the manifests; a file counts each time it is named
}

// eachNamed yields the files that a document at location names directly: the document's own file,
// earlier metadata files, manifest lists, manifests of snapshots without a list, and statistics.
func eachNamed(document *metadata.Document, location string, yield func(path string)) {
	yield(location)
	for _, entry := range document.MetadataLog() {
		yield(entry.MetadataLocation)
	}
	for snapshot := range document.Snapshots() {
		if snapshot.ManifestList != "" {
			yield(snapshot.ManifestList)
		}
		for _, path := range snapshot.Manifests {
			yield(path)
		}
	}
	for _, path := range document.StatisticsFiles() {
		yield(path)
	}
}

// addReached adds to set all files that a document at location reaches: lists, manifests, data
// files, delete files, statistics, and earlier metadata files. listed has the manifests of all its
// snapshots, as readManifests returns them. It reads each of them to its end. If one cannot be
// read, addReached returns an error, and set is incomplete. The error is an unreadableError if it
// is permanent. The caller should size set for the readCost.Files that readManifests returns.
func addReached(ctx context.Context, files opener, document *metadata.Document, location string,
	listed []manifests.Listed, set *pathSet) error {
	eachNamed(document, location, set.Add)
	return addLive(ctx, files, listed, set)
}

// addLive adds the listed manifests, and the live files in them, to set.
func addLive(ctx context.Context, files opener, listed []manifests.Listed, set *pathSet) error {
	return addLivePassing(ctx, files, listed, set, sameError)
}

// addLivePassing does the same as addLive, but converts each error with pass.
func addLivePassing(ctx context.Context, files opener, listed []manifests.Listed, set *pathSet,
	pass func(error) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for _, m := range listed {
		set.Add(m.Path())
		group.Go(func() error {
			return pass(eachEntry(ctx, files, m, func(entry manifests.NamedFile) error {
				if !entry.Removed {
					set.Add(entry.Path)
				}
				return nil
			}))
		})
	}
	return group.Wait()
}

// readManifests returns the manifests of all snapshots of document, each once, and the cost of
// reading them. wanted selects the snapshots; nil means all. The errors are the errors of
// addReached.
func readManifests(ctx context.Context, files opener, document *metadata.Document,
	wanted func(metadata.Snapshot) bool) ([]manifests.Listed, readCost, error) {
	listed, err := manifestsOf(ctx, files, document, wanted, sameError)
	var cost readCost
	for snapshot := range document.Snapshots() {
		if snapshot.ManifestList != "" && (wanted == nil || wanted(snapshot)) {
			cost.Lists++
		}
	}
	for _, m := range listed {
		cost.Manifests++
		cost.Bytes += m.Bytes
		cost.Files += m.Live()
	}
	return listed, cost, err
}

// manifestsOf returns the manifests of the wanted snapshots, each once. It returns at most as many
// as a list may have. pass converts each error.
func manifestsOf(ctx context.Context, files opener, document *metadata.Document,
	wanted func(metadata.Snapshot) bool, pass func(error) error) ([]manifests.Listed, error) {
	var mu sync.Mutex // guards the two below; no lock is taken under it
	met := newMet()
	var listed []manifests.Listed
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for snapshot := range document.Snapshots() {
		if wanted != nil && !wanted(snapshot) {
			continue
		}
		group.Go(func() error {
			return pass(eachManifest(ctx, files, snapshot, func(m manifests.Listed) error {
				mu.Lock()
				defer mu.Unlock()
				isNew, err := met.add(m.Path())
				if isNew {
					listed = append(listed, m)
				}
				return err
			}))
		})
	}
	err := group.Wait()
	return listed, err
}

// readManifestsLeft is readManifests for a document that may belong to no catalog. It skips missing
// lists, for example the lists of expired snapshots. No file is reached through a missing list.
func readManifestsLeft(ctx context.Context, files opener, document *metadata.Document,
	wanted func(metadata.Snapshot) bool) ([]manifests.Listed, error) {
	return manifestsOf(ctx, files, document, wanted, unlessGone)
}

// addLiveLeft is addLive for the manifests that readManifestsLeft returns. It skips missing
// manifests.
func addLiveLeft(ctx context.Context, files opener, listed []manifests.Listed, set *pathSet) error {
	return addLivePassing(ctx, files, listed, set, unlessGone)
}

// unlessGone returns nil if err means that a file does not exist, and otherwise err.
func unlessGone(err error) error {
	if unreadable, ok := errors.AsType[*unreadableError](err); ok && isMissing(unreadable) {
		return nil
	}
	return err
}

// sameError returns err.
func sameError(err error) error { return err }
