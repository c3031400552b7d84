package metadata

import (
	"bytes"
	"slices"
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// memberEdit is the change of one top-level member.
type memberEdit struct {
	key   string
	drop  bool
	value []byte    // the new value, JSON; nil if list is set
	list  *listEdit // the change of an array
	array arrayName

	at int // index of the member, -1 if it is new; set by splice
}

func intChange(key string, n int64) memberEdit {
	return memberEdit{key: key, value: strconv.AppendInt(nil, n, 10)}
}

// growth returns an upper bound on the number of bytes that the change adds to the document. It may
// be negative. oldBytes is the length of the member's present value, 0 if the member is absent.
func (c *memberEdit) growth(oldBytes int) int {
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

func (c *memberEdit) write(dst, old []byte, arrays []list) []byte {
	if c.list == nil {
		return append(dst, c.value...)
	}
	if len(old) == 0 || old[0] != '[' { // absent, or null
		old = []byte("[]")
	}
	dst, arrays[c.array] = c.list.write(dst, old)
	return dst
}

// body is the JSON of a document, or of an object in it, with the positions of its members.
type body struct {
	raw []byte
	// names are the keys of the top level, in the document's order. spans are the positions of
	// these members. Versions of a document share names if they have the same keys.
	names []string
	spans []memberSpan
}

// memberSpan is the position of a top-level member and of its value. start is the opening quote of
// the member's key.
type memberSpan struct{ start, valueStart, valueEnd uint32 }

func spanOf(start, valueStart, valueEnd int) memberSpan {
	return memberSpan{uint32(start), uint32(valueStart), uint32(valueEnd)}
}

func (p memberSpan) value() jsontext.Span {
	return jsontext.Span{Start: int(p.valueStart), End: int(p.valueEnd)}
}

// read consumes a document and records the positions of its members. member consumes the value of
// each.
func (d *body) read(c *cursor, member func(key string) error) error {
	err := c.Object(func(key []byte) error {
		name, at := string(key), c.KeyPos()
		c.Space()
		start := c.Pos()
		err := member(name)
		d.names = append(d.names, name)
		d.spans = append(d.spans, spanOf(at, start, c.Pos()))
		return err
	})
	if err != nil {
		return err
	}
	return c.End()
}

// bodyOf returns the body of an object that was already parsed.
func bodyOf(raw []byte) body {
	d, c := body{raw: raw}, reread(raw)
	d.read(c, func(string) error { return c.Skip() }) //nolint:errcheck // it was read before
	return d
}

// find returns the position of the value of a member.
func (d *body) find(key string) (jsontext.Span, bool) {
	i := slices.Index(d.names, key)
	if i < 0 {
		return jsontext.Span{}, false
	}
	return d.spans[i].value(), true
}

// has reports whether there is a member of that name.
func (d *body) has(key string) bool {
	_, ok := d.find(key)
	return ok
}

// value returns the JSON of a member, which is part of the document. It returns nil if there is no
// such member.
func (d *body) value(key string) []byte {
	at, _ := d.find(key)
	return d.raw[at.Start:at.End]
}

// splicer copies a document with changes. It copies unchanged parts as they are, in runs as long as
// possible.
type splicer struct {
	body
	arrays []list
}

// splice returns d with changes. arrays holds the element positions of d's arrays; splice updates
// the positions in changed arrays. New members come last, in the order of changes.
func (d *body) splice(changes []memberEdit, arrays []list) (body, error) {
	size := len(d.raw)
	for i := range changes {
		c, oldBytes := &changes[i], 0
		if c.at = slices.Index(d.names, c.key); c.at >= 0 {
			oldBytes = int(d.spans[c.at].valueEnd - d.spans[c.at].valueStart)
		}
		size += c.growth(oldBytes)
	}
	if size > documentBytesMax {
		return body{}, moorage.Errorf(moorage.KindTooLarge,
			"Cannot write metadata of more than %d bytes", documentBytesMax)
	}
	s := splicer{body{make([]byte, 0, size), slices.Clip(d.names), make([]memberSpan, 0, len(d.spans))}, arrays}
	s.copyMembers(d, changes)
	return s.body, nil
}

func (s *splicer) copyMembers(d *body, changes []memberEdit) {
	copied := 0                            // end of the part of d.raw that was copied or skipped
	end := bytes.IndexByte(d.raw, '{') + 1 // end of the last member that was handled
	for i := range d.names {
		at, value := int(d.spans[i].start), d.spans[i].value()
		c := changeAt(changes, i)
		switch {
		case c == nil:
			shift := len(s.raw) - copied
			s.spans = append(s.spans, spanOf(at+shift, value.Start+shift, value.End+shift))
			end = value.End
		case c.drop:
			s.raw = append(s.raw, d.raw[copied:end]...)
			end = value.End
			if len(s.spans) == 0 && i+1 < len(d.spans) {
				end = int(d.spans[i+1].start) // the comma after the member is dropped, because no member precedes it
			}
			s.names = slices.Delete(slices.Clone(s.names), len(s.spans), len(s.spans)+1)
			copied = end
		default:
			s.raw = append(s.raw, d.raw[copied:value.Start]...)
			start := len(s.raw)
			s.raw = c.write(s.raw, d.raw[value.Start:value.End], s.arrays)
			s.spans = append(s.spans, spanOf(start-(value.Start-at), start, len(s.raw)))
			copied, end = value.End, value.End
		}
	}
	s.raw = append(s.raw, d.raw[copied:end]...)
	s.addMembers(changes)
	s.raw = append(s.raw, d.raw[end:]...)
}

// addMembers appends the new members.
func (s *splicer) addMembers(changes []memberEdit) {
	for i := range changes {
		c := &changes[i]
		if c.drop || c.at >= 0 {
			continue
		}
		if len(s.spans) > 0 {
			s.raw = append(s.raw, ',')
		}
		at := len(s.raw)
		s.raw = append(strconv.AppendQuote(s.raw, c.key), ':')
		start := len(s.raw)
		s.raw = c.write(s.raw, nil, s.arrays)
		s.names = append(s.names, c.key)
		s.spans = append(s.spans, spanOf(at, start, len(s.raw)))
	}
}

// changeAt returns the change of a member. It returns nil if the member does not change.
func changeAt(changes []memberEdit, member int) *memberEdit {
	for i := range changes {
		if changes[i].at == member {
			return &changes[i]
		}
	}
	return nil
}
