package browse

import (
	"context"
	"errors"
	"io"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/manifests"
	"moorage/metadata"
)

// Bounds of Manifests. Clients write manifests, and many callers may ask.
const (
	// manifestsShown is the maximum number of manifests in an answer.
	manifestsShown = 1000
	// filesShown is the maximum number of files in an answer.
	filesShown = 200
	// boundsShown is the maximum number of columns with bounds per file. boundBytesMax is the
	// maximum length of a bound.
	boundsShown, boundBytesMax = 30, 100
	// manifestsTime bounds reading a list and a manifest.
	manifestsTime = 20 * time.Second
)

// ManifestsRequest asks for the manifests of a snapshot.
type ManifestsRequest struct {
	// Snapshot is the id of the snapshot; nil means the head of main.
	Snapshot *int64
	// Manifest is the index of the manifest whose files are wanted. If nil, no files are wanted.
	Manifest *int
}

// ManifestList lists the manifests of a snapshot.
type ManifestList struct {
	Snapshot  int64 // 0 if the table has none
	Manifests []Manifest
	More      bool // there are further manifests
	// Files are the first files of the manifest in the request, if the request names one. FilesMore
	// means that the manifest has further files.
	Files     []ManifestFile
	FilesMore bool
}

// Manifest is a manifest in a list. A count is nil if the list lacks it.
type Manifest struct {
	Path                     string
	Deletes                  bool // the manifest lists delete files
	Bytes                    int64
	Added, Existing, Removed *int64 // the number of files with each status
}

// ManifestFile is a file in a manifest.
type ManifestFile struct {
	Path        string
	Content     string // data, position-deletes or equality-deletes
	Status      string // existing, added or removed
	Format      string // as written
	Rows, Bytes int64
	Partition   string
	Bounds      []ColumnBounds // of the first columns that have bounds
}

// ColumnBounds are the bounds of a column in one file, as readable text. An unknown bound is nil.
type ColumnBounds struct {
	ID           int
	Path         string // empty if the schema of the snapshot lacks the column
	Lower, Upper *string
}

// Manifests returns the manifests of a snapshot of a table, and the files of one of them. Files
// outside the claims of the table are not read. The caller needs access.Read on the table, because
// bounds are values of rows.
//
// Errors: KindNoSuchTable; KindNotFound if there is no such snapshot or manifest; KindNotShown if a
// list or a manifest cannot be read; KindTooManyRequests if other deep looks take up all the room.
func (b *Browse) Manifests(ctx context.Context, ident moorage.Identifier, asked ManifestsRequest) (
	ManifestList, error) {
	list, err := b.manifestsOf(ctx, ident, asked)
	return list, moorage.Annotate("browse.Manifests", ident.String(), err)
}

func (b *Browse) manifestsOf(ctx context.Context, ident moorage.Identifier, asked ManifestsRequest) (
	list ManifestList, err error) {
	needed := gate.ListManifests.Needs(gate.OfObject, gate.Always)
	found, document, err := b.tableFor(ctx, gate.ListManifests, needed, ident)
	if err != nil {
		return list, err
	}
	scan, isThere := document.Scan("")
	if asked.Snapshot != nil {
		if scan, isThere = document.ScanSnapshot(*asked.Snapshot); !isThere {
			return list, moorage.Errorf(moorage.KindNotFound, "The table has no snapshot %d, or its schema was removed",
				*asked.Snapshot)
		}
	}
	if !isThere || scan.Snapshot == nil {
		return list, nil
	}
	done, err := b.beginDeep(ctx, found.Pointer.Warehouse)
	if err != nil {
		return list, err
	}
	defer done()
	within, cancel := context.WithTimeout(ctx, manifestsTime)
	defer cancel()
	list.Snapshot = scan.Snapshot.ID
	at, err := list.read(within, found, scan.Snapshot, asked.Manifest)
	if err == nil && at != nil {
		err = list.describe(within, found, *at, scan)
	}
	var unreadable *unreadableError
	switch {
	case errors.As(err, &unreadable):
		return list, moorage.Errorf(moorage.KindNotShown, "The manifests are not shown: %v", unreadable)
	case within.Err() != nil && ctx.Err() == nil:
		return list, moorage.Errorf(moorage.KindNotShown, "The manifests are not shown: reading took more than %s",
			manifestsTime)
	}
	return list, err
}

