package metadata

import (
	"bytes"
	"slices"
	"strconv"

	"moorage"
)

// change says what becomes of one top-level member.
type change struct {
	key   string
	drop  bool
	value []byte    // the new value, JSON; nil if list says it
	list  *listEdit // the change of an array
	array arrayName
}

func (c *change) write(dst, old []byte, arrays *[arrayCount]list) []byte {
	if c.list == nil {
		return append(dst, c.value...)
	}
	if len(old) == 0 || old[0] != '[' { // not there, or null
		old = []byte("[]")
	}
	dst, arrays[c.array] = c.list.write(dst, old)
	return dst
}

// splicer copies a document with changes. What they do not touch is copied as it is, in runs as
// long as possible.
type splicer struct {
	raw    []byte
	names  []string
	places []memberPlace
	arrays [arrayCount]list
}

// splice returns the document after changes, with the places of its members and elements. New
// members come last, in the order of changes.
func (d *Document) splice(changes []change) (splicer, error) {
	s := splicer{names: slices.Clip(d.names), arrays: d.arrays}
	size := len(d.raw)
	for i := range changes {
		const punctuation = len(`,"":[],`)
		size += len(changes[i].key) + len(changes[i].value) + punctuation
		if l := changes[i].list; l != nil {
			size += l.addedBytes()
		}
	}
	if size > documentBytesMax {
		return s, moorage.Errorf(moorage.KindTooLarge,
			"Cannot write metadata of more than %d bytes", documentBytesMax)
	}
	s.raw = make([]byte, 0, size)
	s.places = make([]memberPlace, 0, len(d.places))
	s.copyMembers(d, changes)
	return s, nil
}

func (s *splicer) copyMembers(d *Document, changes []change) {
	copied := 0                            // up to where d.raw was copied or left out
	end := bytes.IndexByte(d.raw, '{') + 1 // after the last member that was dealt with
	for i, key := range d.names {
		at, value := int(d.places[i].start), d.places[i].value()
		c := findChange(changes, key)
		switch {
		case c == nil:
			shift := len(s.raw) - copied
			s.places = append(s.places, placeOf(at+shift, value.start+shift, value.end+shift))
			end = value.end
		case c.drop:
			s.raw = append(s.raw, d.raw[copied:end]...)
			end = value.end
			if len(s.places) == 0 && i+1 < len(d.places) {
				end = int(d.places[i+1].start) // the comma after it goes, for there is none before
			}
			s.names = slices.Delete(slices.Clone(s.names), len(s.places), len(s.places)+1)
			copied = end
		default:
			s.raw = append(s.raw, d.raw[copied:value.start]...)
			start := len(s.raw)
			s.raw = c.write(s.raw, d.raw[value.start:value.end], &s.arrays)
			s.places = append(s.places, placeOf(start-(value.start-at), start, len(s.raw)))
			copied, end = value.end, value.end
		}
	}
	s.raw = append(s.raw, d.raw[copied:end]...)
	s.addMembers(d, changes)
	s.raw = append(s.raw, d.raw[end:]...)
}

// addMembers appends the members that d does not have.
func (s *splicer) addMembers(d *Document, changes []change) {
	for i := range changes {
		c := &changes[i]
		if c.drop || d.has(c.key) {
			continue
		}
		if len(s.places) > 0 {
			s.raw = append(s.raw, ',')
		}
		at := len(s.raw)
		s.raw = append(strconv.AppendQuote(s.raw, c.key), ':')
		start := len(s.raw)
		s.raw = c.write(s.raw, nil, &s.arrays)
		s.names = append(s.names, c.key)
		s.places = append(s.places, placeOf(at, start, len(s.raw)))
	}
}

func findChange(changes []change, key string) *change {
	for i := range changes {
		if changes[i].key == key {
			return &changes[i]
		}
	}
	return nil
}
