package rows

import (
	"context"
	"errors"
	"slices"
	"strings"

	"moorage/manifests"
)

// dataFile is a data file whose rows are read.
type dataFile struct {
	manifests.File

	sequence int64
	spec     int // the id of its partition spec
}

// deleteFile is a file with deleted positions.
type deleteFile struct {
	manifests.File

	sequence int64
}

// appliesTo reports whether d can delete rows of a data file.
func (d deleteFile) appliesTo(file dataFile) bool {
	return d.sequence >= file.sequence && (d.ReferencedFile == "" || d.ReferencedFile == file.Path)
}

func (d deleteFile) isVector() bool { return strings.EqualFold(d.Format, "puffin") }

// plan lists the data files to read.
type plan struct {
	files []dataFile
	isCut bool // the table has further files
}

// plan reads all delete manifests of the snapshot. It reads data manifests until there are enough
// data files. It also loads the deletes into s.
func (s *scan) plan(ctx context.Context) (p plan, err error) {
	snapshot := s.table.Snapshot
	switch {
	case snapshot.Encrypted:
		return p, notShown("the manifest list of snapshot %d is encrypted", snapshot.ID)
	case snapshot.ManifestList == "":
		return p, notShown("snapshot %d has no manifest list, as those of early Iceberg releases", snapshot.ID)
	}
	raw, err := s.files.list(ctx, snapshot.ManifestList)
	if err != nil {
		return p, err
	}
	list, err := s.manifests.List(raw, nil, unpackedMax)
	if err != nil {
		return p, manifestError(snapshot.ManifestList, err)
	}
	left := unpackedMax
	var deletes []deleteFile
	for _, e := range list.Entries() {
		if e.Content != manifests.Deletes || !mayHaveLive(e) {
			continue
		}
		for f, err := range s.liveFiles(ctx, e, &left) {
			if err != nil {
				return p, err
			}
			if err := checkDelete(f); err != nil {
				return p, err
			}
			sequence, err := sequenceOf(e, f)
			if err != nil {
				return p, err
			}
			if deletes = append(deletes, deleteFile{f, sequence}); len(deletes) > deletesMax {
				return p, notShown("the snapshot has over %d delete files. Compact the table", deletesMax)
			}
		}
	}
	rows := int64(0)
	for _, e := range list.Entries() {
		if e.Content != manifests.Data || !mayHaveLive(e) {
			continue
		}
		if p.isCut = s.hasEnough(p.files, rows, deletes); p.isCut {
			break
		}
		for f, err := range s.liveFiles(ctx, e, &left) {
			if err != nil {
				return p, err
			}
			if f.Rows == 0 {
				continue
			}
			if p.isCut = s.hasEnough(p.files, rows, deletes); p.isCut {
				break
			}
			sequence, err := sequenceOf(e, f)
			if err != nil {
				return p, err
			}
			if err := checkData(f); err != nil {
				return p, err
			}
			p.files = append(p.files, dataFile{f, sequence, int(e.SpecID)})
			rows += f.Rows
		}
		if p.isCut {
			break
		}
	}
	return p, s.loadDeletes(ctx, p.files, deletes)
}

// hasEnough reports whether no more data files are needed.
func (s *scan) hasEnough(files []dataFile, rows int64, deletes []deleteFile) bool {
	return len(files) == FilesMax || len(deletes) == 0 && rows >= int64(s.limit)
}

// mayHaveLive reports whether a manifest may have live files.
func mayHaveLive(e *manifests.Entry) bool {
	counts, known := manifests.Sum([]*manifests.Entry{e})
	return !known || counts.LiveFiles() > 0
}

