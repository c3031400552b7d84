package metadata

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"moorage"
)

const (
	// depthMax bounds how deeply arrays and objects may nest. Jackson, which most readers use,
	// refuses more than 1000 levels; half of that leaves room for what metadata is embedded in.
	depthMax = 500
	// documentBytesMax bounds a document: places in it are kept in 32 bits.
	documentBytesMax = 1<<31 - 1
	// keysLinearMax is the number of keys up to which a duplicate is looked for one by one.
	keysLinearMax = 32
	// keysFirst is for how many keys of open objects there is room at first. Most texts are an element or an update,
	// which have fewer.
	keysFirst = 8
)

// cursor reads one JSON text from front to back. Unless the text was checked before, it is strict
// about it (RFC 8259, and of RFC 7493 valid UTF-8, no lone surrogates, no key twice in one object at
// any depth). Each method consumes one value, with the white space before it, and fails with
// KindBadRequest.
type cursor struct {
	raw   []byte
	pos   int
	depth int
	// keys are those of the objects that are open, innermost last; keyStart is where the one that
	// was read last begins.
	keys     [][]byte
	keyStart int
	// reread tells that the text was checked before, by a cursor or by the owner of a CheckedJSON: it is sound, and no key
	// stands twice.
	reread bool
}

// reread returns a cursor on what a cursor has read before.
func reread(raw []byte) *cursor { return &cursor{raw: raw, reread: true} }

// checkJSON refuses what is not exactly one JSON value, strictly.
func checkJSON(raw []byte) error {
	c := cursor{raw: raw}
	if err := c.skip(); err != nil {
		return err
	}
	return c.end()
}

func (c *cursor) fail(what string) error {
	return moorage.Errorf(moorage.KindBadRequest, "Cannot parse JSON: %s at byte %d", what, c.pos)
}

// space moves to the next byte that is not white space and returns it, 0 at the end.
func (c *cursor) space() byte {
	for c.pos < len(c.raw) {
		switch b := c.raw[c.pos]; b {
		case ' ', '\n', '\r', '\t':
			c.pos++
		default:
			return b
		}
	}
	return 0
}

// end fails unless nothing but white space is left.
func (c *cursor) end() error {
	if c.space(); c.pos != len(c.raw) {
		return c.fail("data after the value")
	}
	return nil
}

// skip consumes any value.
func (c *cursor) skip() error {
	if c.reread {
		return c.skipAgain()
	}
	switch b := c.space(); {
	case b == '{':
		return c.object(nil)
	case b == '[':
		return c.array(nil)
	case b == '"':
		_, err := c.literal()
		return err
	case b == '-' || '0' <= b && b <= '9':
		_, err := c.number()
		return err
	case b == 't':
		return c.word("true")
	case b == 'f':
		return c.word("false")
	case b == 'n':
		return c.word("null")
	case c.pos == len(c.raw):
		return c.fail("unexpected end")
	}
	return c.fail("unexpected character")
}

// skipAgain is skip in text that was read before: it looks for the end of the value, and only its depth is checked.
func (c *cursor) skipAgain() error {
	for open := 0; ; {
		switch c.space() {
		case '"':
			if !c.skipString() {
				return c.fail("unexpected end")
			}
		case '{', '[':
			if open++; c.depth+open > depthMax {
				return c.fail("nested too deeply")
			}
			c.pos++
		case '}', ']':
			open--
			c.pos++
		case ',', ':':
			c.pos++
			continue
		case 0:
			return c.fail("unexpected end")
		default:
			for c.pos++; c.pos < len(c.raw) && !endsScalar(c.raw[c.pos]); c.pos++ {
			}
		}
		if open == 0 {
			return nil
		}
	}
}

// skipString moves behind the string that begins here; false if it has no end.
func (c *cursor) skipString() bool {
	for c.pos++; ; c.pos++ {
		switch c.pos = skipPlain(c.raw, c.pos); {
		case c.pos >= len(c.raw):
			c.pos = len(c.raw)
			return false
		case c.raw[c.pos] == '"':
			c.pos++
			return true
		case c.raw[c.pos] == '\\':
			c.pos++
		}
	}
}

