package jsontext

import (
	"bytes"
	"iter"
)

const (
	// checkDepthMax is the maximum depth of checked text. A request body adds a few levels around a
	// document, which has up to DepthMax levels.
	checkDepthMax = DepthMax + 12
	// checkKeysMax is the maximum number of keys that Check remembers at a time: the keys of an
	// object and of the objects around it. Remembered keys take many times the memory of their
	// text. No real table has so many properties.
	checkKeysMax = 100_000
)

// Checked is the text of one valid JSON value, without white space around it. Only this package can
// make a Checked that has a value; the zero Checked has no value. A Checked refers to its source
// text, which must not be modified. It is safe for concurrent use.
type Checked struct{ text []byte }

// Check returns text as a Checked. text must be one JSON value, with only white space around it. It
// may nest at most 512 deep. An object and the objects around it may have at most 100,000 keys
// together.
//
// The error is a moorage.Error of KindBadRequest with a *SyntaxError as its cause.
func Check(text []byte) (Checked, error) {
	r := Reader{raw: text, depthMax: checkDepthMax, keysMax: checkKeysMax}
	value, err := r.Value()
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return Checked{}, err
	}
	return Checked{value}, nil
}

// Bytes returns the text, or nil if c has no value. The caller must not modify it.
func (c Checked) Bytes() []byte { return c.text }

// IsZero reports whether c has no value.
func (c Checked) IsZero() bool { return c.text == nil }

// IsNull reports whether c is the JSON value null.
func (c Checked) IsNull() bool { return len(c.text) > 0 && c.text[0] == 'n' }

// Type returns the type of the value.
func (c Checked) Type() Type { return TypeOf(c.text) }

// Text returns the content of a string. For any other value it returns the text itself.
func (c Checked) Text() string {
	if c.Type() != String {
		return string(c.text)
	}
	return Unquote(c.text)
}

// Reader returns a Reader of c. It checks only the depth.
func (c Checked) Reader() Reader { return Reader{raw: c.text, depthMax: DepthMax, checked: true} }

// Member is a member of an object.
type Member struct {
	Name  []byte // unescaped; part of the object's text if possible
	Value Checked
}

// AppendMembers appends the members of an object to dst, in their order. It appends nothing if c is
// not an object.
func (c Checked) AppendMembers(dst []Member) []Member {
	for name, value := range c.Members() {
		dst = append(dst, Member{name, value})
	}
	return dst
}

// Members ranges over the names, unescaped, and values of an object, in their order. It ranges over
// nothing if c is not an object.
func (c Checked) Members() iter.Seq2[[]byte, Checked] {
	return func(yield func([]byte, Checked) bool) {
		if c.Type() != Object {
			return
		}
		r := c.parts()
		for r.next() {
			name, err := r.key()
			r.separate()
			value, valueErr := r.Value()
			if err != nil || valueErr != nil || !yield(name, Checked{value}) {
				return
			}
		}
	}
}

// Elements ranges over the elements of an array, in their order. It ranges over nothing if c is not
// an array.
func (c Checked) Elements() iter.Seq[Checked] {
	return func(yield func(Checked) bool) {
		if c.Type() != Array {
			return
		}
		r := c.parts()
		for r.next() {
			element, err := r.Value()
			if err != nil || !yield(Checked{element}) {
				return
			}
		}
	}
}

// parts returns a Reader positioned before the first member or element of c. The Reader does not
// bound the depth, because Check has done so.
func (c Checked) parts() Reader {
	return Reader{raw: c.text, pos: 1, depthMax: len(c.text), checked: true}
}

// next moves to the next member or element of an object or array, whose text must be checked. It
// returns false if there is no more.
func (r *Reader) next() bool {
	if r.Space() == ',' {
		r.pos++
		r.Space()
	}
	return r.pos < len(r.raw) && r.raw[r.pos] != '}' && r.raw[r.pos] != ']'
}

// separate skips a colon.
func (r *Reader) separate() {
	if r.Space() == ':' {
		r.pos++
	}
}

// Type is the type of a JSON value.
type Type uint8

// The types. None is the type of text that does not begin like a JSON value.
const (
	None Type = iota
	Object
	Array
	String
	Number
	Boolean
	Null
)

// String returns the name of the type with an article, for messages: "an object".
func (t Type) String() string {
	return [...]string{
		None: "text that is no JSON", Object: "an object", Array: "an array", String: "a string",
		Number: "a number", Boolean: "a boolean", Null: "null",
	}[t]
}

// TypeOf returns the type of a value. It checks only how the text begins; the rest need not be
// valid.
func TypeOf(value []byte) Type {
	begins := func(literal string) bool { return bytes.HasPrefix(value, []byte(literal)) }
	if len(value) == 0 {
		return None
	}
	switch c := value[0]; {
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '"':
		return String
	case begins("true"), begins("false"):
		return Boolean
	case begins("null"):
		return Null
	case c == '-', '0' <= c && c <= '9':
		return Number
	}
	return None
}
