package catalog

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"moorage/manifest"
	"moorage/metadata"
	"moorage/storage"
)

// namedSeenMax bounds how many paths are remembered of those that were met, in order not to meet them
// again; about 10 MB.
const namedSeenMax = 1 << 18

// namedFiles are the files that a version of a table names.
type namedFiles struct {
	store    storage.Store
	document *metadata.Document
	// unread is told of a manifest, or a list of them, that is missing, damaged or out of reach, so that nobody can tell what it names. Its
	// error ends the walk. Any other failure to read one ends it in any case.
	unread func(ctx context.Context, path string, cause error) error
}

// visited are the lists and manifests that a walk has met.
type visited struct{ lists, manifests *recent }

func newVisited() visited { return visited{newRecent(), newRecent()} }

// eachManifest calls do with every manifest of every snapshot that is not in met; with one that several snapshots share, once, as far as
// they can be remembered. What it has called do with is in met then.
func (n *namedFiles) eachManifest(ctx context.Context, met visited, do func(manifest.Manifest) error) error {
	for snapshot := range n.document.Snapshots() {
		if list := snapshot.ManifestList; list != "" && met.lists.has(list) {
			continue
		}
		manifests, err := n.manifestsOf(ctx, snapshot)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			if met.manifests.has(m.Path()) {
				continue
			}
			if err := do(m); err != nil {
				return err
			}
			met.manifests.add(m.Path())
		}
		met.lists.add(snapshot.ManifestList)
	}
	return nil
}

// manifestsOf returns the manifests of a snapshot; none if its list cannot be read and never will be.
func (n *namedFiles) manifestsOf(ctx context.Context, snapshot metadata.Snapshot) ([]manifest.Manifest, error) {
	var manifests []manifest.Manifest
	for _, path := range snapshot.Manifests {
		manifests = append(manifests, manifest.Unlisted(path, snapshot.ID))
	}
	if snapshot.ManifestList == "" {
		return manifests, nil
	}
	file, err := n.open(ctx, snapshot.ManifestList)
	if file == nil {
		return nil, err
	}
	defer file.Close()
	manifests, err = manifest.ReadList(file)
	if err != nil {
		return nil, n.passOver(ctx, file, err)
	}
	return manifests, nil
}

// eachFile calls do with the files that a manifest names, whether they are live or removed.
func (n *namedFiles) eachFile(ctx context.Context, m manifest.Manifest, do func(path string) error) error {
	file, err := n.open(ctx, m.Path())
	if file == nil {
		return err
	}
	defer file.Close()
	for path, err := range m.Files(file) {
		if err != nil {
			return n.passOver(ctx, file, err)
		}
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}

// eachList, eachStatistics and eachEarlierMetadata call do with the files that the document itself names.

func (n *namedFiles) eachList(do func(path string) error) error {
	for snapshot := range n.document.Snapshots() {
		if snapshot.ManifestList == "" {
			continue
		}
		if err := do(snapshot.ManifestList); err != nil {
			return err
		}
	}
	return nil
}

func (n *namedFiles) eachStatistics(do func(path string) error) error {
	for _, path := range n.document.StatisticsFiles() {
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}

func (n *namedFiles) eachEarlierMetadata(do func(path string) error) error {
	for _, entry := range n.document.MetadataLog() {
		if err := do(entry.MetadataLocation); err != nil {
			return err
		}
	}
	return nil
}

// watchedFile remembers an error of the storage, which the decoder may hide in its own.
type watchedFile struct {
	io.ReadCloser
	path string
	err  error
}

func (f *watchedFile) Read(into []byte) (int, error) {
	n, err := f.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// open opens a file to be read; nil, without an error, if it is not there or out of reach, now and later.
func (n *namedFiles) open(ctx context.Context, path string) (*watchedFile, error) {
	file, _, err := n.store.Open(ctx, path)
	switch {
	case err == nil:
		return &watchedFile{ReadCloser: file, path: path}, nil
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		return nil, n.unread(ctx, path, err)
	}
	return nil, err
}

// passOver decides what becomes of a walk that could not read file to its end: it ends if the storage failed, and else as unread says.
func (n *namedFiles) passOver(ctx context.Context, file *watchedFile, err error) error {
	if file.err != nil {
		return fmt.Errorf("read %s: %w", file.path, file.err)
	}
	return n.unread(ctx, file.path, err)
}

// recent is a set of the paths that were added lately. It has their hashes, which are long enough never to be those of another path.
type recent struct {
	seeds [2]maphash.Seed
	set   map[[2]uint64]struct{}
}

func newRecent() *recent {
	return &recent{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, make(map[[2]uint64]struct{})}
}

// add reports whether path is new, as far as is remembered.
func (r *recent) add(path string) bool {
	if r.has(path) {
		return false
	}
	if len(r.set) >= namedSeenMax {
		clear(r.set)
	}
	r.set[r.hash(path)] = struct{}{}
	return true
}

func (r *recent) has(path string) bool {
	_, ok := r.set[r.hash(path)]
	return ok
}

func (r *recent) hash(path string) [2]uint64 {
	return [2]uint64{maphash.String(r.seeds[0], path), maphash.String(r.seeds[1], path)}
}
