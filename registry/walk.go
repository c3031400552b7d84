package registry

import "bytes"

// walk goes through one object or list of valid JSON. It takes no memory.
type walk struct {
	text  []byte
	at    int // behind what was read last
	start int // of the last member or element
	// name is that of the last member, as it stands between its quotes; value that of the last
	// member or element.
	name, value []byte
}

// walkInto returns a walk that stands before the value in text.
func walkInto(text []byte) walk {
	w := walk{text: text}
	w.space()
	return w
}

// kind returns the first byte of the value that the walk stands before, and steps into it.
func (w *walk) kind() byte {
	kind := w.text[w.at]
	w.at++
	return kind
}

// member reads the next member of an object, and reports whether there was one.
func (w *walk) member() bool {
	if !w.next('}') {
		return false
	}
	w.quoted()
	w.name = w.text[w.start+1 : w.at-1]
	w.space()
	w.at++ // the colon
	w.space()
	w.read()
	return true
}

// element reads the next element of a list, and reports whether there was one.
func (w *walk) element() bool {
	if !w.next(']') {
		return false
	}
	w.read()
	return true
}

// whole returns the last member with its name, or the last element.
func (w *walk) whole() []byte { return w.text[w.start:w.at] }

// next steps to the next member or element, and reports whether the end came first.
func (w *walk) next(end byte) bool {
	w.space()
	if w.text[w.at] == ',' {
		w.at++
		w.space()
	}
	w.start = w.at
	return w.text[w.at] != end
}

func (w *walk) space() {
	for w.at < len(w.text) {
		switch w.text[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}

// read steps behind the value that begins here.
func (w *walk) read() {
	from := w.at
	switch w.text[w.at] {
	case '"':
		w.quoted()
	case '{', '[':
		w.nested()
	default:
		for w.at < len(w.text) && !endsLiteral(w.text[w.at]) {
			w.at++
		}
	}
	w.value = w.text[from:w.at]
}

// endsLiteral reports whether c stands behind a number or a literal.
func endsLiteral(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// nested steps behind the object or list that begins here.
func (w *walk) nested() {
	for depth := 0; ; {
		switch w.text[w.at] {
		case '"':
			w.quoted()
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

// quoted steps behind the string that begins here.
func (w *walk) quoted() {
	for w.at++; ; {
		w.at += bytes.IndexByte(w.text[w.at:], '"') + 1
		escapes := 0
		for w.text[w.at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return
		}
	}
}
