package metadata

import (
	"bytes"
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
	raw     []byte
	members []jsonMember
	arrays  [arrayCount]list
}

// splice returns the document after changes, with the places of its members and elements. New
// members come last, in the order of changes.
func (d *Document) splice(changes []change) (splicer, error) {
	s := splicer{arrays: d.arrays}
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
	s.members = make([]jsonMember, 0, len(d.members)+len(changes))
	s.copyMembers(d, changes)
	return s, nil
}

func (s *splicer) copyMembers(d *Document, changes []change) {
	copied := 0                            // up to where d.raw was copied or left out
	end := bytes.IndexByte(d.raw, '{') + 1 // after the last member that was dealt with
	for i, m := range d.members {
		c := findChange(changes, m.key)
		switch {
		case c == nil:
			shift := len(s.raw) - copied
			s.members = append(s.members, jsonMember{
				m.key, m.start + shift, extent{m.value.start + shift, m.value.end + shift},
			})
			end = m.value.end
		case c.drop:
			s.raw = append(s.raw, d.raw[copied:end]...)
			end = m.value.end
			if len(s.members) == 0 && i+1 < len(d.members) {
				end = d.members[i+1].start // the comma after it goes, for there is none before
			}
			copied = end
		default:
			s.raw = append(s.raw, d.raw[copied:m.value.start]...)
			start := len(s.raw)
			s.raw = c.write(s.raw, d.raw[m.value.start:m.value.end], &s.arrays)
			s.members = append(s.members, jsonMember{
				m.key, start - (m.value.start - m.start), extent{start, len(s.raw)},
			})
			copied, end = m.value.end, m.value.end
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
		if len(s.members) > 0 {
			s.raw = append(s.raw, ',')
		}
		m := jsonMember{key: c.key, start: len(s.raw)}
		s.raw = append(strconv.AppendQuote(s.raw, c.key), ':')
		m.value.start = len(s.raw)
		s.raw = c.write(s.raw, nil, &s.arrays)
		m.value.end = len(s.raw)
		s.members = append(s.members, m)
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
