package manifests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Header has a list's information about its snapshot.
type Header struct {
	FormatVersion, SnapshotID, ParentID, SequenceNumber int64
	FirstRowID                                          Number // format version 3
}

// Record is an entry of a new list, with numbers that replace the entry's own. A number that is not
// Valid replaces nothing.
type Record struct {
	Entry                                         *Entry
	SequenceNumber, MinSequenceNumber, FirstRowID Number
}

// patch returns the replacement for the field with id.
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

// NewList returns a list of records, in their order, with the codec of like. Its schema and header
// come from the first list whose schema has the field-ids of all lists involved. The candidates are
// like and then the lists of the records. If no list qualifies, they come from like. The numbers of
// the header are replaced. The new list keeps no memory of other lists.
//
// Errors: ErrForeign for a value that the schema has no field for, or a field that takes no null
// and has no value; ErrDamaged for a path that is listed twice; ErrTooLarge.
func NewList(like *List, header Header, records []Record) (*List, error) {
	file := follow(like.file, records)
	l := newList(file.headed(like.file, header), len(records))
	text, ends, err := convertAll(l.file.schema, records)
	if err != nil {
		return nil, fmt.Errorf("new manifest list: %w", err)
	}
	c := cursor{text: text}
	for i, end := range ends {
		if end.plain {
			err = l.take(records[i].Entry.in(text[c.at:end.at], l.file), FileBytesMax)
			c.at = end.at
		} else {
			err = l.add(&c, FileBytesMax)
		}
		if err == nil && c.at != end.at {
			err = damaged("it ends at %d, not at %d", c.at, end.at)
		}
		if err != nil {
			return nil, fmt.Errorf("new manifest list: record %d: %w", i, err)
		}
	}
	return l, nil
}

// in returns the entry of another list, with raw as its record there.
func (e *Entry) in(raw string, list *container) *Entry {
	moved := *e
	moved.Raw, moved.list = raw, list
	at := strings.Index(raw, e.Path)
	moved.Path = raw[at : at+len(e.Path)]
	return &moved
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

// follow returns the file whose schema a list of records uses.
func follow(like *container, records []Record) *container {
	files := []*container{like}
	for _, r := range records {
		if !slices.Contains(files, r.Entry.list) {
			files = append(files, r.Entry.list)
		}
	}
	for _, candidate := range files {
		if !slices.ContainsFunc(files, func(other *container) bool { return !covers(candidate.schema, other.schema) }) {
			return candidate
		}
	}
	return like
}

// headed returns a new container without records: the schema and the header of f with new numbers,
// and the codec and the marker of like.
func (f *container) headed(like *container, h Header) *container {
	header := without(slices.Clone(f.header), codecKey)
	if name := like.value(codecKey); name != "" {
		header = with(header, codecKey, name)
	}
	for _, item := range []struct {
		key   string
		value int64
	}{
		{"format-version", h.FormatVersion}, {"snapshot-id", h.SnapshotID},
		{"parent-snapshot-id", h.ParentID}, {"sequence-number", h.SequenceNumber},
	} {
		header = with(header, item.key, strconv.FormatInt(item.value, 10))
	}
	if header = without(header, "first-row-id"); h.FirstRowID.Valid {
		header = with(header, "first-row-id", strconv.FormatInt(h.FirstRowID.Value, 10))
	}
	return &container{header: header, marker: like.marker, codec: like.codec, schema: f.schema}
}

// span has the end of a record.
type span struct {
	at    int
	plain bool // whether it has the bytes of the entry
}

// convertAll returns all records in the form of schema to, and the end of each.
func convertAll(to *schema, records []Record) (string, []span, error) {
	var out []byte
	ends := make([]span, 0, len(records))
	alike := make(map[*schema]bool)
	for i, r := range records {
		from := r.Entry.list.schema
		if _, known := alike[from]; !known {
			alike[from] = same(to, from)
		}
		plain := alike[from] && !r.SequenceNumber.Valid && !r.MinSequenceNumber.Valid && !r.FirstRowID.Valid
		if plain {
			out = append(out, r.Entry.Raw...)
		} else {
			var err error
			if out, err = convertRecord(out, to, from, &cursor{text: r.Entry.Raw}, r.patch); err != nil {
				return "", nil, fmt.Errorf("record %d: %w", i, err)
			}
		}
		if len(out) > FileBytesMax {
			return "", nil, ErrTooLarge
		}
		ends = append(ends, span{len(out), plain})
	}
	return string(out), ends, nil
}
