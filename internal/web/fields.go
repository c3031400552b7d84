package web

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// Fields are the members of a JSON object in a request. Each method reads members of one type. A
// null member counts as missing. Members that the handler does not read are ignored.
type Fields struct {
	Failure error // the first member that could not be read; nil if there is none
	place   place // for messages
	members []jsontext.Member

	room  [membersUsual]jsontext.Member // for members
	inner *Fields                       // the inner object that was read last; its memory is reused
}

// membersUsual is a number of members that is enough for most objects in requests.
const membersUsual = 4

// place describes the position of an object in a request: its name, and any outer object. It is
// converted to text only for an error.
type place struct {
	outer  *place // nil if there is none
	what   string
	name   string // the name of the member; empty if it is not a member
	number int    // the position in a list, from 1; 0 if it is not in a list
}

// String returns the place in words, the outermost object first.
func (p place) String() string {
	text := p.what
	if p.name != "" {
		text += " " + strconv.Quote(p.name)
	}
	if p.number > 0 {
		text += " " + strconv.Itoa(p.number)
	}
	if p.outer != nil {
		text = p.outer.String() + ", " + text
	}
	return text
}

// ReadFields reads the body of r as a JSON object. In messages, what names the object.
func (s *Server) ReadFields(w http.ResponseWriter, r *http.Request, what string) (*Fields, error) {
	body, err := s.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	return ParseFields(body, what)
}

// ParseFields reads text as a JSON object. In messages, what names the object.
func ParseFields(text []byte, what string) (*Fields, error) {
	f := &Fields{place: place{what: what}}
	if begins := bytes.TrimSpace(text); len(begins) == 0 {
		f.Fail("it is empty")
	} else if t := jsontext.TypeOf(begins); t != jsontext.Object {
		f.Fail("it must be a JSON object, not %s", t)
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	body, err := jsontext.Check(text)
	if err != nil {
		// Of the parser's error, the message keeps the place and the fault. It leaves out the words
		// that the text cannot be parsed.
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: %w", f.place, errors.Unwrap(err))
	}
	f.members = body.AppendMembers(f.room[:0])
	return f, nil
}

// Within returns the fields of value, an object in the text of f. The fields have a failure if
// value is not an object. In messages, what and name name the value. The fields are valid until the
// next call.
func (f *Fields) Within(value jsontext.Checked, what, name string) *Fields {
	return f.within(value, place{what: what, name: name})
}

func (f *Fields) within(value jsontext.Checked, at place) *Fields {
	if f.inner == nil {
		f.inner = new(Fields)
	}
	inner := f.inner
	at.outer = &f.place
	inner.place, inner.members, inner.Failure = at, nil, nil
	if t := value.Type(); t != jsontext.Object {
		inner.Fail("it must be a JSON object, not %s", t)
		return inner
	}
	inner.members = value.AppendMembers(inner.room[:0])
	return inner
}

// Fail sets the failure from a format, unless there is one already.
func (f *Fields) Fail(format string, args ...any) {
	if f.Failure == nil {
		args = append([]any{f.place}, args...)
		f.Failure = moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: "+format, args...)
	}
}

// Get returns the value of the member called name. It returns the zero Checked if the member is
// missing or null.
func (f *Fields) Get(name string) jsontext.Checked {
	for _, m := range f.members {
		if string(m.Name) == name {
			if m.Value.IsNull() {
				return jsontext.Checked{}
			}
			return m.Value
		}
	}
	return jsontext.Checked{}
}

// Has reports whether there is a member called name. The member may be null.
func (f *Fields) Has(name string) bool {
	for _, m := range f.members {
		if string(m.Name) == name {
			return true
		}
	}
	return false
}

// Require sets a failure if the member called name is missing.
func (f *Fields) Require(name string) {
	if f.Get(name).IsZero() {
		f.Fail("member %q is missing", name)
	}
}

// Typed returns the value of the member called name, or the zero Checked if the member is missing.
// It sets a failure if the value's type is not want.
func (f *Fields) Typed(name string, want jsontext.Type) jsontext.Checked {
	value := f.Get(name)
	if value.IsZero() || value.Type() == want {
		return value
	}
	f.Fail("member %q must be %s, not %s", name, want, value.Type())
	return jsontext.Checked{}
}

// Text returns a string, or "" if the member is missing.
func (f *Fields) Text(name string) string { return f.Typed(name, jsontext.String).Text() }

// Boolean returns a boolean, or false if the member is missing.
func (f *Fields) Boolean(name string) bool {
	return string(f.Typed(name, jsontext.Boolean).Bytes()) == "true"
}

// Integer returns a whole number, or 0 if the member is missing.
func (f *Fields) Integer(name string) int64 {
	value := f.Typed(name, jsontext.Number)
	if value.IsZero() {
		return 0
	}
	number, err := strconv.ParseInt(string(value.Bytes()), 10, 64)
	if err != nil {
		f.Fail("member %q must be a whole number, not %s", name, jsontext.Clip(string(value.Bytes())))
	}
	return number
}

// Texts returns a list of strings, or nil if the member is missing.
func (f *Fields) Texts(name string) []string {
	value := f.Typed(name, jsontext.Array)
	if value.IsZero() {
		return nil
	}
	texts := []string{}
	for element := range value.Elements() {
		if element.Type() != jsontext.String {
			f.Fail("member %q must be an array of strings", name)
			return nil
		}
		texts = append(texts, element.Text())
	}
	return texts
}

// TextMap returns an object whose values are strings, or nil if the member is missing.
func (f *Fields) TextMap(name string) map[string]string {
	value := f.Typed(name, jsontext.Object)
	if value.IsZero() {
		return nil
	}
	texts := make(map[string]string)
	for key, text := range value.Members() {
		if text.Type() != jsontext.String {
			f.Fail("member %q must be an object with strings as values", name)
			return nil
		}
		texts[string(key)] = text.Text()
	}
	return texts
}

// Objects calls visit with the fields of each of the first limit objects of a list, and returns how
// many elements the list has. The fields are valid until visit returns. If one of the first limit
// elements is not an object, Objects sets a failure in f and stops.
func (f *Fields) Objects(name, what string, limit int, visit func(inner *Fields)) (length int) {
	for element := range f.Typed(name, jsontext.Array).Elements() {
		if length++; length > limit {
			continue
		}
		inner := f.within(element, place{what: what, number: length})
		if inner.Failure != nil {
			f.Keep(inner.Failure)
			break
		}
		visit(inner)
	}
	return length
}

// Keep sets the failure of f to failure, unless f has a failure already.
func (f *Fields) Keep(failure error) {
	if f.Failure == nil {
		f.Failure = failure
	}
}

// Refuse sets the failure to err, which describes a fault in a member's value. If f is an inner
// object, the failure also names the object. If f is the body itself, the text of err stays
// unchanged, so that it equals the text for the same fault in a path.
func (f *Fields) Refuse(err error) {
	if f.place.outer == nil {
		f.Keep(err)
		return
	}
	f.Fail("%w", err)
}
