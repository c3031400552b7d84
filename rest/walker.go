package rest

import (
	"bytes"
	"encoding/json"
)

// walker walks through a value within a text that parseObject has checked, and looks for no faults. It is at a place in the text,
// and each method that passes over something leaves it behind that.
type walker struct {
	text []byte
	at   int
}

// next goes from the start of an object or array, or from behind a part of it, to its next part, which is to be passed over
// then: a member's name and value, or an element. Behind the last part it passes over the end and returns false.
func (w *walker) next() bool {
	w.space()
	before := w.text[w.at]
	w.at++
	if before == '}' || before == ']' {
		return false
	}
	w.space()
	if c := w.text[w.at]; c != '}' && c != ']' {
		return true
	}
	w.at++ // there are no parts
	return false
}

// members passes over an object, and appends its members to dst.
func (w *walker) members(dst []member) []member {
	for w.next() {
		name := w.name()
		dst = append(dst, member{name, w.value()})
	}
	return dst
}

// name passes over a member's name and what stands between it and the value. It returns it unescaped.
func (w *walker) name() []byte {
	start := w.at
	w.string()
	name := unquote(w.text[start:w.at])
	w.space()
	w.at++ // :
	w.space()
	return name
}

// value passes over a value and returns its text.
func (w *walker) value() []byte {
	start := w.at
	switch w.text[w.at] {
	case '"':
		w.string()
	case '{', '[':
		w.nested()
	default: // a number or literal
		for w.at++; w.at < len(w.text) && !endsValue(w.text[w.at]); w.at++ {
		}
	}
	return w.text[start:w.at]
}

// endsValue tells whether c ends a number or literal that it stands behind.
func endsValue(c byte) bool { return c == ',' || c == '}' || c == ']' || c <= ' ' }

// nested passes over an object or array.
func (w *walker) nested() {
	for depth := 0; ; {
		switch w.text[w.at] {
		case '"':
			w.string()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		w.at++
		if depth == 0 {
			return
		}
	}
}

// string passes over a string.
func (w *walker) string() {
	for w.at++; ; {
		quote := bytes.IndexByte(w.text[w.at:], '"')
		if quote < 0 { // cannot be; or this would never end
			panic("rest: a string without an end in a text that was checked")
		}
		w.at += quote + 1
		escapes := 0
		for w.text[w.at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return
		}
	}
}

func (w *walker) space() { w.at = spaceEnd(w.text, w.at) }

// unquote returns the content of a string that was checked: a part of it, unless it has escapes.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var content string
	if err := json.Unmarshal(quoted, &content); err != nil {
		return quoted // cannot be; the name then stands for itself
	}
	return []byte(content)
}
