package purge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"slices"
	"strings"

	"moorage"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// batchMax is the largest batch that eachBatch yields.
	batchMax = 1000
	// seenMax is the maximum number of paths in a set. A set takes about 10 MB.
	seenMax = 1 << 18
	// earlierMax is the maximum number of earlier metadata files in one purge. Their names take
	// about 20 MB.
	earlierMax = 100_000
)

// readEarlier reads an earlier metadata file of the table.
type readEarlier func(ctx context.Context, location string) (*metadata.Document, error)

// eachBatch yields the locations of files, in batches of at most batchMax. It yields the files
// within the table's claims that document refers to, or that jobs of the table had yet to delete.
// document is the metadata of table. yield deletes a batch; an error from it ends the purge.
//
// Files are yielded before the files that refer to them. Data and delete files and the files listed
// by jobs come first. Manifests, manifest lists, statistics, and earlier metadata files (oldest
// first) follow. The table's metadata file comes last, in a separate batch. So after an
// interruption at any point, a new run finds all remaining files. With gc.enabled=false, data and
// delete files stay and the other files are deleted, as in the Java implementation.
//
// A manifest or manifest list that is missing, damaged or outside the allowed locations is logged
// and skipped. Files listed only in it stay. Any other failure to read a manifest or list ends the
// attempt.
func eachBatch(ctx context.Context, log *slog.Logger, files storage.Store, document *metadata.Document,
	table registry.Pointer, owed owed, read readEarlier, yield func(batch []string) error) error {
	w := walk{
		log: log, files: files, document: document, owed: owed, read: read, yield: yield, skipped: newRecent(),
	}
	for _, claim := range table.Claims {
		parsed, err := storage.Parse(claim)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		w.claims = append(w.claims, parsed)
	}
	own, err := storage.Parse(table.MetadataLocation)
	if err != nil {
		return fmt.Errorf("metadata location: %w", err)
	}
	w.own = own
	for _, step := range []func(context.Context) error{
		w.contentFiles, w.owedFiles, w.manifests, w.lists, w.statistics, w.earlierMetadata,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.kept > 0 {
		log.InfoContext(ctx, "purge leaves files outside the table's own locations", "files", w.kept)
	}
	if !isWithin(w.claims, own) {
		return nil
	}
	return yield([]string{table.MetadataLocation})
}

func isWithin(claims []storage.Location, location storage.Location) bool {
	return slices.ContainsFunc(claims, func(claim storage.Location) bool { return claim.Contains(location) })
}

// walk is one call of eachBatch.
type walk struct {
	log      *slog.Logger
	files    storage.Store
	document *metadata.Document
	owed     owed
	read     readEarlier
	own      storage.Location // the location of the document
	claims   []storage.Location
	yield    func(batch []string) error

	batch   []string
	kept    int     // referenced files outside the claims
	skipped *recent // skipped files that were already logged; lists are read twice
}

// contentFiles adds data and delete files, unless the table has gc.enabled=false.
func (w *walk) contentFiles(ctx context.Context) error {
	if !w.document.Collects() {
		w.log.InfoContext(ctx, "purge leaves data files: gc.enabled is not true", "location", w.document.Location())
		return nil
	}
	added := newRecent()
	return w.eachManifest(ctx, func(m manifests.Listed) error {
		return w.eachFile(ctx, m, func(path string) error {
			if !added.add(path) {
				return nil
			}
			return w.add(path)
		})
	})
}

func (w *walk) manifests(ctx context.Context) error {
	return w.eachManifest(ctx, func(m manifests.Listed) error { return w.add(m.Path()) })
}

func (w *walk) lists(context.Context) error {
	for snapshot := range w.owed.snapshots(w.document) {
		if snapshot.ManifestList == "" {
			continue
		}
		if err := w.add(snapshot.ManifestList); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) statistics(context.Context) error {
	for _, path := range w.owed.statistics(w.document) {
		if err := w.add(path); err != nil {
			return err
		}
	}
	return nil
}

// earlierMetadata adds the files in the metadata log, and the files that have left it. The oldest
// file in a log has a log of still earlier files, and so on. The files listed in a log are deleted
// before the file that contains the log.
func (w *walk) earlierMetadata(ctx context.Context) error {
	var logs [][]string
	met := make(map[string]bool)
	for document := w.document; document != nil; {
		var log []string
		for _, entry := range document.MetadataLog() {
			if file := entry.MetadataLocation; !met[file] {
				met[file] = true
				log = append(log, file)
			}
		}
		if len(log) == 0 {
			break
		}
		logs = append(logs, log)
		if len(met) > earlierMax {
			w.log.WarnContext(ctx, "purge finds too many earlier metadata files; the oldest are left behind",
				"files", len(met))
			break
		}
		var err error
		if document, err = w.earlier(ctx, log[0]); err != nil {
			return err
		}
	}
	for _, log := range slices.Backward(logs) {
		for _, file := range log {
			if err := w.add(file); err != nil {
				return err
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

// earlier returns an earlier version of the table. It returns nil if the file is gone, or if it is
// not a metadata file of this table within the table's claims.
func (w *walk) earlier(ctx context.Context, file string) (*metadata.Document, error) {
	location, err := storage.ParseFile(file)
	if err != nil || !isWithin(w.claims, location) {
		return nil, nil
	}
	document, err := w.read(ctx, file)
	switch kind := moorage.KindOf(err); {
	case err == nil && !strings.EqualFold(document.UUID(), w.document.UUID()):
		return nil, nil
	case kind == moorage.KindUnavailable, kind == moorage.KindTooManyRequests, ctx.Err() != nil:
		return nil, err
	case err != nil: // another attempt would fail too
		return nil, nil
	}
	return document, nil
}

// add adds a file to the batch if it may be deleted.
func (w *walk) add(path string) error {
	location, err := storage.ParseFile(path)
	if err != nil || !isWithin(w.claims, location) {
		w.kept++
		return nil
	}
	if location == w.own {
		return nil // it is deleted last
	}
	w.batch = append(w.batch, path)
	if len(w.batch) < batchMax {
		return nil
	}
	return w.flush()
}

// flush yields the batch unless it is empty.
func (w *walk) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	batch := w.batch
	w.batch = nil
	return w.yield(batch)
}

// eachManifest calls do for every manifest of every snapshot. If several snapshots share a
// manifest, it calls do only once for it, unless there are too many manifests to remember.
func (w *walk) eachManifest(ctx context.Context, do func(manifests.Listed) error) error {
	lists, met := newRecent(), newRecent()
	for snapshot := range w.owed.snapshots(w.document) {
		if list := snapshot.ManifestList; list != "" && !lists.add(list) {
			continue
		}
		manifests, err := w.manifestsOf(ctx, snapshot)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			if !met.add(m.Path()) {
				continue
			}
			if err := do(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// manifestsOf returns the manifests of a snapshot. If their list is permanently unreadable, it
// returns none.
func (w *walk) manifestsOf(ctx context.Context, snapshot metadata.Snapshot) ([]manifests.Listed, error) {
	var found []manifests.Listed
	for _, path := range snapshot.Manifests {
		found = append(found, manifests.Listed{Manifest: manifests.Unlisted(path)})
	}
	if snapshot.ManifestList == "" {
		return found, nil
	}
	file, err := w.open(ctx, snapshot.ManifestList)
	if file == nil {
		return nil, err
	}
	defer file.Close()
	found = nil
	for listed, err := range manifests.EachListed(file) {
		if err != nil {
			return nil, w.skipUnlessFailed(ctx, file, err)
		}
		found = append(found, listed)
	}
	return found, nil
}

// eachFile calls do for each file listed in a manifest, whether the file is live or removed.
func (w *walk) eachFile(ctx context.Context, m manifests.Listed, do func(path string) error) error {
	file, err := w.open(ctx, m.Path())
	if file == nil {
		return err
	}
	defer file.Close()
	for entry, err := range m.Entries(file) {
		if err != nil {
			return w.skipUnlessFailed(ctx, file, err)
		}
		if err := do(entry.Path); err != nil {
			return err
		}
	}
	return nil
}

// watchedFile remembers an error from the storage, because the decoder may hide it.
type watchedFile struct {
	io.ReadCloser
	path string
	err  error
}

// Read implements io.Reader.
func (f *watchedFile) Read(into []byte) (int, error) {
	n, err := f.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// open opens a file for reading. It returns nil without an error if the file does not exist or is
// outside the allowed locations.
func (w *walk) open(ctx context.Context, path string) (*watchedFile, error) {
	file, _, err := w.files.Open(ctx, path)
	switch {
	case err == nil:
		return &watchedFile{ReadCloser: file, path: path}, nil
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		w.skip(ctx, path, err)
		return nil, nil
	}
	return nil, err
}

// skipUnlessFailed logs that an unreadable file is skipped. If the storage failed, or the file
// exceeds a bound, skipUnlessFailed returns that error instead, which ends the attempt.
func (w *walk) skipUnlessFailed(ctx context.Context, file *watchedFile, err error) error {
	if file.err != nil {
		err = file.err
	}
	if file.err != nil || errors.Is(err, manifests.ErrTooMuch) {
		return fmt.Errorf("read %s: %w", file.path, err)
	}
	w.skip(ctx, file.path, err)
	return nil
}

// skip logs, once, that a file cannot be read.
func (w *walk) skip(ctx context.Context, path string, cause error) {
	if w.skipped.add(path) {
		w.log.WarnContext(ctx,
			"purge: an unreadable manifest or list is skipped; files that only it names are left behind",
			"file", path, "error", cause)
	}
}

// recent is a set of the most recently added paths. It stores hashes of the paths, which are so
// long that no two paths share one in practice.
type recent struct {
	seeds [2]maphash.Seed
	set   map[[2]uint64]struct{}
}

func newRecent() *recent {
	return &recent{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, make(map[[2]uint64]struct{})}
}

// add adds path, and reports whether the set did not contain it.
func (r *recent) add(path string) bool {
	hash := [2]uint64{maphash.String(r.seeds[0], path), maphash.String(r.seeds[1], path)}
	if _, ok := r.set[hash]; ok {
		return false
	}
	if len(r.set) >= seenMax {
		clear(r.set)
	}
	r.set[hash] = struct{}{}
	return true
}
