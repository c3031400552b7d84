package manifests

import (
	"fmt"
	"slices"
)

// sameValues reports whether values of types a and b have the same bytes and the same meaning. If
// fields have ids, their names and comments do not matter.
func sameValues(a, b *schema) bool {
	if a == b {
		return true
	}
	return a.kind == b.kind && a.size == b.size && slices.Equal(a.symbols, b.symbols) &&
		sameID(a.keyID, b.keyID) && sameID(a.itemID, b.itemID) &&
		slices.EqualFunc(a.inner, b.inner, sameValues) &&
		slices.EqualFunc(a.fields, b.fields, func(f, g field) bool {
			return f.matches(g) && sameValues(f.schema, g.schema)
		})
}

// sameID compares the ids of items, which some writers leave out.
func sameID(a, b int) bool { return a == b || a == noID || b == noID }

// matches reports whether f and g are the same field. Fields with ids are compared by id, others by
// name.
func (f field) matches(g field) bool { return f.id == g.id && (f.id != noID || f.name == g.name) }

// like returns the index of the field of record s that matches f.
func (s *schema) like(f field) (at int, ok bool) {
	at = slices.IndexFunc(s.fields, f.matches)
	return at, at >= 0
}

// covers reports whether target has every id of source.
func covers(target, source *schema) bool {
	known, wanted := make(map[int]bool), make(map[int]bool)
	target.ids(known)
	source.ids(wanted)
	for id := range wanted {
		if !known[id] {
			return false
		}
	}
	return true
}

// ids adds the ids of all fields in s.
func (s *schema) ids(all map[int]bool) {
	for _, f := range s.fields {
		all[f.id] = true
		f.schema.ids(all)
	}
	for _, inner := range s.inner {
		inner.ids(all)
	}
}

// convert reads a value of type source at c, and appends it to out as a value of type target. It
// returns ErrForeign if type target cannot hold the value.
func convert(out []byte, target, source *schema, c *cursor) ([]byte, error) {
	switch {
	case sameValues(target, source), source.kind == kindInt && target.kind == kindLong:
		start := c.at
		_, err := c.read(source)
		return append(out, c.text[start:c.at]...), err
	case source.kind == kindUnion:
		branch, err := c.branch(source)
		if err != nil {
			return nil, err
		}
		return convert(out, target, branch, c)
	case target.kind == kindUnion:
		at := slices.IndexFunc(target.inner, func(s *schema) bool {
			return s.kind == source.kind || source.kind == kindInt && s.kind == kindLong
		})
		if at < 0 {
			break
		}
		return convert(appendLong(out, int64(at)), target.inner[at], source, c)
	case target.kind == kindRecord && source.kind == kindRecord:
		return convertRecord(out, target, source, c, func(int) Number { return Number{} })
	case target.kind == source.kind && (target.kind == kindArray || target.kind == kindMap) &&
		sameID(target.itemID, source.itemID) && sameID(target.keyID, source.keyID):
		return convertItems(out, target, source, c)
	}
	return nil, fmt.Errorf("type of a value differs: %w", ErrForeign)
}

// convertItems converts an array or a map.
func convertItems(out []byte, target, source *schema, c *cursor) ([]byte, error) {
	for count, err := range c.runs() {
		if err != nil {
			return nil, err
		}
		if source.inner[0].empty {
			return nil, fmt.Errorf("items without bytes: %w", ErrForeign)
		}
		out = appendLong(out, count)
		for range count {
			if target.kind == kindMap {
				key, err := c.sized()
				if err != nil {
					return nil, err
				}
				out = appendSized(out, key)
			}
			if out, err = convert(out, target.inner[0], source.inner[0], c); err != nil {
				return nil, err
			}
		}
	}
	return appendLong(out, 0), nil
}

// convertRecord converts a record. If patch has a number for the id of a field, that number
// replaces the field's value.
func convertRecord(out []byte, target, source *schema, c *cursor, patch func(id int) Number) ([]byte, error) {
	starts := make([]int, len(source.fields))
	for i, f := range source.fields {
		starts[i] = c.at
		v, err := c.read(f.schema)
		if err != nil {
			return nil, err
		}
		if _, ok := target.like(f); !ok && v.kind != kindNull {
			return nil, fmt.Errorf("value of field %d %.40q has no place: %w", f.id, f.name, ErrForeign)
		}
	}
	for _, id := range []int{idSequenceNumber, idMinSequenceNumber, idFirstRowID} {
		if _, ok := target.field(id); !ok && patch(id).Valid {
			return nil, fmt.Errorf("number of field %d has no place: %w", id, ErrForeign)
		}
	}
	for _, f := range target.fields {
		var err error
		if n := patch(f.id); n.Valid {
			out, err = appendNumber(out, f.schema, n.Value)
		} else if at, ok := source.like(f); ok {
			out, err = convert(out, f.schema, source.fields[at].schema, &cursor{text: c.text, at: starts[at]})
		} else {
			out, err = appendAbsent(out, f)
		}
		if err != nil {
			return nil, fmt.Errorf("field %d: %w", f.id, err)
		}
	}
	return out, nil
}

// appendNumber appends n as a value of type s.
func appendNumber(out []byte, s *schema, n int64) ([]byte, error) {
	fits := func(s *schema) bool { return s.kind == kindLong || s.kind == kindInt && n == int64(int32(n)) }
	if s.kind == kindUnion {
		at := slices.IndexFunc(s.inner, fits)
		if at < 0 {
			return nil, fmt.Errorf("%d has no place: %w", n, ErrForeign)
		}
		return appendLong(appendLong(out, int64(at)), n), nil
	}
	if !fits(s) {
		return nil, fmt.Errorf("%d has no place: %w", n, ErrForeign)
	}
	return appendLong(out, n), nil
}

// appendAbsent appends the value of a field f that the source record lacks. The value is null, or
// the number that the specification defines for lists of format version 1.
func appendAbsent(out []byte, f field) ([]byte, error) {
	if f.schema.kind == kindUnion {
		if at := slices.IndexFunc(f.schema.inner, func(s *schema) bool { return s.kind == kindNull }); at >= 0 {
			return appendLong(out, int64(at)), nil
		}
	}
	if f.id == idContent || f.id == idSequenceNumber || f.id == idMinSequenceNumber {
		return appendNumber(out, f.schema, 0)
	}
	return nil, fmt.Errorf("there is no value: %w", ErrForeign)
}
