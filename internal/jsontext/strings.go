package jsontext

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Literal consumes a string and returns it with quotes and escapes.
func (r *Reader) Literal() ([]byte, error) {
	if r.Space() != '"' {
		return nil, r.Fail("a string is expected")
	}
	start := r.pos
	for r.pos++; ; {
		r.pos = skipPlain(r.raw, r.pos)
		if r.pos == len(r.raw) {
			return nil, r.Fail("unexpected end")
		}
		switch b := r.raw[r.pos]; {
		case b == '"':
			r.pos++
			return r.raw[start:r.pos], nil
		case b == '\\':
			if err := r.escape(); err != nil {
				return nil, err
			}
		case b < ' ':
			return nil, r.Fail("control character in a string")
		default:
			c, size := utf8.DecodeRune(r.raw[r.pos:])
			if c == utf8.RuneError && size == 1 {
				return nil, r.Fail("invalid UTF-8")
			}
			r.pos += size
		}
	}
}

// key consumes a string and returns its text, which is part of raw if possible.
func (r *Reader) key() ([]byte, error) {
	literal, err := r.Literal()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1], nil
	}
	return []byte(Unquote(literal)), nil
}

// skipPlain returns the position of the first special byte of a string from i on: a quote, a
// backslash, a control character or a part of a longer UTF-8 sequence. It checks eight bytes at a
// time, because most of a document is text.
func skipPlain(raw []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(raw) {
		x := binary.LittleEndian.Uint64(raw[i:])
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		// The lowest bit that is set in special marks the first special byte. Borrows of the
		// subtractions corrupt only the bits above it.
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

// escape consumes an escape sequence. It consumes both halves of a surrogate pair.
func (r *Reader) escape() error {
	r.pos++
	if r.pos < len(r.raw) && r.raw[r.pos] != 'u' {
		if !r.byteIs(`"\/bfnrt`) {
			return r.Fail("unknown escape sequence")
		}
		r.pos++
		return nil
	}
	high, ok := r.hex()
	if !ok {
		return r.Fail("unknown escape sequence")
	}
	if !utf16.IsSurrogate(high) {
		return nil
	}
	if r.byteIs(`\`) {
		r.pos++
		if low, ok := r.hex(); ok && utf16.DecodeRune(high, low) != utf8.RuneError {
			return nil
		}
	}
	return r.Fail("lone surrogate in a string")
}

// hex consumes u and four hexadecimal digits.
func (r *Reader) hex() (rune, bool) {
	if !r.byteIs("u") || len(r.raw)-r.pos < 5 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.raw[r.pos+1:r.pos+5]), 16, 16)
	r.pos += 5
	return rune(n), err == nil
}

// Unquote returns the content of a string that a Reader has read.
func Unquote(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	if err := json.Unmarshal(literal, &text); err != nil {
		return string(literal) // unreachable: a Reader has checked it
	}
	return text
}

// Quote returns text, which must be UTF-8, as a JSON string with as few escapes as possible.
func Quote(text string) string { return string(AppendQuoted(nil, text)) }

// AppendQuoted appends text, which must be UTF-8, as a JSON string with as few escapes as possible.
func AppendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := len(dst)
	if dst = append(dst, text...); skipPlain(dst, start) == len(dst) {
		return append(dst, '"') // the common case
	}
	dst = dst[:start]
	copied := 0
	for i := range len(text) {
		b := text[i]
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(append(dst, text[copied:i]...), '\\')
		if copied = i + 1; b < ' ' {
			dst = append(dst, 'u', '0', '0', hex[b>>4], hex[b&15])
		} else {
			dst = append(dst, b)
		}
	}
	return append(append(dst, text[copied:]...), '"')
}
