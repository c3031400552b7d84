package manifests

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Field ids of manifest lists. Source: table specification, manifest lists.
const (
	idPath              = 500
	idLength            = 501
	idSpec              = 502
	idSnapshot          = 503
	idAddedFiles        = 504
	idExistingFiles     = 505
	idDeletedFiles      = 506
	idAddedRows         = 512
	idExistingRows      = 513
	idDeletedRows       = 514
	idSequenceNumber    = 515
	idMinSequenceNumber = 516
	idContent           = 517
	idFirstRowID        = 520
)

// Sets of fields, in the form of Entry.found.
const (
	required = 1<<(idLength-idPath) | 1<<(idSpec-idPath) | 1<<(idSnapshot-idPath)
	counted  = 1<<(idAddedFiles-idPath) | 1<<(idExistingFiles-idPath) | 1<<(idDeletedFiles-idPath) |
		1<<(idAddedRows-idPath) | 1<<(idExistingRows-idPath) | 1<<(idDeletedRows-idPath)
)

// Number is a long that may be null. The zero value is null.
type Number struct {
	Value int64
	Valid bool // whether there is a value
}

// Content is the content of a manifest's files, or of one file.
type Content int64

// The contents. A manifest of deletes has both kinds of delete files.
const (
	Data Content = iota
	Deletes
	EqualityDeletes // of single files only
)

// Counts are the files and rows of each status in a manifest, from its list.
type Counts struct {
	AddedFiles, ExistingFiles, DeletedFiles int64
	AddedRows, ExistingRows, DeletedRows    int64
}

// LiveFiles returns how many files of the manifest a reader must read.
func (c Counts) LiveFiles() int64 { return c.AddedFiles + c.ExistingFiles }

// LiveRows returns how many rows the live files have.
func (c Counts) LiveRows() int64 { return c.AddedRows + c.ExistingRows }

// Entry is a manifest as described in a list. It must not be changed. Its strings keep the memory
// of the list.
type Entry struct {
	Path   string
	Length int64 // bytes of the file
	SpecID int64
	// Content is Data or Deletes; Data in lists of format version 1.
	Content Content
	// SequenceNumber and MinSequenceNumber are 0 in lists of format version 1.
	SequenceNumber, MinSequenceNumber int64
	SnapshotID                        int64 // that added the manifest
	// Counts are 0 if the list lacks them; Sum reports that.
	Counts
	FirstRowID Number // format version 3
	// Raw is the record in the list, unpacked.
	Raw string

	list  *container
	found uint32 // the bit id-idPath for each field that is present and not null
}

// List is a manifest list. It is immutable, and safe for concurrent use.
type List struct {
	file    *container // blocks are empty
	entries []*Entry
	paths   map[string]*Entry
	size    int
}

const (
	// listNodesMax bounds the schema of a list, because moving a value to another schema compares
	// types. Known writers have 50 nodes.
	listNodesMax = 256
	// entryBytes is the overhead of an entry in addition to its record: itself, a pointer, a place
	// in the map.
	entryBytes = int(unsafe.Sizeof(Entry{})) + 64
	// nodeBytes is the size of each node of a schema.
	nodeBytes = int(unsafe.Sizeof(schema{}) + unsafe.Sizeof(field{}))
)

