package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"moorage"
)

// bodyBytesFirst is how much memory is taken for a body before any of it has arrived, and without asking whether there
// is room: nearly all bodies are shorter.
const bodyBytesFirst = 1 << 20

// roomWait is how long a large body waits for room that others have taken: less than clients do for an answer.
const roomWait = 5 * time.Second

// readBody returns the whole body of r. One that is longer than allowed is KindTooLarge, a large one for which there
// is no room KindTooManyRequests.
func (s *server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Content-Encoding %q is not supported for requests", encoding)
	}
	if r.ContentLength > s.config.BodyBytesMax {
		return nil, s.tooLarge(w)
	}
	if r.ContentLength > bodyBytesFirst {
		if err := s.takeRoom(w, r, r.ContentLength); err != nil {
			return nil, err
		}
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), bodyBytesFirst)) + bytes.MinRead)
	n, err := io.Copy(&body, io.LimitReader(r.Body, min(s.config.BodyBytesMax, bodyBytesFirst)+1))
	if err == nil && n > bodyBytesFirst {
		if r.ContentLength < 0 { // nobody knows how much will come
			if err := s.takeRoom(w, r, s.config.BodyBytesMax); err != nil {
				return nil, err
			}
		}
		var more int64
		more, err = io.Copy(&body, io.LimitReader(r.Body, s.config.BodyBytesMax+1-n))
		n += more
	}
	switch {
	case err != nil:
		return nil, moorage.Errorf(moorage.KindBadRequest, "The request body ended early")
	case n > s.config.BodyBytesMax:
		return nil, s.tooLarge(w)
	}
	return body.Bytes(), nil
}

// takeRoom waits until there is room for so many bytes of a body, and takes it until the request is answered.
func (s *server) takeRoom(w http.ResponseWriter, r *http.Request, bytes int64) error {
	ctx, cancel := context.WithTimeout(r.Context(), roomWait)
	defer cancel()
	if s.bodies.Acquire(ctx, bytes) != nil {
		if err := r.Context().Err(); err != nil {
			return err
		}
		s.hangUp(w)
		return moorage.Errorf(moorage.KindTooManyRequests, "Too many large requests are being answered; nothing was changed")
	}
	w.(*exchange).room = bytes
	return nil
}

// hangUp lets the answer end the connection, and go out before the rest of the body has come in: net/http
// would wait for a part of it.
func (s *server) hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).EnableFullDuplex() // without it the client waits longer, no more
}

func (s *server) tooLarge(w http.ResponseWriter) error {
	s.hangUp(w)
	return moorage.Errorf(moorage.KindTooLarge, "The request body is longer than %d bytes", s.config.BodyBytesMax)
}

// fields are the members of a JSON object that a request carries. Each is asked for by a method that
// knows its type; null stands for "not there", and members that are not asked for are
// ignored. The first one that cannot be read is kept as the error.
type fields struct {
	place   place // for messages
	members []member
	failure error

	room  [membersUsual]member // for members
	inner *fields              // of the object that was read last within this one
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

func parseFields(text []byte, what string) (_ *fields, err error) {
	f := &fields{place: place{what: what}}
	if f.members, err = parseObject(f.room[:0], text); err != nil {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: %w", f.place, err)
	}
	return f, nil
}

// within returns the fields of an object in the text of f, which w passes over; with a failure if it is none. They
// are good until the next call.
func (f *fields) within(w *walker, at place) *fields {
	if f.inner == nil {
		f.inner = new(fields)
	}
	inner := f.inner
	at.outer = &f.place
	inner.place, inner.members, inner.failure = at, inner.room[:0], nil
	if first := w.text[w.at:]; first[0] != '{' {
		inner.fail("it must be a JSON object, not %s", jsonType(first))
		return inner
	}
	inner.members = w.members(inner.members)
	return inner
}

func (f *fields) fail(format string, args ...any) {
	if f.failure == nil {
		args = append([]any{f.place}, args...)
		f.failure = moorage.Errorf(moorage.KindBadRequest, "Cannot parse %s: "+format, args...)
	}
}

// get returns the text of a member, nil if it is not there or null.
func (f *fields) get(name string) []byte {
	for _, m := range f.members {
		if string(m.name) == name {
			if string(m.value) == "null" {
				return nil
			}
			return m.value
		}
	}
	return nil
}

// has tells whether there is a member called name, be it null.
func (f *fields) has(name string) bool {
	for _, m := range f.members {
		if string(m.name) == name {
			return true
		}
	}
	return false
}

// require makes it a failure that the member called name is not there.
func (f *fields) require(name string) {
	if f.get(name) == nil {
		f.fail("member %q is missing", name)
	}
}

// raw returns the text of a member whose type begins with open: '{' or '['.
func (f *fields) raw(name string, open byte) []byte {
	value := f.get(name)
	if value == nil || value[0] == open {
		return value
	}
	f.fail("member %q must be %s, not %s", name, jsonType([]byte{open}), jsonType(value))
	return nil
}

func (f *fields) text(name string) string {
	value := f.get(name)
	switch {
	case value == nil:
		return ""
	case value[0] != '"':
		f.fail("member %q must be a string, not %s", name, jsonType(value))
		return ""
	}
	return string(unquote(value))
}

func (f *fields) boolean(name string) bool {
	switch value := f.get(name); {
	case value == nil || string(value) == "false":
		return false
	case string(value) == "true":
		return true
	default:
		f.fail("member %q must be a boolean, not %s", name, jsonType(value))
		return false
	}
}

// texts returns a list of strings, nil if it is not there.
func (f *fields) texts(name string) []string {
	value := f.raw(name, '[')
	if value == nil {
		return nil
	}
	texts := []string{}
	for w := (walker{text: value}); w.next(); {
		element := w.value()
		if element[0] != '"' {
			f.fail("member %q must be an array of strings", name)
			return nil
		}
		texts = append(texts, string(unquote(element)))
	}
	return texts
}

// textMap returns an object whose values are strings, nil if it is not there.
func (f *fields) textMap(name string) map[string]string {
	value := f.raw(name, '{')
	if value == nil {
		return nil
	}
	texts := make(map[string]string)
	for w := (walker{text: value}); w.next(); {
		key, text := w.name(), w.value()
		if text[0] != '"' {
			f.fail("member %q must be an object with strings as values", name)
			return nil
		}
		texts[string(key)] = string(unquote(text))
	}
	return texts
}

// objects calls visit with the fields of each of the first limit objects of a list, which are good until visit
// returns, and returns how many it has. What is none among the first limit is a failure of f and ends the list.
func (f *fields) objects(name, what string, limit int, visit func(inner *fields)) (length int) {
	value := f.raw(name, '[')
	if value == nil {
		return 0
	}
	for w := (walker{text: value}); w.next(); {
		if length++; length > limit {
			w.value()
			continue
		}
		inner := f.within(&w, place{what: what, number: length})
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
	value := f.raw(member, '{')
	if value == nil {
		return moorage.Identifier{}
	}
	inner := f.within(&walker{text: value}, place{what: "member", name: member})
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: inner.namespace(), Name: inner.name()}
	f.keep(inner.failure)
	return ident
}

// mustName makes it a failure that there is a member "identifier" which is not ident, the table or view that the path names.
func (f *fields) mustName(kind string, ident moorage.Identifier) {
	if f.get("identifier") == nil {
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
