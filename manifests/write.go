package manifests

import (
	"fmt"
	"slices"
	"strconv"
)

// Header holds the information about a snapshot that is in the header of its list.
type Header struct {
	FormatVersion, SnapshotID, ParentID, SequenceNumber int64
	FirstRowID                                          Number // format version 3
}

// Record is an entry of a new list, with numbers that replace the entry's own. Numbers that are not
// Valid replace nothing.
type Record struct {
	Entry                                         *Entry
	SequenceNumber, MinSequenceNumber, FirstRowID Number
}

// patch returns the number that replaces the value of the field with id.
func (r Record) patch(id int) Number {
	switch id {
	case idSequenceNumber:
		return r.SequenceNumber
	case idMinSequenceNumber:
		return r.MinSequenceNumber
	case idFirstRowID:
		return r.FirstRowID
	}
	return Number{}
}

// hasNumbers reports whether r replaces a number of the entry.
func (r Record) hasNumbers() bool {
	return r.SequenceNumber.Valid || r.MinSequenceNumber.Valid || r.FirstRowID.Valid
}

// NewList returns a list of the added records, followed by the kept entries. All are entries of
// lists. There must be at least one list. The new list has the codec of the first list. It has the
// schema and the header of the first list whose schema has the field-ids of all lists, or else of
// the first list. header replaces the numbers in the header. The new list shares each entry whose
// record does not change.
//
// Errors: ErrForeign if the schema has no field for a value, or if a required field has no value;
// ErrDamaged if a path is listed twice; ErrTooLarge.
func NewList(header Header, added []Record, kept []*Entry, lists ...*List) (*List, error) {
	like := lists[0].file
	l := newList(follow(lists).headed(like, header), len(added)+len(kept))
	alike := make(map[*schema]bool) // whether values of the type have the same bytes in l
	add := func(r Record) error {
		from := r.Entry.schema
		if _, known := alike[from]; !known {
			alike[from] = sameValues(l.file.schema, from)
		}
		e, shared, err := r.Entry, alike[from] && !r.hasNumbers(), error(nil)
		if !shared {
			e, err = l.convert(r)
		}
		if err == nil {
			err = l.take(e, shared, FileBytesMax)
		}
		if err != nil {
			return fmt.Errorf("new manifest list: record %d: %w", len(l.entries), err)
		}
		return nil
	}
	for _, r := range added {
		if err := add(r); err != nil {
			return nil, err
		}
	}
	for _, e := range kept {
		if err := add(Record{Entry: e}); err != nil {
			return nil, err
		}
	}
	if err := l.seal(); err != nil {
		return nil, fmt.Errorf("new manifest list: %w", err)
	}
	return l, nil
}

// convert returns the entry of record r in l.
func (l *List) convert(r Record) (*Entry, error) {
	to := l.file.schema
	raw, err := convertRecord(nil, to, r.Entry.schema, &cursor{text: r.Entry.Raw}, r.patch)
	if err != nil {
		return nil, err
	}
	c := cursor{text: string(raw)}
	e := &Entry{Raw: c.text, schema: to}
	if err := c.fields(to, e.set, nil); err != nil {
		return nil, err
	}
	if c.at != len(c.text) {
		return nil, damaged("it ends at %d, not at %d", c.at, len(c.text))
	}
	return e, e.complete()
}

// Encode returns the list as a file. It returns only errors of the codec, which are not expected.
func (l *List) Encode() ([]byte, error) {
	return l.file.encode(func(yield func(string) bool) {
		for _, e := range l.entries {
			if !yield(e.Raw) {
				return
			}
		}
	})
}

// follow returns the file of the list whose schema and header the new list uses.
func follow(lists []*List) *container {
	for _, candidate := range lists {
		lacks := func(other *List) bool { return !covers(candidate.file.schema, other.file.schema) }
		if !slices.ContainsFunc(lists, lacks) {
			return candidate.file
		}
	}
	return lists[0].file
}

// headed returns a new container without records. It has the schema and the header of f with new
// numbers, and the codec and the marker of like, another file.
func (f *container) headed(like *container, h Header) *container {
	header := deletePair(slices.Clone(f.header), codecKey)
	if name := like.value(codecKey); name != "" {
		header = setPair(header, codecKey, name)
	}
	for _, item := range []struct {
		key   string
		value int64
	}{
		{"format-version", h.FormatVersion}, {"snapshot-id", h.SnapshotID},
		{"parent-snapshot-id", h.ParentID}, {"sequence-number", h.SequenceNumber},
	} {
		header = setPair(header, item.key, strconv.FormatInt(item.value, 10))
	}
	if header = deletePair(header, "first-row-id"); h.FirstRowID.Valid {
		header = setPair(header, "first-row-id", strconv.FormatInt(h.FirstRowID.Value, 10))
	}
	return &container{header: header, marker: like.marker, codec: like.codec, schema: f.schema}
}