// endsScalar tells whether b ends a number or word that it stands behind.
func endsScalar(b byte) bool { return b == ',' || b == '}' || b == ']' || b <= ' ' }

// value consumes any value and returns its bytes.
func (c *cursor) value() ([]byte, error) {
	c.space()
	start := c.pos
	err := c.skip()
	return c.raw[start:c.pos], err
}

// object consumes an object. member is called for each key and must consume the value; nil
// skips the values.
func (c *cursor) object(member func(key []byte) error) error {
	if c.space() != '{' {
		return c.fail("an object is expected")
	}
	if c.depth++; c.depth > depthMax {
		return c.fail("nested too deeply")
	}
	c.pos++
	if c.keys == nil && !c.reread {
		c.keys = make([][]byte, 0, keysFirst)
	}
	open := len(c.keys)
	var seen map[string]bool
	for first := true; c.space() != '}'; first = false {
		if !first {
			if err := c.separator(','); err != nil {
				return err
			}
			c.space()
		}
		c.keyStart = c.pos
		key, err := c.key()
		if err != nil {
			return err
		}
		if seen, err = c.unseen(key, open, seen); err != nil {
			return err
		}
		if err := c.separator(':'); err != nil {
			return err
		}
		if member == nil {
			err = c.skip()
		} else {
			err = member(key)
		}
		if err != nil {
			return err
		}
	}
	c.keys = c.keys[:open]
	c.pos++
	c.depth--
	return nil
}

// record consumes an object whose members required must be there. member is called for each key.
func (c *cursor) record(member func(key []byte) error, required ...string) error {
	seen := 0
	err := c.object(func(key []byte) error {
		for i, name := range required {
			if string(key) == name {
				seen |= 1 << i
			}
		}
		return member(key)
	})
	if err != nil {
		return err
	}
	for i, name := range required {
		if seen&(1<<i) == 0 {
			return moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", name)
		}
	}
	return nil
}

// unseen records key among those of its object, which begin at open, and fails if it is there.
// Objects with many keys pass their set from call to call.
func (c *cursor) unseen(key []byte, open int, seen map[string]bool) (map[string]bool, error) {
	switch earlier := c.keys[open:]; {
	case c.reread:
		return nil, nil
	case seen != nil:
		if seen[string(key)] {
			return seen, c.fail("duplicate key " + clip(strconv.Quote(string(key))))
		}
		seen[string(key)] = true
		return seen, nil
	case len(earlier) == keysLinearMax:
		seen = make(map[string]bool, 2*keysLinearMax)
		for _, k := range earlier {
			seen[string(k)] = true
		}
		return c.unseen(key, open, seen)
	default:
		for _, k := range earlier {
			if bytes.Equal(k, key) {
				return seen, c.fail("duplicate key " + clip(strconv.Quote(string(key))))
			}
		}
		c.keys = append(c.keys, key)
		return seen, nil
	}
}

// array consumes an array. element is called before each element and must consume it; nil
// skips the elements.
func (c *cursor) array(element func() error) error {
	if c.space() != '[' {
		return c.fail("an array is expected")
	}
	if c.depth++; c.depth > depthMax {
		return c.fail("nested too deeply")
	}
	c.pos++
	for first := true; c.space() != ']'; first = false {
		if !first {
			if err := c.separator(','); err != nil {
				return err
			}
		}
		var err error
		if element == nil {
			err = c.skip()
		} else {
			err = element()
		}
		if err != nil {
			return err
		}
	}
	c.pos++
	c.depth--
	return nil
}

func (c *cursor) separator(b byte) error {
	if c.space() != b {
		return c.fail("'" + string(b) + "' is expected")
	}
	c.pos++
	return nil
}

func (c *cursor) word(word string) error {
	if !bytes.HasPrefix(c.raw[c.pos:], []byte(word)) {
		return c.fail("unexpected character")
	}
	c.pos += len(word)
	return nil
}