// ReadList reads a manifest list. bytesMax and FileBytesMax bound the memory of the list that Size
// returns. Reading takes up to twice as much, and a copy of raw. The caller may change raw
// afterwards.
//
// Errors: ErrDamaged, also if a path is listed twice; ErrTooLarge; ErrForeign for an unknown codec.
func ReadList(raw []byte, bytesMax int) (*List, error) {
	file, err := open(raw)
	if err == nil && file.schema.nodes > listNodesMax {
		err = damaged("schema has %d nodes", file.schema.nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	l := newList(file, 0)
	bytesMax = min(bytesMax, FileBytesMax)
	left := bytesMax
	for c, err := range file.records(&left) {
		if err == nil {
			err = l.add(c, bytesMax)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest list: record %d: %w", len(l.entries), err)
		}
	}
	file.blocks = ""
	return l, nil
}

// newList returns a list of file without entries, but with room for count of them.
func newList(file *container, count int) *List {
	l := &List{file: file, entries: make([]*Entry, 0, count), paths: make(map[string]*Entry, count)}
	l.size = file.schema.nodes * nodeBytes
	for _, p := range file.header {
		l.size += len(p.key) + len(p.value)
	}
	return l
}

// add reads one record of the file, and adds it to the list.
func (l *List) add(c *cursor, bytesMax int) error {
	e := &Entry{list: l.file}
	start := c.at
	if err := c.fields(l.file.schema, e.set, nil); err != nil {
		return err
	}
	e.Raw = c.text[start:c.at]
	return l.take(e, bytesMax)
}

// take adds e to the list.
func (l *List) take(e *Entry, bytesMax int) error {
	if e.Path == "" || e.found&required != required {
		return damaged("path, length, spec or snapshot is missing")
	}
	if _, twice := l.paths[e.Path]; twice {
		return damaged("%q is listed twice", e.Path)
	}
	if l.size += len(e.Raw) + entryBytes; l.size > bytesMax {
		return ErrTooLarge
	}
	l.entries, l.paths[e.Path] = append(l.entries, e), e
	return nil
}

// set sets the field with id.
func (e *Entry) set(id int, v value) (err error) {
	if id < idPath || id > idFirstRowID || v.kind == kindNull {
		return nil
	}
	e.found |= 1 << (id - idPath)
	switch id {
	case idPath:
		e.Path, err = v.path()
	case idLength:
		err = v.atMost(math.MaxInt64, &e.Length)
	case idSpec:
		err = v.atMost(math.MaxInt32, &e.SpecID)
	case idSnapshot:
		e.SnapshotID, err = v.whole()
	case idAddedFiles:
		err = v.atMost(math.MaxInt32, &e.AddedFiles)
	case idExistingFiles:
		err = v.atMost(math.MaxInt32, &e.ExistingFiles)
	case idDeletedFiles:
		err = v.atMost(math.MaxInt32, &e.DeletedFiles)
	case idAddedRows:
		err = v.atMost(math.MaxInt64, &e.AddedRows)
	case idExistingRows:
		err = v.atMost(math.MaxInt64, &e.ExistingRows)
	case idDeletedRows:
		err = v.atMost(math.MaxInt64, &e.DeletedRows)
	case idSequenceNumber:
		err = v.atMost(math.MaxInt64, &e.SequenceNumber)
	case idMinSequenceNumber:
		err = v.atMost(math.MaxInt64, &e.MinSequenceNumber)
	case idContent:
		err = v.atMost(int64(Deletes), (*int64)(&e.Content))
	case idFirstRowID:
		e.FirstRowID, err = v.optional()
	}
	if err != nil {
		return fmt.Errorf("field %d: %w", id, err)
	}
	return nil
}

// Entries returns the entries in the order of the list. The slice is the caller's.
func (l *List) Entries() []*Entry { return slices.Clone(l.entries) }

// Entry returns the entry at path.
func (l *List) Entry(path string) (*Entry, bool) {
	e, ok := l.paths[path]
	return e, ok
}

// Size returns the bytes of memory that the list holds.
func (l *List) Size() int { return l.size }

// Without returns the entries whose paths others do not have, in their order.
func Without(entries, others []*Entry) (left []*Entry) {
	paths := make(map[string]struct{}, len(others))
	for _, e := range others {
		paths[e.Path] = struct{}{}
	}
	for _, e := range entries {
		if _, ok := paths[e.Path]; !ok {
			left = append(left, e)
		}
	}
	return left
}

// Sum returns the counts of all entries. ok is false if an entry lacks a count, which format
// version 1 allows, or if a sum exceeds 2^63-1.
func Sum(entries []*Entry) (total Counts, ok bool) {
	all := int64(0)
	for _, e := range entries {
		if e.found&counted != counted {
			return Counts{}, false
		}
		for _, n := range [...]struct {
			to  *int64
			add int64
		}{
			{&total.AddedFiles, e.AddedFiles}, {&total.ExistingFiles, e.ExistingFiles},
			{&total.DeletedFiles, e.DeletedFiles}, {&total.AddedRows, e.AddedRows},
			{&total.ExistingRows, e.ExistingRows}, {&total.DeletedRows, e.DeletedRows},
		} {
			if n.add > math.MaxInt64-all {
				return Counts{}, false
			}
			*n.to, all = *n.to+n.add, all+n.add
		}
	}
	return total, true
}
