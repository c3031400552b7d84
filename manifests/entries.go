package manifests

import (
	"fmt"
	"iter"
	"math"
)

// Field ids of manifests. Source: table specification, manifests.
const (
	idStatus            = 0
	idEntrySnapshot     = 1
	idDataFile          = 2
	idEntrySequence     = 3
	idEntryFileSequence = 4
	idFilePath          = 100
	idFileFormat        = 101
	idRecordCount       = 103
	idFileBytes         = 104
	idFileKey           = 131
	idFileContent       = 134
	idFileFirstRowID    = 142
	idReferencedFile    = 143
	idContentOffset     = 144
	idContentBytes      = 145
)

// Status is the status of a file in a manifest.
type Status int64

// The states. A reader of the table reads Existing and Added files.
const (
	Existing Status = iota
	Added
	Deleted
)

// File is an entry of a manifest, with the numbers in the entry itself. For a null number, a reader
// of the table uses the number in the manifest list.
type File struct {
	Status                             Status
	SnapshotID                         Number
	SequenceNumber, FileSequenceNumber Number
	Content                            Content // Data in manifests of format version 1
	Path                               string
	FirstRowID                         Number // format version 3
	Rows                               int64
	Format                             string // as written: PARQUET, AVRO, ORC, PUFFIN
	Bytes                              int64  // length of the file
	Encrypted                          bool   // the file has an encryption key
	// ReferencedFile is the data file of a deletion vector, and of some position deletes. It is
	// empty if there is none. The vector begins at ContentOffset in the file.
	ReferencedFile              string
	ContentOffset, ContentBytes Number
}

// Files yields the files listed in the manifest of e, in the manifest's order. raw is the content
// of the manifest. If Files yields an error, it ends. Files subtracts the unpacked size of raw from
// *left, so that a caller can limit several manifests together. It holds one block at a time in
// memory. A path keeps its whole block in memory.
//
// Errors: ErrDamaged, also if raw does not have the length in e; ErrTooLarge if raw unpacks to more
// than left or FileBytesMax; ErrForeign for an unknown codec.
func (r *Reader) Files(e *Entry, raw []byte, left *int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		if int64(len(raw)) != e.Length {
			yield(File{}, damaged("manifest has %d bytes, and %d in its list", len(raw), e.Length))
			return
		}
		file, err := r.open(textOf(raw))
		if err != nil {
			yield(File{}, fmt.Errorf("manifest: %w", err))
			return
		}
		for c, err := range file.records(left, nil) {
			var f File
			if err == nil {
				f, err = readFile(c, file.schema)
			}
			if err != nil {
				yield(File{}, fmt.Errorf("manifest: %w", err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// readFile reads one record of a manifest.
func readFile(c *cursor, s *schema) (f File, err error) {
	f.Status, f.Rows = -1, -1
	if err = c.fields(s, f.setEntry, f.setData); err == nil && (f.Status < 0 || f.Path == "" || f.Rows < 0) {
		err = damaged("status, path or rows are missing")
	}
	return f, err
}

// setEntry sets the field with the given id.
func (f *File) setEntry(id int, v value) (err error) {
	switch id {
	case idStatus:
		err = v.atMost(int64(Deleted), (*int64)(&f.Status))
	case idEntrySnapshot:
		if f.SnapshotID.Valid = v.kind != kindNull; f.SnapshotID.Valid {
			f.SnapshotID.Value, err = v.whole()
		}
	case idEntrySequence:
		f.SequenceNumber, err = v.optional()
	case idEntryFileSequence:
		f.FileSequenceNumber, err = v.optional()
	}
	if err != nil {
		return fmt.Errorf("field %d: %w", id, err)
	}
	return nil
}

// setData sets the field with the given id in the record of the file.
func (f *File) setData(id int, v value) (err error) {
	switch id {
	case idFilePath:
		f.Path, err = v.path()
	case idFileContent:
		err = v.atMost(int64(EqualityDeletes), (*int64)(&f.Content))
	case idRecordCount:
		err = v.atMost(math.MaxInt64, &f.Rows)
	case idFileFirstRowID:
		f.FirstRowID, err = v.optional()
	case idFileFormat:
		f.Format = v.text
	case idFileBytes:
		err = v.atMost(math.MaxInt64, &f.Bytes)
	case idFileKey:
		f.Encrypted = v.kind != kindNull
	case idReferencedFile:
		// DuckDB 1.5.5 writes an empty text for data files, which have no referenced file.
		if v.kind != kindNull && !(v.kind == kindString && v.text == "") {
			f.ReferencedFile, err = v.path()
		}
	case idContentOffset:
		f.ContentOffset, err = v.optional()
	case idContentBytes:
		f.ContentBytes, err = v.optional()
	}
	if err != nil {
		return fmt.Errorf("field %d: %w", id, err)
	}
	return nil
}