// read reads the manifest list of a snapshot. It returns the manifest at index number, unless
// number is nil.
func (l *ManifestList) read(ctx context.Context, found *directory.Found, of *metadata.Snapshot, number *int) (
	at *manifests.Listed, err error) {
	add := func(listed manifests.Listed) {
		if l.More = len(l.Manifests) == manifestsShown; l.More {
			return
		}
		if number != nil && len(l.Manifests) == *number {
			at = &listed
		}
		l.Manifests = append(l.Manifests, Manifest{
			Path: listed.Path(), Deletes: listed.Deletes(), Bytes: listed.Bytes,
			Added: knownCount(listed.Added), Existing: knownCount(listed.Existing),
			Removed: knownCount(listed.Deleted),
		})
	}
	switch {
	case of.Encrypted:
		return nil, &unreadableError{of.ManifestList, errors.New("it is encrypted")}
	case of.ManifestList == "": // format version 1 allows a snapshot without a list
		for _, path := range of.Manifests {
			const unknown = manifests.UnknownCount
			add(manifests.Listed{
				Manifest: manifests.Unlisted(path), Added: unknown, Existing: unknown, Deleted: unknown,
			})
		}
	case !documents.WithinClaims(found.Pointer.Claims, of.ManifestList):
		return nil, &unreadableError{of.ManifestList, errOutside}
	default:
		err = stream(ctx, found.Storage, of.ManifestList, func(body io.Reader) error {
			for listed, err := range manifests.EachListed(body) {
				if err != nil {
					return err
				}
				if add(listed); l.More {
					return &innerError{errStopped}
				}
			}
			return nil
		})
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err == nil && number != nil && at == nil {
		err = moorage.Errorf(moorage.KindNotFound, "The snapshot has no manifest with the number %d among the first %d",
			*number, len(l.Manifests))
	}
	return at, err
}

// errOutside means that a file lies outside the locations of the table.
var errOutside = errors.New("it is outside the locations of the table")

// describe reads the first files of a manifest.
func (l *ManifestList) describe(ctx context.Context, found *directory.Found, at manifests.Listed,
	scan metadata.Scan) error {
	switch {
	case at.Encrypted:
		return &unreadableError{at.Path(), errors.New("it is encrypted")}
	case !documents.WithinClaims(found.Pointer.Claims, at.Path()):
		return &unreadableError{at.Path(), errOutside}
	}
	paths := make(map[int]string)
	for _, column := range scan.Schema.Columns() {
		paths[column.ID] = column.Path
	}
	err := stream(ctx, found.Storage, at.Path(), func(body io.Reader) error {
		for file, err := range at.Describe(body) {
			if err != nil {
				return err
			}
			if l.FilesMore = len(l.Files) == filesShown; l.FilesMore {
				return &innerError{errStopped}
			}
			l.Files = append(l.Files, ManifestFile{
				Path: file.Path, Content: contentWord(file.Content), Status: statusWord(file.Status),
				Format: file.Format, Rows: file.Rows, Bytes: file.Bytes,
				Partition: moorage.Cut(file.Partition, partitionNameMax), Bounds: boundsOf(file, scan, paths),
			})
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// boundsOf returns the bounds of the first columns of a file. paths maps field IDs to the columns
// of the schema.
func boundsOf(file manifests.DescribedFile, scan metadata.Scan, paths map[int]string) (all []ColumnBounds) {
	at := make(map[int]int, boundsShown)
	set := func(bound manifests.Bound, target func(*ColumnBounds) **string) {
		id := int(bound.ID)
		i, isKnown := at[id]
		if !isKnown {
			if len(all) == boundsShown {
				return
			}
			i = len(all)
			at[id] = i
			all = append(all, ColumnBounds{ID: id, Path: paths[id]})
		}
		if text, ok := scan.Schema.Bound(id, bound.Value); ok {
			text = moorage.Cut(text, boundBytesMax)
			*target(&all[i]) = &text
		}
	}
	for _, bound := range file.Lower {
		set(bound, func(c *ColumnBounds) **string { return &c.Lower })
	}
	for _, bound := range file.Upper {
		set(bound, func(c *ColumnBounds) **string { return &c.Upper })
	}
	return all
}

// knownCount returns a count from a manifest list, or nil if the list lacks the count.
func knownCount(count int32) *int64 {
	if count == manifests.UnknownCount {
		return nil
	}
	known := int64(count)
	return &known
}

// contentWord returns the word for the content of a file.
func contentWord(content manifests.Content) string {
	switch content {
	case manifests.Deletes:
		return "position-deletes"
	case manifests.EqualityDeletes:
		return "equality-deletes"
	}
	return "data"
}

// statusWord returns the word for a status.
func statusWord(status manifests.Status) string {
	switch status {
	case manifests.Added:
		return "added"
	case manifests.Deleted:
		return "removed"
	}
	return "existing"
}
