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

	at int // which member it is, -1 if there is none; set by splice
}

// growth is an upper bound of what the change adds to the document. The value of its member has
// oldBytes in the document, 0 if it is not there. growth may be negative.
func (c *change) growth(oldBytes int) int {
	grown := 0
	switch {
	case c.drop:
		return -oldBytes
	case c.list != nil:
		grown = c.list.growth()
	default:
		grown = len(c.value) - oldBytes
	}
	if c.at < 0 {
		grown += len(c.key) + len(`,"":`)
	}
	return grown
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

// splicer copies a document with changes. It copies what they do not touch as it is, in runs as
// long as possible.
type splicer struct {
	raw    []byte
	names  []string
	places []memberPlace
	arrays *[arrayCount]list
}

// splice gives next, which has the arrays of d, the bytes of d after changes, and the places of its
// members and elements. New members come last, in the order of changes.
func (d *Document) splice(changes []change, next *Document) error {
	size := len(d.raw)
	for i := range changes {
		c, oldBytes := &changes[i], 0
		if c.at = slices.Index(d.names, c.key); c.at >= 0 {
			oldBytes = int(d.places[c.at].valueEnd - d.places[c.at].valueStart)
		}
		size += c.growth(oldBytes)
	}
	if size > documentBytesMax {
		return moorage.Errorf(moorage.KindTooLarge,
			"Cannot write metadata of more than %d bytes", documentBytesMax)
	}
	s := splicer{
		raw: make([]byte, 0, size), names: slices.Clip(d.names), places: make([]memberPlace, 0, len(d.places)),
		arrays: &next.arrays,
	}
	s.copyMembers(d, changes)
	next.raw, next.names, next.places = s.raw, s.names, s.places
	return nil
}

func (s *splicer) copyMembers(d *Document, changes []change) {
	copied := 0                            // up to where d.raw was copied or left out
	end := bytes.IndexByte(d.raw, '{') + 1 // after the last member that was dealt with
	for i := range d.names {
		at, value := int(d.places[i].start), d.places[i].value()
		c := changeAt(changes, i)
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
			s.raw = c.write(s.raw, d.raw[value.start:value.end], s.arrays)
			s.places = append(s.places, placeOf(start-(value.start-at), start, len(s.raw)))
			copied, end = value.end, value.end
		}
	}
	s.raw = append(s.raw, d.raw[copied:end]...)
	s.addMembers(changes)
	s.raw = append(s.raw, d.raw[end:]...)
}

// addMembers appends the members that are new.
func (s *splicer) addMembers(changes []change) {
	for i := range changes {
		c := &changes[i]
		if c.drop || c.at >= 0 {
			continue
		}
		if len(s.places) > 0 {
			s.raw = append(s.raw, ',')
		}
		at := len(s.raw)
		s.raw = append(strconv.AppendQuote(s.raw, c.key), ':')
		start := len(s.raw)
		s.raw = c.write(s.raw, nil, s.arrays)
		s.names = append(s.names, c.key)
		s.places = append(s.places, placeOf(at, start, len(s.raw)))
	}
}

// changeAt returns the change of a member, nil if it stays.
func changeAt(changes []change, member int) *change {
	for i := range changes {
		if changes[i].at == member {
			return &changes[i]
		}
	}
	return nil
}
