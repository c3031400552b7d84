package jobs

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"moorage/manifests"
	"moorage/metadata"
)

// readsAtOnce is the number of lists, or of manifests, that are read concurrently.
const readsAtOnce = 8

// readCost is the amount of data that was read, or would be read.
type readCost struct {
	Lists, Manifests int64
	Bytes            int64 // of manifests
	Files            int64 // live files in the manifests; a file counts each time it occurs
}

// eachNamed yields the files that a document at location refers to directly: the document's own
// file, earlier metadata files, manifest lists, manifests of snapshots without a list, and
// statistics.
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
// snapshots, as returned by readManifests. addReached reads each manifest to its end. If a manifest
// cannot be read, addReached returns an error, and set is incomplete. A permanent error is an
// unreadableError. The caller should size set for the readCost.Files that readManifests returns.
func addReached(ctx context.Context, files opener, document *metadata.Document, location string,
	listed []manifests.Listed, set *pathSet) error {
	eachNamed(document, location, set.Add)
	return addLive(ctx, files, listed, set)
}

// addLive adds the listed manifests, and the live files in them, to set.
func addLive(ctx context.Context, files opener, listed []manifests.Listed, set *pathSet) error {
	return addLivePassing(ctx, files, listed, set, sameError)
}

// addLivePassing is like addLive, but converts each error with pass.
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
// reading them. wanted selects the snapshots; nil means all. Errors: as for addReached.
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

// manifestsOf returns the manifests of the wanted snapshots, each once. It returns no more
// manifests than one list may have. pass converts each error.
func manifestsOf(ctx context.Context, files opener, document *metadata.Document,
	wanted func(metadata.Snapshot) bool, pass func(error) error) ([]manifests.Listed, error) {
	var mu sync.Mutex // guards the two variables below; no lock is taken under it
	met := newSeenManifests()
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

// readManifestsLeft is like readManifests, for a document that may belong to no catalog. It skips
// missing lists, such as the lists of expired snapshots. No file is reached through a missing list.
func readManifestsLeft(ctx context.Context, files opener, document *metadata.Document,
	wanted func(metadata.Snapshot) bool) ([]manifests.Listed, error) {
	return manifestsOf(ctx, files, document, wanted, unlessGone)
}

// addLiveLeft is like addLive, for the manifests that readManifestsLeft returns. It skips missing
// manifests.
func addLiveLeft(ctx context.Context, files opener, listed []manifests.Listed, set *pathSet) error {
	return addLivePassing(ctx, files, listed, set, unlessGone)
}

// unlessGone returns nil if err means that a file does not exist. Otherwise it returns err.
func unlessGone(err error) error {
	if unreadable, ok := errors.AsType[*unreadableError](err); ok && isMissing(unreadable) {
		return nil
	}
	return err
}

// sameError returns err.
func sameError(err error) error { return err }
