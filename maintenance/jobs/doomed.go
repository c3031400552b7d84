package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"moorage/manifests"
	"moorage/metadata"
	"moorage/storage"
)

// fileKind is the kind of a file. Files are deleted in the order of their kinds, so that a file is
// deleted before the files that refer to it.
type fileKind string

// The kinds of files, in the order of deletion.
const (
	kindContent    fileKind = "content" // data files, delete files and Puffin files
	kindManifest   fileKind = "manifest"
	kindList       fileKind = "list"
	kindStatistics fileKind = "statistics"
)

// doomedFile is a file that no version of the table reaches.
type doomedFile struct {
	Location string // as the table spells it
	Kind     fileKind
}

// keptCounts counts the files that stay although only expired snapshots refer to them.
type keptCounts struct {
	Outside    int64    // files outside the table's claims
	Unreadable []string // lists and manifests that cannot be read, at most unreadableMax of them
	Skipped    int64    // number of lists and manifests that cannot be read
}

const unreadableMax = 100

// expiredParts holds the expired snapshots of a table, and their statistics files.
type expiredParts struct {
	Snapshots  []metadata.Snapshot
	Statistics []string
}

// isOwn reports whether path is within claims and expiry or orphan removal may delete such a file.
// They never delete metadata files.
func isOwn(claims []storage.Location, path string) bool {
	location, err := storage.ParseFile(path)
	if err != nil || isMetadata(location.Path) {
		return false
	}
	return slices.ContainsFunc(claims, func(claim storage.Location) bool {
		return claim.Contains(location) && claim != location
	})
}

// isMetadata reports whether path may be a metadata file or a version hint. The metadata file may
// belong to another table, which was registered from it. Source: Java TableMetadataParser,
// Util.VERSION_HINT_FILENAME.
func isMetadata(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.Contains(name, storage.MetadataEnding) || storage.IsMetadataFile(name) || name == "version-hint.text"
}

// eachDoomed yields the files within claims that the expired snapshots reach and that live does not
// contain. live contains every file that the current document reaches; see addReached.
//
// It never yields a metadata file. It yields files in the order of their kinds, and may yield a
// file twice. If an expired list or manifest is missing or damaged, eachDoomed skips it, and so the
// files listed only in it.
//
// A faster search would read only the files written since the oldest deletion. It would depend on
// how each engine removes files that were added twice, or that share a Puffin file. It is not
// built, because no test covers that for the engines.
//
// Entries of every status count, because a file left by an earlier run may occur only in entries
// that mark it as removed.
//
// Errors: the errors of the storage and of yield; manifests.ErrTooMuch. After an error, the files
// yielded so far may be deleted, but the sequence may be incomplete.
func eachDoomed(ctx context.Context, files opener, expired expiredParts, live *pathSet, claims []storage.Location,
	yield func(doomedFile) error) (keptCounts, error) {
	d := doomedSearch{files: files, live: live, claims: claims, yield: yield, met: newSeenManifests()}
	for _, snapshot := range expired.Snapshots {
		var listed []manifests.Listed // a list is closed before a manifest is opened
		err := eachManifest(ctx, files, snapshot, func(m manifests.Listed) error {
			isNew, err := d.met.add(m.Path())
			if isNew {
				listed = append(listed, m)
			}
			return err
		})
		if err := d.skip(err); err != nil {
			return d.kept, err
		}
		for _, m := range listed {
			if err := d.manifest(ctx, m); err != nil {
				return d.kept, err
			}
		}
	}
	for _, path := range d.manifests {
		if err := d.add(path, kindManifest); err != nil {
			return d.kept, err
		}
	}
	for _, snapshot := range expired.Snapshots {
		if snapshot.ManifestList == "" {
			continue
		}
		if err := d.add(snapshot.ManifestList, kindList); err != nil {
			return d.kept, err
		}
	}
	for _, path := range expired.Statistics {
		if err := d.add(path, kindStatistics); err != nil {
			return d.kept, err
		}
	}
	return d.kept, nil
}

// doomedSearch is one call of eachDoomed.
type doomedSearch struct {
	files     opener
	live      *pathSet
	claims    []storage.Location
	yield     func(doomedFile) error
	met       *seenManifests
	manifests []string // doomed manifests
	kept      keptCounts
}

// manifest yields the files listed in a manifest of an expired snapshot.
func (d *doomedSearch) manifest(ctx context.Context, m manifests.Listed) error {
	isLive := d.live.Has(m.Path())
	if isLive && !m.MayDelete() {
		return nil // all files listed in it are live
	}
	err := eachEntry(ctx, d.files, m, func(entry manifests.NamedFile) error { return d.add(entry.Path, kindContent) })
	if unreadable, ok := errors.AsType[*unreadableError](err); ok && isMissing(unreadable) {
		d.note(unreadable)
		return nil
	}
	if err := d.skip(err); err != nil {
		return err
	}
	if !isLive {
		d.manifests = append(d.manifests, m.Path())
	}
	return nil
}

// add yields a file unless it is live or outside the table's claims.
func (d *doomedSearch) add(path string, kind fileKind) error {
	switch {
	case d.live.Has(path):
		return nil
	case !isOwn(d.claims, path):
		d.kept.Outside++
		return nil
	}
	return d.yield(doomedFile{path, kind})
}

// skip counts an unreadable list or manifest, and returns any other error. It also returns the
// error for a file that exceeds a bound. Such a file is not damaged, so an operator must decide.
func (d *doomedSearch) skip(err error) error {
	if unreadable, ok := errors.AsType[*unreadableError](err); ok && !errors.Is(err, manifests.ErrTooMuch) {
		d.note(unreadable)
		return nil
	}
	return err
}

func (d *doomedSearch) note(unreadable *unreadableError) {
	d.kept.Skipped++
	if len(d.kept.Unreadable) < unreadableMax {
		d.kept.Unreadable = append(d.kept.Unreadable, unreadable.Error())
	}
}

// isMissing reports whether err means that a file does not exist.
func isMissing(err *unreadableError) bool { return errors.Is(err.Err, storage.ErrNotFound) }