// liveFiles yields the live files of a manifest. left is how many unpacked bytes the manifests may
// still have.
func (s *scan) liveFiles(ctx context.Context, e *manifests.Entry, left *int) func(func(manifests.File, error) bool) {
	return func(yield func(manifests.File, error) bool) {
		if e.IsEncrypted() {
			yield(manifests.File{}, notShown("the manifest %s is encrypted", e.Path))
			return
		}
		raw, err := s.files.whole(ctx, e.Path, e.Length)
		if err != nil {
			yield(manifests.File{}, err)
			return
		}
		for f, err := range s.manifests.Files(e, raw, left) {
			switch {
			case err != nil:
				err = manifestError(e.Path, err)
			case f.Status == manifests.Deleted:
				continue
			case (f.Content == manifests.Data) != (e.Content == manifests.Data):
				err = notShown("the manifest %s has a file of another content", e.Path)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// manifestError returns the error of a manifest or list.
func manifestError(path string, err error) error {
	if errors.Is(err, manifests.ErrDamaged) || errors.Is(err, manifests.ErrForeign) ||
		errors.Is(err, manifests.ErrTooLarge) {
		return notShown("%s cannot be read: %v", path, err)
	}
	return err
}

// sequenceOf returns the data sequence number of a file. For an added file, the number may be only
// in the manifest list. Source: table specification, "Sequence Number Inheritance".
func sequenceOf(e *manifests.Entry, f manifests.File) (int64, error) {
	switch {
	case f.SequenceNumber.Valid:
		return f.SequenceNumber.Value, nil
	case f.Status == manifests.Added, e.SequenceNumber == 0: // format version 1 has no sequence numbers
		return e.SequenceNumber, nil
	}
	return 0, notShown("the file %s has no sequence number", f.Path)
}

// checkData refuses a data file that cannot be read.
func checkData(f manifests.File) error {
	switch {
	case f.Encrypted:
		return notShown("the file %s is encrypted", f.Path)
	case !strings.EqualFold(f.Format, "parquet"):
		return notShown("the file %s has the format %.20s, and only Parquet is read", f.Path, f.Format)
	}
	return nil
}

// checkDelete refuses a delete file that cannot be applied.
func checkDelete(f manifests.File) error {
	d := deleteFile{File: f}
	switch {
	case f.Content == manifests.EqualityDeletes:
		return notShown("the snapshot has equality deletes, which this server does not apply. Compact the table, " +
			"or read it with an engine")
	case f.Encrypted:
		return notShown("the delete file %s is encrypted", f.Path)
	case d.isVector() && (f.ReferencedFile == "" || !f.ContentOffset.Valid || !f.ContentBytes.Valid):
		return notShown("the deletion vector %s lacks its data file or its place", f.Path)
	case !d.isVector() && !strings.EqualFold(f.Format, "parquet"):
		return notShown("the delete file %s has the format %.20s, and only Parquet is read", f.Path, f.Format)
	}
	return nil
}

// deleted holds the deleted rows of a plan's data files, by path.
type deleted struct {
	vectors   map[string]deleteFile
	positions map[string][]int64 // sorted
}

// loadDeletes reads the deleted positions of the data files.
func (s *scan) loadDeletes(ctx context.Context, data []dataFile, all []deleteFile) error {
	s.deleted = deleted{make(map[string]deleteFile), make(map[string][]int64)}
	for _, file := range data {
		for _, d := range all {
			if !d.isVector() || !d.appliesTo(file) {
				continue
			}
			if _, twice := s.deleted.vectors[file.Path]; twice {
				return notShown("the file %s has two deletion vectors", file.Path)
			}
			s.deleted.vectors[file.Path] = d
		}
	}
	count := 0
	for _, d := range all {
		if d.isVector() {
			continue
		}
		wanted := make(map[string]bool)
		for _, file := range data {
			// A vector includes all positions that were deleted earlier.
			if _, hasVector := s.deleted.vectors[file.Path]; !hasVector && d.appliesTo(file) {
				wanted[file.Path] = true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		err := s.readPositions(ctx, d, wanted, func(path string, position int64) error {
			if count++; count > positionsMax {
				return notShown("over %d rows of the first files are deleted. Compact the table", positionsMax)
			}
			s.deleted.positions[path] = append(s.deleted.positions[path], position)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, positions := range s.deleted.positions {
		slices.Sort(positions)
	}
	return nil
}
