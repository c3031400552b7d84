package jsontext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"moorage"
)

const (
	// DepthMax is the maximum depth of arrays and objects in a Reader's text. Jackson, which most
	// clients use, refuses more than 1,000 levels. Half of that leaves room for the levels of a
	// response around embedded metadata.
	DepthMax = 500
	// keysLinearMax is the number of keys up to which a linear search finds duplicates. For more
	// keys, a set is used.
	keysLinearMax = 32
	// keysFirst is the initial capacity for the keys of open objects. Most texts are one element of
	// a document or one update, and have no more keys.
	keysFirst = 8
)

// Reader reads one JSON text from front to back. Each method consumes one value, with the white
// space before it. A method fails with a moorage.Error of KindBadRequest whose cause is a
// *SyntaxError. A Reader is not safe for concurrent use.
type Reader struct {
	raw   []byte
	pos   int
	depth int
	// keys are the keys of the objects that are being read, the innermost object last. keyStart is
	// the position of the last key that was read.
	keys     [][]byte
	keyStart int
	depthMax int
	keysMax  int // limit of keysOpen; 0 means no limit
	keysOpen int // number of keys of the objects that are being read, if keysMax is set
	// checked is true if the text is valid and has no key twice in an object.
	checked bool
}

// NewReader returns a Reader that makes all checks of raw; see the package comment.
func NewReader(raw []byte) Reader { return Reader{raw: raw, depthMax: DepthMax} }

// Reread returns a Reader of raw, a value in a text that a Reader has read before. It checks only
// the depth.
func Reread(raw []byte) Reader { return Reader{raw: raw, depthMax: DepthMax, checked: true} }

// Pos returns the position of the next byte.
func (r *Reader) Pos() int { return r.pos }

// KeyPos returns the position of the opening quote of the last key that was read.
func (r *Reader) KeyPos() int { return r.keyStart }

// From returns the text from position start up to the present position.
func (r *Reader) From(start int) []byte { return r.raw[start:r.pos] }

// Raw returns the whole text.
func (r *Reader) Raw() []byte { return r.raw }

// SyntaxError is a fault in a text, and the position of the fault.
type SyntaxError struct {
	Reason string
	At     int // position in bytes, from 0
}

// Error returns the position and the reason.
func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.At, e.Reason) }

// Fail returns an error for a fault at the next byte.
func (r *Reader) Fail(reason string) error {
	fault := &SyntaxError{Reason: reason, At: r.pos}
	return &moorage.Error{
		Kind: moorage.KindBadRequest, Err: fault,
		Message: fmt.Sprintf("Cannot parse JSON: %s at byte %d", reason, fault.At),
	}
}

// Space moves to the next byte that is not white space, and returns that byte, or 0 at the end of
// the text.
func (r *Reader) Space() byte {
	for r.pos < len(r.raw) {
		switch b := r.raw[r.pos]; b {
		case ' ', '\n', '\r', '\t':
			r.pos++
		default:
			return b
		}
	}
	return 0
}

// End fails if anything except white space is left.
func (r *Reader) End() error {
	if r.Space(); r.pos != len(r.raw) {
		return r.Fail("data after the value")
	}
	return nil
}

// Skip consumes any value.
func (r *Reader) Skip() error {
	if r.checked {
		return r.skipAgain()
	}
	switch b := r.Space(); {
	case b == '{':
		return r.Object(nil)
	case b == '[':
		return r.Array(nil)
	case b == '"':
		_, err := r.Literal()
		return err
	case b == '-' || '0' <= b && b <= '9':
		_, err := r.number()
		return err
	case b == 't':
		return r.word("true")
	case b == 'f':
		return r.word("false")
	case b == 'n':
		return r.word("null")
	case r.pos == len(r.raw):
		return r.Fail("unexpected end")
	}
	return r.Fail("unexpected character")
}

// skipAgain is Skip for checked text. It finds the end of the value and checks only the depth.
func (r *Reader) skipAgain() error {
	for open := 0; ; {
		switch r.Space() {
		case '"':
			if !r.skipString() {
				return r.Fail("unexpected end")
			}
		case '{', '[':
			if open++; r.depth+open > r.depthMax {
				return r.Fail("nested too deeply")
			}
			r.pos++
		case '}', ']':
			open--
			r.pos++
		case ',', ':':
			r.pos++
			continue
		case 0:
			return r.Fail("unexpected end")
		default:
			for r.pos++; r.pos < len(r.raw) && !endsScalar(r.raw[r.pos]); r.pos++ {
			}
		}
		if open == 0 {
			return nil
		}
	}
}

// skipString moves past the string that begins at the present position. It returns false if the
// string has no end.
func (r *Reader) skipString() bool {
	for r.pos++; ; r.pos++ {
		switch r.pos = skipPlain(r.raw, r.pos); {
		case r.pos >= len(r.raw):
			r.pos = len(r.raw)
			return false
		case r.raw[r.pos] == '"':
			r.pos++
			return true
		case r.raw[r.pos] == '\\':
			r.pos++
		}
	}
}

// endsScalar reports whether b ends a number or word before it.
func endsScalar(b byte) bool { return b == ',' || b == '}' || b == ']' || b <= ' ' }

