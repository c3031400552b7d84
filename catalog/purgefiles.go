package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"moorage/metadata"
	"moorage/storage"
)

const (
	// purgeBatchMax is the largest batch that purgeFiles yields.
	purgeBatchMax = 1000
	// purgeSeenMax bounds how many paths a purge remembers in order not to meet them
	// again; about 50 MB.
	purgeSeenMax = 1 << 18
)

// purgeFiles yields, in batches of at most purgeBatchMax, the locations of all files that document
// names and that lie within claims, which are normalised locations. yield deletes them; its
// error ends the purge.
//
// Files are yielded before those that name them: data and delete files, then manifests, manifest
// lists, statistics, earlier metadata files and, alone and last, the file at metadataLocation,
// which is document's own. So a purge that was cut short at any point finds, when it is done again
// from the start, everything that is left. With gc.enabled=false data and delete files stay and the
// rest goes, as in the Java implementation.
//
// A manifest or manifest list that is missing, damaged or out of reach is logged and passed over:
// what only it names stays. Any other failure to read one ends the purge, to be done again.
func purgeFiles(ctx context.Context, log *slog.Logger, store storage.Store, document *metadata.Document,
	metadataLocation string, claims []string, yield func(batch []string) error,
) error {
	p := purger{log: log, store: store, document: document, yield: yield, told: make(recent)}
	for _, claim := range claims {
		parsed, err := storage.Parse(claim)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		p.claims = append(p.claims, parsed)
	}
	own, err := storage.Parse(metadataLocation)
	if err != nil {
		return fmt.Errorf("metadata location: %w", err)
	}
	p.own = own
	for _, step := range []func(context.Context) error{
		p.contentFiles, p.manifests, p.manifestLists, p.statistics, p.earlierMetadata,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.kept > 0 {
		log.InfoContext(ctx, "purge leaves files outside the table's own locations", "files", p.kept)
	}
	if !p.isClaimed(own) {
		return nil
	}
	return yield([]string{metadataLocation})
}

// purger is one run of purgeFiles.
type purger struct {
	log      *slog.Logger
	store    storage.Store
	document *metadata.Document
	own      storage.Location // of the document
	claims   []storage.Location
	yield    func(batch []string) error

	batch []string
	kept  int    // files that are named but not within claims
	told  recent // files that the log says were passed over: lists are read twice
}

// contentFiles adds data and delete files, unless the table says that others may need them.
func (p *purger) contentFiles(ctx context.Context) error {
	if value, ok := p.document.Property("gc.enabled"); ok && !strings.EqualFold(value, "true") {
		p.log.InfoContext(ctx, "purge leaves data files: gc.enabled is not true", "location", p.document.Location())
		return nil
	}
	added := make(recent)
	return p.eachManifest(ctx, func(manifest iceberg.ManifestFile) error { return p.filesOf(ctx, manifest, added) })
}

// filesOf adds the files that a manifest names, be they live or removed, and that are not in added.
func (p *purger) filesOf(ctx context.Context, manifest iceberg.ManifestFile, added recent) error {
	file, err := p.open(ctx, manifest.FilePath())
	if file == nil {
		return err
	}
	defer file.Close()
	for path, err := range entriesOf(manifest, file) {
		if err != nil {
			return p.passOver(ctx, file, err)
		}
		if !added.add(path) {
			continue
		}
		if err := p.add(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *purger) manifests(ctx context.Context) error {
	return p.eachManifest(ctx, func(manifest iceberg.ManifestFile) error { return p.add(manifest.FilePath()) })
}

func (p *purger) manifestLists(context.Context) error {
	for snapshot := range p.document.Snapshots() {
		if snapshot.ManifestList == "" {
			continue
		}
		if err := p.add(snapshot.ManifestList); err != nil {
			return err
		}
	}
	return nil
}

func (p *purger) statistics(context.Context) error {
	for _, path := range p.document.StatisticsFiles() {
		if err := p.add(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *purger) earlierMetadata(context.Context) error {
	for _, entry := range p.document.MetadataLog() {
		if err := p.add(entry.MetadataLocation); err != nil {
			return err
		}
	}
	return nil
}

// eachManifest calls do with every manifest of every snapshot; with one that several snapshots
// share, once, as far as they can be remembered.
func (p *purger) eachManifest(ctx context.Context, do func(iceberg.ManifestFile) error) error {
	seen := make(recent)
	for snapshot := range p.document.Snapshots() {
		manifests, err := p.manifestsOf(ctx, snapshot)
		if err != nil {
			return err
		}
		for _, manifest := range manifests {
			if !seen.add(manifest.FilePath()) {
				continue
			}
			if err := do(manifest); err != nil {
				return err
			}
		}
	}
	return nil
}

// manifestsOf returns the manifests of a snapshot; none if its list cannot be read and never will be.
func (p *purger) manifestsOf(ctx context.Context, snapshot metadata.Snapshot) ([]iceberg.ManifestFile, error) {
	var manifests []iceberg.ManifestFile
	for _, path := range snapshot.Manifests {
		// The highest version stands for "not known": a reader takes the manifest's own.
		manifests = append(manifests, iceberg.NewManifestFile(3, path, 0, 0, snapshot.ID).Build())
	}
	if snapshot.ManifestList == "" {
		return manifests, nil
	}
	file, err := p.open(ctx, snapshot.ManifestList)
	if file == nil {
		return nil, err
	}
	defer file.Close()
	manifests, err = guard(func() ([]iceberg.ManifestFile, error) { return iceberg.ReadManifestList(file) })
	if err != nil {
		return nil, p.passOver(ctx, file, err)
	}
	return manifests, nil
}

// entriesOf yields the path of each file that a manifest names, at most one error, and that last.
func entriesOf(manifest iceberg.ManifestFile, body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		reader, err := guard(func() (*iceberg.ManifestReader, error) {
			return iceberg.NewManifestReaderWithProjection(manifest, body, iceberg.ManifestEntryProjection{})
		})
		if err != nil {
			yield("", err)
			return
		}
		defer reader.Close()
		for {
			entry, err := guard(reader.ReadEntry)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
			if !yield(entry.DataFile().FilePath(), nil) {
				return
			}
		}
	}
}

// guard turns a panic of the Avro decoder, to which any client can feed any file, into an error.
func guard[T any](decode func() (T, error)) (value T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("decode: %v", reason)
		}
	}()
	return decode()
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
func (p *purger) open(ctx context.Context, path string) (*watchedFile, error) {
	file, _, err := p.store.Open(ctx, path)
	switch {
	case err == nil:
		return &watchedFile{ReadCloser: file, path: path}, nil
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		p.logPassed(ctx, path, err)
		return nil, nil
	}
	return nil, err
}

// passOver decides what becomes of a purge that could not read file to its end: it goes on if the
// file is damaged, and ends if the storage failed.
func (p *purger) passOver(ctx context.Context, file *watchedFile, err error) error {
	if file.err != nil {
		return fmt.Errorf("read %s: %w", file.path, file.err)
	}
	p.logPassed(ctx, file.path, err)
	return nil
}

func (p *purger) logPassed(ctx context.Context, path string, err error) {
	if p.told.add(path) {
		p.log.WarnContext(ctx, "purge passes over a file that it cannot read; what only that names stays", "file", path, "error", err)
	}
}

// add adds a file to the batch if it may be deleted.
func (p *purger) add(path string) error {
	location, err := storage.Parse(path)
	if err != nil || !p.isClaimed(location) {
		p.kept++
		return nil
	}
	if location == p.own {
		return nil // it goes last
	}
	p.batch = append(p.batch, path)
	if len(p.batch) < purgeBatchMax {
		return nil
	}
	return p.flush()
}

func (p *purger) isClaimed(location storage.Location) bool {
	return slices.ContainsFunc(p.claims, func(claim storage.Location) bool { return claim.Contains(location) })
}

// flush yields the batch, if there is anything in it.
func (p *purger) flush() error {
	if len(p.batch) == 0 {
		return nil
	}
	batch := p.batch
	p.batch = nil
	return p.yield(batch)
}

// recent is a set of the paths that were added lately.
type recent map[string]struct{}

// add reports whether path is new, as far as is remembered.
func (r recent) add(path string) bool {
	if _, ok := r[path]; ok {
		return false
	}
	if len(r) >= purgeSeenMax {
		clear(r)
	}
	r[path] = struct{}{}
	return true
}
