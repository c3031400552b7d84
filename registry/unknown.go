package registry

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"moorage/internal/jsontext"
)

// Value is the value of a record: a struct that embeds Unknown, and whose method Members returns
// MembersOf for its type.
type Value interface {
	// Members returns the names of the members for which the value's struct has a field.
	Members() *Members
	Later() Unknown
}

// Unknown holds the members of a record's value for which this version has no field, because a
// later version wrote them. Decode keeps them, including those in objects within the value, and
// Encode writes them. The unknown members of an object in a list follow the object when it moves in
// the list, as long as its known members do not change. Code that makes a new value for an existing
// record must copy Unknown from the old value. A copy of the struct includes it. The zero Unknown
// is empty. An Unknown never changes.
type Unknown struct{ rest *unknown }

// Later returns u. A value that embeds Unknown gets this method.
func (u Unknown) Later() Unknown { return u }

func (u *Unknown) keep(rest *unknown) { u.rest = rest }

// unknown holds the unknown members of one object, and of the objects within it.
type unknown struct {
	members []byte // as written, each preceded by a comma
	within  []within
}

// within holds the unknown members of an object in a known member.
type within struct {
	name string // empty in a list
	at   int    // in a list, its index when read
	like []byte // in a list: the encoded object without its unknown members; nil if it is not an object
	*unknown
}

// Members holds the names of the members of an object, and of the objects within it. It never
// changes.
type Members struct {
	names  []string
	values []*Members // the members of each object, or of the objects in each list; nil for other values
}

// MembersOf returns the members of T, a struct that package encoding/json encodes field by field.
func MembersOf[T any]() *Members { return membersOf(reflect.TypeFor[T]()) }

// membersOf returns nil for a type that is not a struct, or that decodes itself.
func membersOf(t reflect.Type) *Members {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || readsItself(t) {
		return nil
	}
	var m Members
	for i := range t.NumField() {
		field := t.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			m.names, m.values = append(m.names, name), append(m.values, membersOf(field.Type))
		} else if field.IsExported() && !field.Anonymous {
			m.names, m.values = append(m.names, field.Name), append(m.values, membersOf(field.Type))
		}
	}
	return &m
}

func readsItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// find returns the index of a name. It begins the search at next, because most values are written
// in the order of their fields. It returns -1 if the name is unknown. Like package encoding/json it
// ignores case.
func (m *Members) find(name []byte, next int) int {
	for i := range m.names {
		if at := (next + i) % len(m.names); m.names[at] == string(name) {
			return at
		}
	}
	return slices.IndexFunc(m.names, func(known string) bool { return strings.EqualFold(known, string(name)) })
}

// unknownIn returns the members of value, valid JSON, whose names m lacks. It returns nil if there
// are no such members. It fails on JSON that nests more than 500 deep.
func (m *Members) unknownIn(value []byte) (*unknown, error) {
	var members []byte // separate from the result, which is allocated only if needed
	var inner []within
	next := 0
	err := eachPart(value, func(p part) (err error) {
		found, names := within{at: p.at}, m
		if p.name != nil {
			at := m.find(p.name, next)
			if at < 0 {
				members = append(append(append(members, ','), p.before...), p.value...)
				return nil
			}
			next, names, found.name = at+1, m.values[at], m.names[at]
		}
		if names == nil {
			return nil
		}
		if found.unknown, err = names.unknownIn(p.value); found.unknown != nil {
			inner = append(inner, found)
		}
		return err
	})
	if members == nil && inner == nil {
		return nil, err
	}
	return &unknown{members, inner}, err
}

// part is a member of an object or an element of a list.
type part struct {
	name   []byte // of a member, unescaped; nil for an element
	at     int    // of an element
	before []byte // the text from the name of a member up to its value
	value  []byte
}

// eachPart calls visit for each part of value, valid JSON, until visit fails. It does nothing for a
// value that is not an object or list.
func eachPart(value []byte, visit func(part) error) error {
	r, at := jsontext.Reread(value), 0
	switch r.Space() {
	case '{':
		return r.Object(func(name []byte) error {
			r.Space()
			before := r.From(r.KeyPos())
			value, err := r.Value()
			if err != nil {
				return err
			}
			return visit(part{name: name, before: before, value: value})
		})
	case '[':
		return r.Array(func() error {
			value, err := r.Value()
			if err != nil {
				return err
			}
			at++
			return visit(part{at: at - 1, value: value})
		})
	}
	return nil
}

// anchor records data by which the objects in lists can be found again. value is Encode's result
// without u.
func (u *unknown) anchor(value []byte) error {
	return eachPart(value, func(p part) error {
		for i := range u.within {
			in := &u.within[i]
			if in.name != string(p.name) || in.at != p.at {
				continue
			}
			if p.name == nil {
				in.like = bytes.Clone(p.value)
			}
			if err := in.anchor(p.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// into returns value, Encode's result without u, with the members of u. The unknown members of a
// removed object are dropped.
func (u *unknown) into(value []byte) ([]byte, error) {
	if kind := jsontext.TypeOf(value); kind != jsontext.Object && kind != jsontext.Array {
		return value, nil
	}
	out := append(make([]byte, 0, len(value)+len(u.members)), value[0])
	placed := make([]bool, len(u.within)) // in a list
	err := eachPart(value, func(p part) (err error) {
		for i, in := range u.within {
			named := p.name != nil && in.name == string(p.name)
			if named || p.name == nil && !placed[i] && bytes.Equal(in.like, p.value) {
				placed[i] = true
				p.value, err = in.into(p.value)
				break
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, p.before...), p.value...)
		return err
	})
	if members := u.members; len(out) == 1 && len(members) > 0 {
		out = append(out, members[1:]...)
	} else {
		out = append(out, members...)
	}
	return append(out, value[len(value)-1]), err
}