// Value consumes any value and returns its bytes.
func (r *Reader) Value() ([]byte, error) {
	r.Space()
	start := r.pos
	err := r.Skip()
	return r.raw[start:r.pos], err
}

// Object consumes an object. It calls member for each key, and member must consume the value. If
// member is nil, Object skips the values.
func (r *Reader) Object(member func(key []byte) error) error {
	if r.Space() != '{' {
		return r.Fail("an object is expected")
	}
	if r.depth++; r.depth > r.depthMax {
		return r.Fail("nested too deeply")
	}
	r.pos++
	if r.keys == nil && !r.checked {
		r.keys = make([][]byte, 0, keysFirst)
	}
	open := len(r.keys)
	var seen map[string]bool
	for count := 0; r.Space() != '}'; {
		if count > 0 {
			if err := r.separator(','); err != nil {
				return err
			}
			r.Space()
		}
		r.keyStart = r.pos
		key, err := r.key()
		if err != nil {
			return err
		}
		if seen, err = r.unseen(key, open, seen); err != nil {
			return err
		}
		if count++; r.keysMax > 0 && r.keysOpen+count > r.keysMax {
			return r.Fail(fmt.Sprintf("more than %d keys in an object and those around it", r.keysMax))
		}
		if err := r.separator(':'); err != nil {
			return err
		}
		r.keysOpen += count
		if member == nil {
			err = r.Skip()
		} else {
			err = member(key)
		}
		r.keysOpen -= count
		if err != nil {
			return err
		}
	}
	r.keys = r.keys[:open]
	r.pos++
	r.depth--
	return nil
}

// unseen adds key to the keys of its object, which begin at open, and fails on a duplicate. If the
// object has many keys, seen is the set of its keys. Each call returns the set for the next call.
func (r *Reader) unseen(key []byte, open int, seen map[string]bool) (map[string]bool, error) {
	switch earlier := r.keys[open:]; {
	case r.checked:
		return nil, nil
	case seen != nil:
		if seen[string(key)] {
			return seen, r.Fail("duplicate key " + Clip(strconv.Quote(string(key))))
		}
		seen[string(key)] = true
		return seen, nil
	case len(earlier) == keysLinearMax:
		seen = make(map[string]bool, 2*keysLinearMax)
		for _, k := range earlier {
			seen[string(k)] = true
		}
		return r.unseen(key, open, seen)
	default:
		for _, k := range earlier {
			if bytes.Equal(k, key) {
				return seen, r.Fail("duplicate key " + Clip(strconv.Quote(string(key))))
			}
		}
		r.keys = append(r.keys, key)
		return seen, nil
	}
}

// Array consumes an array. It calls element before each element, and element must consume it. If
// element is nil, Array skips the elements.
func (r *Reader) Array(element func() error) error {
	if r.Space() != '[' {
		return r.Fail("an array is expected")
	}
	if r.depth++; r.depth > r.depthMax {
		return r.Fail("nested too deeply")
	}
	r.pos++
	for first := true; r.Space() != ']'; first = false {
		if !first {
			if err := r.separator(','); err != nil {
				return err
			}
		}
		var err error
		if element == nil {
			err = r.Skip()
		} else {
			err = element()
		}
		if err != nil {
			return err
		}
	}
	r.pos++
	r.depth--
	return nil
}

func (r *Reader) separator(b byte) error {
	if r.Space() != b {
		return r.Fail("'" + string(b) + "' is expected")
	}
	r.pos++
	return nil
}

func (r *Reader) word(word string) error {
	if !bytes.HasPrefix(r.raw[r.pos:], []byte(word)) {
		return r.Fail("unexpected character")
	}
	r.pos += len(word)
	return nil
}

// Null consumes the next value if it is null, and reports whether it was null. It does not consume
// any other value.
func (r *Reader) Null() bool {
	return r.Space() == 'n' && r.word("null") == nil
}

// number consumes a number and returns its text.
func (r *Reader) number() ([]byte, error) {
	r.Space()
	start := r.pos
	if r.byteIs("-") {
		r.pos++
	}
	switch {
	case r.byteIs("0"):
		r.pos++
	case !r.digits():
		return nil, r.Fail("a number is expected")
	}
	if r.byteIs(".") {
		if r.pos++; !r.digits() {
			return nil, r.Fail("a digit is expected")
		}
	}
	if r.byteIs("eE") {
		if r.pos++; r.byteIs("+-") {
			r.pos++
		}
		if !r.digits() {
			return nil, r.Fail("a digit is expected")
		}
	}
	return r.raw[start:r.pos], nil
}

func (r *Reader) byteIs(set string) bool {
	return r.pos < len(r.raw) && strings.IndexByte(set, r.raw[r.pos]) >= 0
}

// digits consumes a run of digits, and reports whether there was at least one digit.
func (r *Reader) digits() bool {
	start := r.pos
	for r.pos < len(r.raw) && '0' <= r.raw[r.pos] && r.raw[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}

// ClipBytes is the maximum number of bytes of a request that an error quotes.
const ClipBytes = 200

// Clip shortens text for an error message.
func Clip(text string) string {
	if len(text) <= ClipBytes {
		return text
	}
	cut := ClipBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
