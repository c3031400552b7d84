package reach

import (
	"context"
	"errors"
	"slices"
	"strings"

	"moorage/manifest"
	"moorage/metadata"
	"moorage/storage"
)

// Kind is the kind of a file. Files are deleted in the order of their kinds, so that a file is
// deleted before the files that name it.
type Kind string

// The kinds, in their order.
const (
	KindContent    Kind = "content" // data files, delete files and Puffin files
	KindManifest   Kind = "manifest"
	KindList       Kind = "list"
	KindStatistics Kind = "statistics"
)

// File is a file that no version reaches any more.
type File struct {
	Location string // as the table spells it
	Kind     Kind
}

// Kept counts files that stay although only expired snapshots name them.
type Kept struct {
	Outside    int64    // of the table's claims
	Unreadable []string // lists and manifests that cannot be read, at most unreadableMax of them
	Skipped    int64    // all that cannot be read
}

const unreadableMax = 100

// Expired is what a table has lost: snapshots, and the statistics files that it named with them.
type Expired struct {
	Snapshots  []metadata.Snapshot
	Statistics []string
}

// IsOwn reports whether path is within claims, and whether expiry or the removal of orphans may
// delete such a file. They never delete a metadata file.
func IsOwn(claims []storage.Location, path string) bool {
	location, err := storage.ParseFile(path)
	if err != nil || IsMetadata(location.Path) {
		return false
	}
	return slices.ContainsFunc(claims, func(claim storage.Location) bool {
		return claim.Contains(location) && claim != location
	})
}

// IsMetadata reports whether path may be a metadata file, also of another table that was registered
// with it, or a file that names the current one. Source: Java TableMetadataParser,
// Util.VERSION_HINT_FILENAME.
func IsMetadata(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.Contains(name, storage.MetadataEnding) || storage.IsMetadataFile(name) || name == "version-hint.text"
}

// Doomed yields the files that the expired snapshots reach, that live does not have, and that are
// within claims. The order is the order of kinds. live has everything that the present document
// reaches: see Live. A file may be yielded more than once. Doomed skips an expired list or manifest
// that is missing or damaged.
//
// An entry of any status counts: a file that an earlier run left may be named only as removed.
//
// Errors: the errors of the storage, and of yield; ErrTooMuch. Then the yielded files are doomed,
// but others may be missing.
func Doomed(ctx context.Context, files Reader, expired Expired, live *Set, claims []storage.Location,
	yield func(File) error) (Kept, error) {
	d := doom{files: files, live: live, claims: claims, yield: yield, met: newMet()}
	for _, snapshot := range expired.Snapshots {
		var manifests []manifest.Listed // a list is closed before a manifest is opened
		err := eachManifest(ctx, files, snapshot, func(m manifest.Listed) error {
			isNew, err := d.met.add(m.Path())
			if isNew {
				manifests = append(manifests, m)
			}
			return err
		})
		if err := d.skip(err); err != nil {
			return d.kept, err
		}
		for _, m := range manifests {
			if err := d.manifest(ctx, m); err != nil {
				return d.kept, err
			}
		}
	}
	for _, path := range d.manifests {
		if err := d.add(path, KindManifest); err != nil {
			return d.kept, err
		}
	}
	for _, snapshot := range expired.Snapshots {
		if snapshot.ManifestList == "" {
			continue
		}
		if err := d.add(snapshot.ManifestList, KindList); err != nil {
			return d.kept, err
		}
	}
	for _, path := range expired.Statistics {
		if err := d.add(path, KindStatistics); err != nil {
			return d.kept, err
		}
	}
	return d.kept, nil
}

// doom is one call of Doomed.
type doom struct {
	files     Reader
	live      *Set
	claims    []storage.Location
	yield     func(File) error
	met       *met
	manifests []string // doomed manifests
	kept      Kept
}

// manifest yields the files that a manifest of an expired snapshot names.
func (d *doom) manifest(ctx context.Context, m manifest.Listed) error {
	isLive := d.live.Has(m.Path())
	if isLive && !m.MayDelete() {
		return nil // all files that it names are live
	}
	err := eachEntry(ctx, d.files, m, func(entry manifest.Entry) error { return d.add(entry.Path, KindContent) })
	if unreadable, ok := errors.AsType[*UnreadableError](err); ok && isMissing(unreadable) {
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

// add yields a file unless it is live or not the table's own.
func (d *doom) add(path string, kind Kind) error {
	switch {
	case d.live.Has(path):
		return nil
	case !IsOwn(d.claims, path):
		d.kept.Outside++
		return nil
	}
	return d.yield(File{path, kind})
}

// skip records a list or manifest that cannot be read, and returns any other error. A file with too
// much content is not damaged: its writer may have had reasons, so an operator decides.
func (d *doom) skip(err error) error {
	if unreadable, ok := errors.AsType[*UnreadableError](err); ok && !errors.Is(err, ErrTooMuch) {
		d.note(unreadable)
		return nil
	}
	return err
}

func (d *doom) note(unreadable *UnreadableError) {
	d.kept.Skipped++
	if len(d.kept.Unreadable) < unreadableMax {
		d.kept.Unreadable = append(d.kept.Unreadable, unreadable.Error())
	}
}

// isMissing reports whether a file does not exist, so that there is nothing to delete.
func isMissing(err *UnreadableError) bool { return errors.Is(err.Err, storage.ErrNotFound) }
