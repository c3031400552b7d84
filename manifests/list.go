package manifests

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
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
	idKey               = 519
	idFirstRowID        = 520
)

// Sets of fields, as bits of Entry.found.
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

// The contents. A manifest with the content Deletes may have both kinds of delete files.
const (
	Data Content = iota
	Deletes
	EqualityDeletes // only for single files
)

// Counts holds the numbers of files and rows of each status in a manifest, from the manifest list.
type Counts struct {
	AddedFiles, ExistingFiles, DeletedFiles int64
	AddedRows, ExistingRows, DeletedRows    int64
}

// LiveFiles returns the number of the manifest's files that a reader of the table must read.
func (c Counts) LiveFiles() int64 { return c.AddedFiles + c.ExistingFiles }

// LiveRows returns the number of rows in the live files.
func (c Counts) LiveRows() int64 { return c.AddedRows + c.ExistingRows }

// Entry is a manifest as described in a list. It must not be changed. Several lists can share it.
type Entry struct {
	Path   string
	Length int64 // bytes of the file
	SpecID int64
	// Content is Data or Deletes; Data in lists of format version 1.
	Content Content
	// SequenceNumber and MinSequenceNumber are 0 in lists of format version 1.
	SequenceNumber, MinSequenceNumber int64
	SnapshotID                        int64 // snapshot that added the manifest
	// Counts are 0 if the list lacks them. Then Sum returns ok as false.
	Counts
	FirstRowID Number // format version 3
	// Raw is the record in the list, unpacked.
	Raw string

	schema  *schema // of the record
	hash    uint64  // of Path
	found   uint32  // the bit id-idPath for each field that is present and not null
	holders int32   // number of held lists with this entry; see List.Hold
}

// List is a manifest list. It is immutable, and safe for concurrent use.
type List struct {
	file    *container // blocks are empty
	entries []*Entry
	index   []uint32 // a hash table of the entries by path: the position + 1; 0 is free
	size    int      // bytes that the list does not share
	whole   int      // bytes of everything in the list
}

const (
	// listNodesMax is the maximum number of nodes in a list's schema. There is a limit because
	// moving a value to another schema compares types. Known writers have 50 nodes.
	listNodesMax = 256
	// entryBytes is the overhead of an entry in addition to its record and its slot.
	entryBytes = int(unsafe.Sizeof(Entry{})) + 16
	// slotBytes is the memory of an entry's place in a list: a pointer, and up to four items of the
	// index.
	slotBytes = 8 + 4*4
	// nodeBytes is the memory of one node of a schema.
	nodeBytes = int(unsafe.Sizeof(schema{}) + unsafe.Sizeof(field{}))
)

// newList returns a list of file without entries, but with room for count of them.
func newList(file *container, count int) *List {
	l := &List{file: file, entries: make([]*Entry, 0, count)}
	for _, p := range file.header {
		l.size += len(p.key) + len(p.value)
	}
	l.whole = l.size + file.schema.nodes*nodeBytes
	return l
}

// take adds e to the list. shared is true if another list has e too.
func (l *List) take(e *Entry, shared bool, bytesMax int) error {
	if l.whole += slotBytes + e.bytes(); l.whole > bytesMax {
		return ErrTooLarge
	}
	if l.size += slotBytes; !shared {
		l.size += e.bytes()
	}
	l.entries = append(l.entries, e)
	return nil
}

// IsEncrypted reports whether the list has an encryption key for the manifest.
func (e *Entry) IsEncrypted() bool { return e.found&(1<<(idKey-idPath)) != 0 }

// bytes returns the memory of e, without its place in a list.
func (e *Entry) bytes() int { return len(e.Raw) + entryBytes }

// complete checks that e has the fields that each manifest must have, and hashes its path.
func (e *Entry) complete() error {
	if e.Path == "" || e.found&required != required {
		return damaged("path, length, spec or snapshot is missing")
	}
	e.hash = maphash.String(pathSeed, e.Path)
	return nil
}

// own copies the memory to which e refers, so that e does not keep a block in memory.
func (e *Entry) own() {
	at := strings.Index(e.Raw, e.Path)
	e.Raw = strings.Clone(e.Raw)
	e.Path = e.Raw[at : at+len(e.Path)]
}

// pathSeed is the seed of the hashes of all paths.
var pathSeed = maphash.MakeSeed()

// seal makes the index. The error is ErrDamaged if a path is listed twice.
func (l *List) seal() error {
	size := 4
	for size < 2*len(l.entries) {
		size *= 2
	}
	l.index = make([]uint32, size)
	for i, e := range l.entries {
		slot, found := l.slot(e)
		if found {
			return damaged("%q is listed twice", e.Path)
		}
		l.index[slot] = uint32(i + 1)
	}
	return nil
}

// slot returns the place in the index of the entry with the path of e. If there is none, it returns
// the place for it.
func (l *List) slot(e *Entry) (slot int, found bool) {
	mask := len(l.index) - 1
	for slot = int(e.hash) & mask; l.index[slot] != 0; slot = (slot + 1) & mask {
		other := l.entries[l.index[slot]-1]
		if other == e || other.hash == e.hash && other.Path == e.Path {
			return slot, true
		}
	}
	return slot, false
}

// find returns the position of the entry with the path of e.
func (l *List) find(e *Entry) (at int, ok bool) {
	slot, ok := l.slot(e)
	return int(l.index[slot]) - 1, ok
}

// set sets the field with the given id.
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

// Entries returns the entries in the order of the list. The slice must not be changed.
func (l *List) Entries() []*Entry { return slices.Clip(l.entries) }

// Match returns the entry of l with the path of e. e may be an entry of any list.
func (l *List) Match(e *Entry) (*Entry, bool) {
	at, ok := l.find(e)
	if !ok {
		return nil, false
	}
	return l.entries[at], true
}

// Size returns the bytes of memory that the list holds. It does not count entries that l shares
// with its model, or with the lists from which NewList made it.
func (l *List) Size() int { return l.size }

// Whole returns the bytes of memory that the list holds, with all the entries that it shares.
func (l *List) Whole() int { return l.whole }

// Hold records that a cache holds the list. It returns the bytes that the list adds to the held
// lists; entries shared with another held list add none. Calls of Hold and Release for lists that
// share entries must not overlap.
func (l *List) Hold() (bytes int) {
	bytes = l.whole
	for _, e := range l.entries {
		if e.holders++; e.holders > 1 {
			bytes -= e.bytes()
		}
	}
	return bytes
}

// Release undoes a call of Hold. It returns the bytes that are freed; entries shared with another
// held list are not.
func (l *List) Release() (bytes int) {
	bytes = l.whole
	for _, e := range l.entries {
		if e.holders--; e.holders > 0 {
			bytes -= e.bytes()
		}
	}
	return bytes
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
