package rest

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// fields are the members of a JSON object that a request carries. Each is asked for by a method that
// knows its type; null stands for "not there", and members that are not asked for are
// ignored. The first one that cannot be read is kept as the error.
type fields struct {
	place   place // for messages
	members []jsontext.Member
	failure error

	room  [membersUsual]jsontext.Member // for members
	inner *fields                       // of the object that was read last within this one
}

// membersUsual is how many members objects of requests seldom exceed.
const membersUsual = 4

// place says what an object is and, if it is a part of another, what that one is. It is put into words only where
// something is wrong.
type place struct {
	outer  *place // nil if there is none
	what   string
	name   string // of a member; else empty
	number int    // in a list, from 1; else 0
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

// readFields reads the body of r as a JSON object.
func (s *server) readFields(w http.ResponseWriter, r *http.Request, what string) (*fields, error) {
	body, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	return parseFields(body, what)
}

func parseFields(text []byte, what string) (*fields, error) {
	f := &fields{place: place{what: what}}
	if begins := bytes.TrimSpace(text); len(begins) == 0 {
		f.fail("it is empty")
	} else if t := jsontext.TypeOf(begins); t != jsontext.Object {
		f.fail("it must be a JSON object, not %s", t)
	}
	if f.failure != nil {
		return nil, f.failure
	}
	body, err := jsontext.Check(text)
	if err != nil {
		// The cause names the place and the fault without repeating that nothing can be parsed.
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: %w", f.place, errors.Unwrap(err))
	}
	f.members = body.AppendMembers(f.room[:0])
	return f, nil
}

// within returns the fields of an object in the text of f, with a failure if value is none. They are
// good until the next call.
func (f *fields) within(value jsontext.Checked, at place) *fields {
	if f.inner == nil {
		f.inner = new(fields)
	}
	inner := f.inner
	at.outer = &f.place
	inner.place, inner.members, inner.failure = at, nil, nil
	if t := value.Type(); t != jsontext.Object {
		inner.fail("it must be a JSON object, not %s", t)
		return inner
	}
	inner.members = value.AppendMembers(inner.room[:0])
	return inner
}

func (f *fields) fail(format string, args ...any) {
	if f.failure == nil {
		args = append([]any{f.place}, args...)
		f.failure = moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: "+format, args...)
	}
}

// get returns the value of a member, zero if it is not there or null.
func (f *fields) get(name string) jsontext.Checked {
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

// has reports whether there is a member called name, which may be null.
func (f *fields) has(name string) bool {
	for _, m := range f.members {
		if string(m.Name) == name {
			return true
		}
	}
	return false
}

// require makes it a failure that the member called name is not there.
func (f *fields) require(name string) {
	if f.get(name).IsZero() {
		f.fail("member %q is missing", name)
	}
}

// typed returns a member, zero if it is not there. A value of another type is a failure.
func (f *fields) typed(name string, want jsontext.Type) jsontext.Checked {
	value := f.get(name)
	if value.IsZero() || value.Type() == want {
		return value
	}
	f.fail("member %q must be %s, not %s", name, want, value.Type())
	return jsontext.Checked{}
}

// text returns a string, empty if it is not there.
func (f *fields) text(name string) string { return f.typed(name, jsontext.String).Text() }

// boolean returns a boolean, false if it is not there.
func (f *fields) boolean(name string) bool {
	return string(f.typed(name, jsontext.Boolean).Bytes()) == "true"
}

// texts returns a list of strings, nil if it is not there.
func (f *fields) texts(name string) []string {
	value := f.typed(name, jsontext.Array)
	if value.IsZero() {
		return nil
	}
	texts := []string{}
	for element := range value.Elements() {
		if element.Type() != jsontext.String {
			f.fail("member %q must be an array of strings", name)
			return nil
		}
		texts = append(texts, element.Text())
	}
	return texts
}

// textMap returns an object whose values are strings, nil if it is not there.
func (f *fields) textMap(name string) map[string]string {
	value := f.typed(name, jsontext.Object)
	if value.IsZero() {
		return nil
	}
	texts := make(map[string]string)
	for key, text := range value.Members() {
		if text.Type() != jsontext.String {
			f.fail("member %q must be an object with strings as values", name)
			return nil
		}
		texts[string(key)] = text.Text()
	}
	return texts
}

// objects calls visit with the fields of each of the first limit objects of a list, and returns how
// many elements the list has. The fields are good until visit returns. An element among the first
// limit that is no object is a failure of f and ends the list.
func (f *fields) objects(name, what string, limit int, visit func(inner *fields)) (length int) {
	for element := range f.typed(name, jsontext.Array).Elements() {
		if length++; length > limit {
			continue
		}
		inner := f.within(element, place{what: what, number: length})
		if inner.failure != nil {
			f.keep(inner.failure)
			break
		}
		visit(inner)
	}
	return length
}

// namespace returns the namespace in the member of that name, which must be there.
func (f *fields) namespace() moorage.Namespace {
	f.require("namespace")
	ns := moorage.Namespace(f.texts("namespace"))
	if err := ns.Validate(); err != nil {
		f.refuse(err)
	}
	return ns
}

// name returns the member called name, which must be there and be one.
func (f *fields) name() string {
	f.require("name")
	name := f.text("name")
	if err := moorage.ValidateName("name", name); err != nil {
		f.refuse(err)
	}
	return name
}

// identifier returns the table or view that an object of namespace and name means.
func (f *fields) identifier(member, warehouse string) moorage.Identifier {
	f.require(member)
	value := f.typed(member, jsontext.Object)
	if value.IsZero() {
		return moorage.Identifier{}
	}
	inner := f.within(value, place{what: "member", name: member})
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: inner.namespace(), Name: inner.name()}
	f.keep(inner.failure)
	return ident
}

// mustName makes it a failure that there is a member "identifier" which is not ident, the table or view that the path names.
func (f *fields) mustName(kind string, ident moorage.Identifier) {
	if f.get("identifier").IsZero() {
		return
	}
	named := f.identifier("identifier", ident.Warehouse)
	if f.failure == nil && !named.Equal(ident) {
		f.fail("it names %s %s, but the path names %s", kind, named, ident)
	}
}

// metadataLocation returns the member of that name, which must be there and not be empty.
func (f *fields) metadataLocation() string {
	const name = "metadata-location"
	f.require(name)
	location := f.text(name)
	if f.failure == nil && location == "" {
		f.fail("member %q must not be empty", name)
	}
	return location
}

// keep makes failure, if it is one, that of f, unless there is one already.
func (f *fields) keep(failure error) {
	if f.failure == nil {
		f.failure = failure
	}
}

// refuse makes err, which says what is wrong with the value of a member, a failure. In an object within another one, it is said which
// that is; in the body itself, names are refused in the words that are used for those in a path.
func (f *fields) refuse(err error) {
	if f.place.outer == nil {
		f.keep(err)
		return
	}
	f.fail("%w", err)
}
