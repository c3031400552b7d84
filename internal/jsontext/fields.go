package jsontext

import (
	"bytes"
	"slices"
	"strconv"

	"moorage"
)

// Span is the position of a value, or of a run of bytes, in a text.
type Span struct{ Start, End int }

// field is a member of an object.
type field struct {
	key string // unescaped
	at  Span   // position of the value
}

// Fields are the members of an object, and their positions in a text. Their values are read only on
// demand, because a tree of everything that a client may send is a hundred times as large as the
// text. Errors of the methods are KindBadRequest. Fields are immutable, and safe for concurrent
// use.
type Fields struct {
	raw     []byte
	at      Span
	members []field
}

// ParseFields reads an object, with all checks of NewReader. It refuses a value that is not an
// object. The error calls the value by label.
func ParseFields(raw []byte, label string) (Fields, error) {
	r := NewReader(raw)
	o, err := r.Fields(label)
	if err != nil {
		return o, err
	}
	return o, r.End()
}

// Fields consumes an object, and returns the positions of its members. It refuses a value that is
// not an object. The error calls the value by label.
func (r *Reader) Fields(label string) (Fields, error) {
	o := Fields{raw: r.raw}
	first := r.Space()
	o.at.Start = r.pos
	if first != '{' {
		literal, err := r.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse %s from non-object: %s", label, Clip(string(literal)))
		}
		return o, err
	}
	err := r.Object(func(key []byte) error {
		r.Space()
		m := field{key: string(key), at: Span{Start: r.pos}}
		err := r.Skip()
		m.at.End = r.pos
		o.members = append(o.members, m)
		return err
	})
	o.at.End = r.pos
	return o, err
}

// Find returns the value of a member. It returns false if there is no such member.
func (o Fields) Find(key string) (Span, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m.at, true
		}
	}
	return Span{}, false
}

// Present is like Find, but also returns false for a member that is null.
func (o Fields) Present(key string) (Span, bool) {
	at, ok := o.Find(key)
	if !ok || o.raw[at.Start] == 'n' {
		return Span{}, false
	}
	return at, true
}

// Raw returns the text of the object itself.
func (o Fields) Raw() []byte { return o.Bytes(o.at) }

// Bytes returns the value of a member.
func (o Fields) Bytes(at Span) []byte { return o.raw[at.Start:at.End] }

// Text is Bytes as a string.
func (o Fields) Text(at Span) string { return string(o.raw[at.Start:at.End]) }

// Object returns the value at position at as an object. It refuses a value that is not an object.
// In the error, label names the value.
func (o Fields) Object(at Span, label string) (Fields, error) {
	return o.readerAt(at).Fields(label)
}

// readerAt returns a Reader positioned before the value at position at.
func (o Fields) readerAt(at Span) *Reader {
	return &Reader{raw: o.raw, pos: at.Start, depthMax: DepthMax}
}

// each calls visit for each element of a member, until visit fails. visit must consume the element.
// each returns false if the member is not an array.
func (o Fields) each(at Span, visit func(r *Reader) error) (isArray bool, err error) {
	if o.raw[at.Start] != '[' {
		return false, nil
	}
	r := o.readerAt(at)
	return true, r.Array(func() error { return visit(r) })
}

// EachObject calls visit for each element of a member, which must be an array of objects, until
// visit fails. It refuses an element that is not an object. The error calls the element by label.
// It returns false if the member is not an array.
func (o Fields) EachObject(at Span, label string, visit func(Fields) error) (isArray bool, err error) {
	return o.each(at, func(r *Reader) error {
		element, err := r.Fields(label)
		if err != nil {
			return err
		}
		return visit(element)
	})
}

// Required returns a member that must exist and not be null.
func (o Fields) Required(key string) (Span, error) {
	at, ok := o.Present(key)
	if !ok {
		return at, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", key)
	}
	return at, nil
}

// Int returns a member that must be a 32-bit integer, and its position.
func (o Fields) Int(key string) (int, Span, error) {
	at, ok := o.Find(key)
	if !ok {
		return 0, at, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing int: %s", key)
	}
	n, err := strconv.ParseInt(o.Text(at), 10, 32)
	if err != nil {
		return 0, at, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to an integer value: %s: %s", key, Clip(o.Text(at)))
	}
	return int(n), at, nil
}