// null consumes null and tells whether it was there; anything else is left.
func (c *cursor) null() bool {
	return c.space() == 'n' && c.word("null") == nil
}

// number consumes a number and returns its text.
func (c *cursor) number() ([]byte, error) {
	c.space()
	start := c.pos
	if c.byteIs("-") {
		c.pos++
	}
	switch {
	case c.byteIs("0"):
		c.pos++
	case !c.digits():
		return nil, c.fail("a number is expected")
	}
	if c.byteIs(".") {
		if c.pos++; !c.digits() {
			return nil, c.fail("a digit is expected")
		}
	}
	if c.byteIs("eE") {
		if c.pos++; c.byteIs("+-") {
			c.pos++
		}
		if !c.digits() {
			return nil, c.fail("a digit is expected")
		}
	}
	return c.raw[start:c.pos], nil
}

func (c *cursor) byteIs(set string) bool {
	return c.pos < len(c.raw) && strings.IndexByte(set, c.raw[c.pos]) >= 0
}

// digits consumes a run of digits and tells whether there was one.
func (c *cursor) digits() bool {
	start := c.pos
	for c.pos < len(c.raw) && '0' <= c.raw[c.pos] && c.raw[c.pos] <= '9' {
		c.pos++
	}
	return c.pos > start
}

// key consumes a string and returns its text, which is part of raw where it can be.
func (c *cursor) key() ([]byte, error) {
	literal, err := c.literal()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1], nil
	}
	return []byte(unquote(literal)), nil
}

// literal consumes a string and returns it with quotes and escapes.
func (c *cursor) literal() ([]byte, error) {
	if c.space() != '"' {
		return nil, c.fail("a string is expected")
	}
	start := c.pos
	for c.pos++; ; {
		c.pos = skipPlain(c.raw, c.pos)
		if c.pos == len(c.raw) {
			return nil, c.fail("unexpected end")
		}
		switch b := c.raw[c.pos]; {
		case b == '"':
			c.pos++
			return c.raw[start:c.pos], nil
		case b == '\\':
			if err := c.escape(); err != nil {
				return nil, err
			}
		case b < ' ':
			return nil, c.fail("control character in a string")
		default:
			r, size := utf8.DecodeRune(c.raw[c.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, c.fail("invalid UTF-8")
			}
			c.pos += size
		}
	}
}

// skipPlain returns the position of the first byte from i on that a string does not simply contain:
// a quote, a backslash, a control character or a part of a longer UTF-8 sequence. It looks at
// eight bytes at a time: most of a document is text.
func skipPlain(raw []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(raw) {
		x := binary.LittleEndian.Uint64(raw[i:])
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		// The lowest high bit that is set marks the first such byte; borrows only spoil higher ones.
		special := (x | (x - ones*' ') | (quote - ones) | (backslash - ones)) & highs
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
		i += 8
	}
	for i < len(raw) && ' ' <= raw[i] && raw[i] < utf8.RuneSelf && raw[i] != '"' && raw[i] != '\\' {
		i++
	}
	return i
}

// escape consumes an escape sequence, of a surrogate pair both.
func (c *cursor) escape() error {
	c.pos++
	if c.pos < len(c.raw) && c.raw[c.pos] != 'u' {
		if !c.byteIs(`"\/bfnrt`) {
			return c.fail("unknown escape sequence")
		}
		c.pos++
		return nil
	}
	high, ok := c.hex()
	if !ok {
		return c.fail("unknown escape sequence")
	}
	if !utf16.IsSurrogate(high) {
		return nil
	}
	if c.byteIs(`\`) {
		c.pos++
		if low, ok := c.hex(); ok && utf16.DecodeRune(high, low) != utf8.RuneError {
			return nil
		}
	}
	return c.fail("half of a surrogate pair")
}

// hex consumes u and four hexadecimal digits.
func (c *cursor) hex() (rune, bool) {
	if !c.byteIs("u") || len(c.raw)-c.pos < 5 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.raw[c.pos+1:c.pos+5]), 16, 16)
	c.pos += 5
	return rune(n), err == nil
}
