package registry

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Value is the value of a record: a struct that embeds Unknown and returns what MembersOf has of
// it.
type Value interface {
	// Members returns the names that the value's struct has a field for.
	Members() *Members
	Later() Unknown
}

// Unknown are the members of a record's value that this version has no field for, because a later
// version wrote them. Decode keeps them, also those of objects within the value, and Encode writes
// them. Unknown members of an object in a list stay with it, wherever it stands in the list, as
// long as its known members stay the same. Code that makes a value for a record that is there
// already carries Unknown on from the old value; a copy of the struct has it. The zero Unknown has
// none. It never changes.
type Unknown struct{ rest *unknown }

// Later returns u, of a value that embeds it.
func (u Unknown) Later() Unknown { return u }

func (u *Unknown) keep(rest *unknown) { u.rest = rest }

// unknown are the members of one object, and of those within it.
type unknown struct {
	members []byte // as they stood, each behind a comma
	within  []within
}

// within are the members of an object in a member that is known.
type within struct {
	name string // "" in a list
	at   int    // in a list, when it was read
	like []byte // in a list: what Encode writes of the object without its unknown members; nil: it is no object
	*unknown
}

// Members are the names of the members of an object, and of those within it. It never changes.
type Members struct {
	names  []string
	values []*Members // those of objects, or of the objects in a list; nil for what has no names of its own
}

// MembersOf returns the members of T, a struct that package encoding/json reads and writes by its
// fields.
func MembersOf[T any]() *Members { return membersOf(reflect.TypeFor[T]()) }

// membersOf returns nil for a type that is not a struct, or that reads itself.
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

// find returns the place of a name, at which it looks from next on: values are mostly written in
// the order of their fields. It returns -1 if there is none. Like package encoding/json it takes
// names that differ in case only.
func (m *Members) find(name []byte, next int) int {
	for i := range m.names {
		if at := (next + i) % len(m.names); m.names[at] == string(name) {
			return at
		}
	}
	text := string(name)
	if slices.Contains(name, '\\') && json.Unmarshal([]byte(`"`+text+`"`), &text) != nil {
		return -1
	}
	if at := slices.Index(m.names, text); at >= 0 {
		return at
	}
	return slices.IndexFunc(m.names, func(known string) bool { return strings.EqualFold(known, text) })
}

// unknownIn returns the members of value, which is valid JSON, that m has no name for; nil if there
// are none.
func (m *Members) unknownIn(value []byte) *unknown {
	var members []byte // apart from the result, which takes memory only if there is one
	var inner []within
	switch w := walkInto(value); w.kind() {
	case '{':
		for next := 0; w.member(); {
			at := m.find(w.name, next)
			if at < 0 {
				members = append(append(members, ','), w.whole()...)
				continue
			}
			next = at + 1
			if m.values[at] == nil {
				continue
			}
			if rest := m.values[at].unknownIn(w.value); rest != nil {
				inner = append(inner, within{name: m.names[at], unknown: rest})
			}
		}
	case '[':
		for at := 0; w.element(); at++ {
			if rest := m.unknownIn(w.value); rest != nil {
				inner = append(inner, within{at: at, unknown: rest})
			}
		}
	}
	if members == nil && inner == nil {
		return nil
	}
	return &unknown{members, inner}
}

// anchor notes by what objects in lists are found again. value is what Encode writes without u.
func (u *unknown) anchor(value []byte) {
	w := walkInto(value)
	opened := w.kind()
	for at := 0; opened == '{' && w.member() || opened == '[' && w.element(); at++ {
		for i := range u.within {
			switch in := &u.within[i]; {
			case opened == '{' && in.name == string(w.name):
				in.anchor(w.value)
			case opened == '[' && in.at == at:
				in.like = bytes.Clone(w.value)
				in.anchor(w.value)
			}
		}
	}
}

// into returns value, which Encode writes without u, with the members of u. Those of an object that
// is not in it any more are gone with it.
func (u *unknown) into(value []byte) []byte {
	w := walkInto(value)
	opened := w.kind()
	if opened != '{' && opened != '[' {
		return value
	}
	out := append(make([]byte, 0, len(value)+len(u.members)), opened)
	placed := make([]bool, len(u.within)) // in a list
	for first := true; opened == '{' && w.member() || opened == '[' && w.element(); first = false {
		if !first {
			out = append(out, ',')
		}
		named, item := w.text[w.start:w.at-len(w.value)], w.value
		for i, in := range u.within {
			if opened == '{' && in.name == string(w.name) {
				item = in.into(item)
			} else if opened == '[' && !placed[i] && bytes.Equal(in.like, w.value) {
				item, placed[i] = in.into(item), true
				break
			}
		}
		out = append(append(out, named...), item...)
	}
	if opened == '[' {
		return append(out, ']')
	}
	if len(out) == 1 && len(u.members) > 0 {
		out = append(out, u.members[1:]...)
	} else {
		out = append(out, u.members...)
	}
	return append(out, '}')
}
