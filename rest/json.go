package rest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// jsonDepthMax bounds how deep a body nests. A level of a nested struct type takes three, so
// this is far beyond any schema, and small for a stack.
const jsonDepthMax = 512

// jsonNamesMax bounds the names that are remembered at a time, which take many times the memory of their text: those
// of an object, and of the objects around it. No table has as many properties.
const jsonNamesMax = 100_000

// namesLinearMax is how many names of an object are compared one by one before a map is
// made of them.
const namesLinearMax = 16

// member is a member of a JSON object; value is its text, within the text of the object, and name too unless it has escapes.
type member struct {
	name, value []byte
}

// parseObject checks that text is one JSON object and nothing else, and appends its members to dst,
// in their order. It is stricter than package encoding/json, because members of the body are
// kept as they are and given to readers who may differ in how they read them: a name may not
// stand twice in an object, text must be UTF-8 without lone surrogates, and depth and the number of members are bounded.
// It makes no copy of values.
func parseObject(dst []member, text []byte) ([]member, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	s := scanner{text: text}
	s.space()
	if s.at == len(text) {
		return nil, fmt.Errorf("it is empty")
	}
	if s.text[s.at] != '{' {
		return nil, fmt.Errorf("it must be a JSON object, not %s", jsonType(text[s.at:]))
	}
	if err := s.object(1, func(name, value []byte) { dst = append(dst, member{name, value}) }); err != nil {
		return nil, err
	}
	s.space()
	if s.at != len(text) {
		return nil, s.errorf("unexpected text after the JSON object")
	}
	return dst, nil
}

// jsonType names the type of a value by how its text begins, which need not be JSON.
func jsonType(value []byte) string {
	begins := func(literal string) bool { return bytes.HasPrefix(value, []byte(literal)) }
	switch c := value[0]; {
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case begins("true"), begins("false"):
		return "a boolean"
	case begins("null"):
		return "null"
	case c == '-', '0' <= c && c <= '9':
		return "a number"
	}
	return "text that is no JSON"
}

// scanner walks through JSON text and looks for faults.
type scanner struct {
	text  []byte
	at    int
	names int // those of the objects that have begun and not ended
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

// peek returns the next byte, 0 at the end of the text.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() { s.at = spaceEnd(s.text, s.at) }

// spaceEnd returns the first place from at on where there is no white space, the length of text if there is none.
func spaceEnd(text []byte, at int) int {
	for at < len(text) {
		switch text[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// value passes over one value that stands at depth.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth, nil)
	case c == '[':
		return s.array(depth)
	case c == '"':
		_, err := s.string()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	for _, literal := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(literal)) {
			s.at += len(literal)
			return nil
		}
	}
	if s.at == len(s.text) {
		return s.errorf("unexpected end of the JSON text")
	}
	return s.errorf("unexpected character %q", s.peek())
}

// object passes over an object and calls visit, if not nil, for each member.
func (s *scanner) object(depth int, visit func(name, value []byte)) error {
	if depth > jsonDepthMax {
		return s.errorf("nested deeper than %d levels", jsonDepthMax)
	}
	s.at++ // {
	var names names
	for {
		s.space()
		if s.peek() == '}' && names.count == 0 {
			break
		}
		if s.peek() != '"' {
			return s.errorf("expected a member's name")
		}
		name, err := s.string()
		if err != nil {
			return err
		}
		if names.add(name) {
			return s.errorf("member %q stands twice in an object", name)
		}
		if s.names++; s.names > jsonNamesMax {
			return s.errorf("more than %d members in an object and those around it", jsonNamesMax)
		}
		s.space()
		if s.peek() != ':' {
			return s.errorf("expected a colon after %q", name)
		}
		s.at++
		s.space()
		start := s.at
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if visit != nil {
			visit(name, s.text[start:s.at])
		}
		s.space()
		if s.peek() != ',' {
			break
		}
		s.at++
	}
	if s.peek() != '}' {
		return s.errorf("expected a comma or the end of an object")
	}
	s.at++
	s.names -= names.count
	return nil
}

// array passes over an array.
func (s *scanner) array(depth int) error {
	if depth > jsonDepthMax {
		return s.errorf("nested deeper than %d levels", jsonDepthMax)
	}
	s.at++ // [
	s.space()
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		s.space()
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.peek() != ',' {
			break
		}
		s.at++
	}
	if s.peek() != ']' {
		return s.errorf("expected a comma or the end of an array")
	}
	s.at++
	return nil
}

