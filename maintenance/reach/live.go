package reach

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"moorage/manifest"
	"moorage/metadata"
)

// readsAtOnce is how many lists, or manifests, are read concurrently.
const readsAtOnce = 8

// Cost is how much was read, or would be read.
type Cost struct {
	Lists, Manifests int64
	Bytes            int64 // of manifests
	Files            int64 // live files that the manifests name, counted each time they are named
}

// Named yields the files that a document at location names itself: its own, earlier metadata files,
// manifest lists, manifests of snapshots without a list, and statistics.
func Named(document *metadata.Document, location string, yield func(path string)) {
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

// Live adds to set all files that a document at location reaches. It reads each list and each
// manifest of each snapshot to its end. If one cannot be read, Live returns an error, and set is
// useless. The error is an UnreadableError if it is permanent. set should be sized for the
// Cost.Files of Manifests.
func Live(ctx context.Context, files Reader, document *metadata.Document, location string, set *Set) error {
	Named(document, location, set.Add)
	manifests, err := manifestsOf(ctx, files, document, nil, always)
	if err != nil {
		return err
	}
	return LiveIn(ctx, files, manifests, set)
}

// LiveIn adds manifests, and the live files in them, to set.
func LiveIn(ctx context.Context, files Reader, manifests []manifest.Listed, set *Set) error {
	return liveIn(ctx, files, manifests, set, always)
}

// liveIn is LiveIn with pass, which converts each error.
func liveIn(ctx context.Context, files Reader, manifests []manifest.Listed, set *Set,
	pass func(error) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for _, m := range manifests {
		set.Add(m.Path())
		group.Go(func() error {
			return pass(eachEntry(ctx, files, m, func(entry manifest.Entry) error {
				if !entry.Removed {
					set.Add(entry.Path)
				}
				return nil
			}))
		})
	}
	return group.Wait()
}

// Manifests returns the manifests of all snapshots of document, each once, and the cost of reading
// them. wanted selects the snapshots; nil means all. The errors are the errors of Live.
func Manifests(ctx context.Context, files Reader, document *metadata.Document, wanted func(metadata.Snapshot) bool) (
	[]manifest.Listed, Cost, error) {
	manifests, err := manifestsOf(ctx, files, document, wanted, always)
	var cost Cost
	for snapshot := range document.Snapshots() {
		if snapshot.ManifestList != "" && (wanted == nil || wanted(snapshot)) {
			cost.Lists++
		}
	}
	for _, m := range manifests {
		cost.Manifests++
		cost.Bytes += m.Bytes
		cost.Files += m.Live()
	}
	return manifests, cost, err
}

// manifestsOf returns the manifests of the wanted snapshots, each once; at most as many as a list
// may have. pass converts each error.
func manifestsOf(ctx context.Context, files Reader, document *metadata.Document,
	wanted func(metadata.Snapshot) bool, pass func(error) error) ([]manifest.Listed, error) {
	var mu sync.Mutex // guards the two below; a leaf
	met := newMet()
	var manifests []manifest.Listed
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for snapshot := range document.Snapshots() {
		if wanted != nil && !wanted(snapshot) {
			continue
		}
		group.Go(func() error {
			return pass(eachManifest(ctx, files, snapshot, func(m manifest.Listed) error {
				mu.Lock()
				defer mu.Unlock()
				isNew, err := met.add(m.Path())
				if isNew {
					manifests = append(manifests, m)
				}
				return err
			}))
		})
	}
	err := group.Wait()
	return manifests, err
}

// Manifest is a manifest as a list names it.
type Manifest = manifest.Listed