// Ints returns the value of the member key, an array of 32-bit integers.
func (o Fields) Ints(key string, at Span) ([]int, error) {
	var numbers []int
	isArray, err := o.each(at, func(r *Reader) error {
		text, err := r.Value()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(text), 10, 32)
		if err != nil {
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse integer from non-int value in %s: %s", key, Clip(string(text)))
		}
		numbers = append(numbers, int(n))
		return nil
	})
	if !isArray {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse JSON array from non-array value: %s: %s", key, Clip(o.Text(at)))
	}
	return numbers, err
}

// Bool returns a member that must be true or false.
func (o Fields) Bool(key string) (bool, error) {
	at, ok := o.Find(key)
	if !ok {
		return false, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing boolean: %s", key)
	}
	switch o.raw[at.Start] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, moorage.Errorf(moorage.KindBadRequest,
		"Cannot parse to a boolean value: %s: %s", key, Clip(o.Text(at)))
}

// Str returns a member that must be a string, and its position.
func (o Fields) Str(key string) (string, Span, error) {
	at, ok := o.Find(key)
	if !ok {
		return "", at, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing string: %s", key)
	}
	if o.raw[at.Start] != '"' {
		return "", at, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a string value: %s: %s", key, Clip(o.Text(at)))
	}
	return Unquote(o.raw[at.Start:at.End]), at, nil
}

// Patch replaces the bytes of a Span; an empty Span inserts.
type Patch struct {
	At   Span
	With string
}

// ApplyPatches returns raw with the patches applied. They must not overlap.
func ApplyPatches(raw []byte, patches []Patch) []byte {
	patches = slices.Clone(patches)
	slices.SortStableFunc(patches, func(a, b Patch) int { return a.At.Start - b.At.Start })
	out := make([]byte, 0, len(raw)+16*len(patches))
	done := 0
	for _, p := range patches {
		out = append(append(out, raw[done:p.At.Start]...), p.With...)
		done = p.At.End
	}
	return append(out, raw[done:]...)
}

// Set returns the Patch that sets the member key to value (JSON). A new member becomes the first of
// the object.
func (o Fields) Set(key, value string) Patch {
	if at, ok := o.Find(key); ok {
		return Patch{at, value}
	}
	with := Quote(key) + ":" + value
	if len(o.members) > 0 {
		with += ","
	}
	return Patch{Span{o.at.Start + 1, o.at.Start + 1}, with}
}

// Drop returns the patches that remove the members for which drop returns true. Each patch also
// removes a comma.
func (o Fields) Drop(drop func(key string, at Span) bool) []Patch {
	var patches []Patch
	kept := false
	start := o.at.Start + 1 // for member i; with the comma before it once a member is kept
	for i, m := range o.members {
		end := m.at.End
		dropped := drop(m.key, m.at)
		if !kept && dropped && i+1 < len(o.members) {
			end = bytes.IndexByte(o.raw[end:], ',') + end + 1
		}
		if dropped {
			patches = append(patches, Patch{At: Span{start, end}})
		}
		kept = kept || !dropped
		start = end
	}
	return patches
}

// Long returns a member that must be an integer of 64 bits.
func (o Fields) Long(key string) (int64, error) {
	at, ok := o.Find(key)
	if !ok {
		return 0, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing long: %s", key)
	}
	n, err := strconv.ParseInt(o.Text(at), 10, 64)
	if err != nil {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a long value: %s: %s", key, Clip(o.Text(at)))
	}
	return n, nil
}

// LongOrAbsent returns a member that must be an integer of 64 bits, null or missing. It returns
// false if the member is null or missing.
func (o Fields) LongOrAbsent(key string) (int64, bool, error) {
	if _, ok := o.Present(key); !ok {
		return 0, false, nil
	}
	n, err := o.Long(key)
	return n, true, err
}

// FirstOf returns the first of keys for which the object has a member. If there is no such member,
// it returns keys[0].
func (o Fields) FirstOf(keys ...string) string {
	for _, key := range keys {
		if _, ok := o.Find(key); ok {
			return key
		}
	}
	return keys[0]
}