// string passes over a string and returns its content, unescaped.
func (s *scanner) string() ([]byte, error) {
	start := s.at
	s.at++ // "
	escaped := false
	for {
		s.plain()
		switch c := s.peek(); {
		case s.at == len(s.text):
			return nil, s.errorf("unexpected end of a string")
		case c == '"':
			s.at++
			if !escaped {
				return s.text[start+1 : s.at-1], nil
			}
			return unquote(s.text[start:s.at]), nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, s.errorf("control character in a string")
		}
	}
}

// plain passes over what a string simply contains, up to a quote, backslash or control character. It looks at eight bytes
// at a time: most of a body is text.
func (s *scanner) plain() {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; s.at+8 <= len(s.text); s.at += 8 {
		x := binary.LittleEndian.Uint64(s.text[s.at:])
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		// The lowest bit that is set marks the first such byte; borrows only spoil higher ones.
		if special := ((x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; special != 0 {
			s.at += bits.TrailingZeros64(special) / 8
			return
		}
	}
	for c := s.peek(); ' ' <= c && c != '"' && c != '\\'; c = s.peek() {
		s.at++
	}
}

// escape passes over an escape sequence, a pair of surrogates as one.
func (s *scanner) escape() error {
	s.at++ // \
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return nil
	case 'u':
	default:
		return s.errorf("unknown escape sequence")
	}
	first, err := s.hex()
	if err != nil {
		return err
	}
	switch {
	case first < 0xD800 || first > 0xDFFF:
		return nil
	case first > 0xDBFF || s.peek() != '\\':
		return s.errorf("lone surrogate in a string")
	}
	s.at++
	if s.peek() != 'u' {
		return s.errorf("lone surrogate in a string")
	}
	second, err := s.hex()
	if err == nil && (second < 0xDC00 || second > 0xDFFF) {
		err = s.errorf("lone surrogate in a string")
	}
	return err
}

// hex passes over u and four hexadecimal digits.
func (s *scanner) hex() (code int, err error) {
	s.at++ // u
	for range 4 {
		c := s.peek()
		switch {
		case '0' <= c && c <= '9':
			code = code<<4 + int(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			code = code<<4 + int(c|0x20-'a') + 10
		default:
			return 0, s.errorf("expected four hexadecimal digits")
		}
		s.at++
	}
	return code, nil
}

// number passes over a number.
func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.at++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if s.peek()|0x20 == 'e' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) digits() error {
	start := s.at
	for '0' <= s.peek() && s.peek() <= '9' {
		s.at++
	}
	if s.at == start {
		return s.errorf("expected a digit")
	}
	return nil
}

// names are those of one object.
type names struct {
	count int
	first [namesLinearMax][]byte
	more  map[string]struct{}
}

// add tells whether name was there before, and adds it.
func (n *names) add(name []byte) (twice bool) {
	for _, other := range n.first[:min(n.count, namesLinearMax)] {
		if bytes.Equal(other, name) {
			return true
		}
	}
	if n.count < namesLinearMax {
		n.first[n.count] = name
		n.count++
		return false
	}
	if n.more == nil {
		n.more = make(map[string]struct{})
	}
	if _, twice = n.more[string(name)]; !twice {
		n.more[string(name)] = struct{}{}
		n.count++
	}
	return twice
}
