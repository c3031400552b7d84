package metadata

import (
	"bytes"
	"slices"
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// extent is where a JSON value, or a run of bytes, lies in its document.
type extent struct{ start, end int }

// jsonValue is where a JSON value lies. Its content is read only when somebody asks for it: a tree
// of everything that a client may send is a hundred times as large as the text.
type jsonValue struct{ at extent }

// jsonField is a member of a JSON object that is looked into; its key is unquoted.
type jsonField struct {
	key   string
	value jsonValue
}

// jsonObject is a JSON object in its document.
type jsonObject struct {
	raw     []byte
	at      extent
	members []jsonField
}

// parseObject reads a JSON object, strictly (see cursor). It refuses another value, naming it by
// what.
func parseObject(raw []byte, what string) (jsonObject, error) {
	c := strict(raw)
	o, err := c.objectHere(what)
	if err != nil {
		return o, err
	}
	return o, c.End()
}

// objectHere consumes an object, its members as skip does, and returns it without looking into
// them. It refuses another value, naming it by what.
func (c *cursor) objectHere(what string) (jsonObject, error) {
	o := jsonObject{raw: c.Raw()}
	first := c.Space()
	o.at.start = c.Pos()
	if first != '{' {
		literal, err := c.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse %s from non-object: %s", what, jsontext.Clip(string(literal)))
		}
		return o, err
	}
	err := c.Object(func(key []byte) error {
		m := jsonField{key: string(key)}
		c.Space()
		m.value.at.start = c.Pos()
		err := c.Skip()
		m.value.at.end = c.Pos()
		o.members = append(o.members, m)
		return err
	})
	o.at.end = c.Pos()
	return o, err
}

// find returns the value of a member; false if there is none.
func (o jsonObject) find(key string) (jsonValue, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m.value, true
		}
	}
	return jsonValue{}, false
}

// present is find without members that are null.
func (o jsonObject) present(key string) (jsonValue, bool) {
	v, ok := o.find(key)
	if !ok || o.raw[v.at.start] == 'n' {
		return jsonValue{}, false
	}
	return v, true
}

func (o jsonObject) text(v jsonValue) string { return string(o.raw[v.at.start:v.at.end]) }

// object returns a member as an object. It refuses another value, naming it by what.
func (o jsonObject) object(v jsonValue, what string) (jsonObject, error) {
	return o.strictAt(v).objectHere(what)
}

// strictAt returns a cursor that is about to read a member.
func (o jsonObject) strictAt(v jsonValue) *cursor {
	return &cursor{jsontext.NewReaderAt(o.raw, v.at.start)}
}

// each calls visit for each element of a member, until visit fails. visit must consume the element.
// each returns false if the member is not an array.
func (o jsonObject) each(v jsonValue, visit func(c *cursor) error) (isArray bool, err error) {
	if o.raw[v.at.start] != '[' {
		return false, nil
	}
	c := o.strictAt(v)
	return true, c.Array(func() error { return visit(c) })
}

// eachObject is each of an array of objects. It refuses another element, naming it by what.
func (o jsonObject) eachObject(v jsonValue, what string, visit func(jsonObject) error) (isArray bool, err error) {
	return o.each(v, func(c *cursor) error {
		element, err := c.objectHere(what)
		if err != nil {
			return err
		}
		return visit(element)
	})
}

// required returns a member that must be there and not null.
func (o jsonObject) required(key string) (jsonValue, error) {
	v, ok := o.present(key)
	if !ok {
		return v, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", key)
	}
	return v, nil
}

// integer returns a member that must be a 32-bit integer, and its place.
func (o jsonObject) integer(key string) (int, extent, error) {
	v, ok := o.find(key)
	if !ok {
		return 0, v.at, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing int: %s", key)
	}
	n, ok := o.int32(v)
	if !ok {
		return 0, v.at, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to an integer value: %s: %s", key, jsontext.Clip(o.text(v)))
	}
	return n, v.at, nil
}

// int32 reads a number without fraction and exponent that fits 32 bits.
func (o jsonObject) int32(v jsonValue) (int, bool) {
	n, err := strconv.ParseInt(o.text(v), 10, 32)
	return int(n), err == nil
}

// integers reads an array of 32-bit integers.
func (o jsonObject) integers(key string, v jsonValue) ([]int, error) {
	var numbers []int
	isArray, err := o.each(v, func(c *cursor) error {
		text, err := c.Value()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(text), 10, 32)
		if err != nil {
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse integer from non-int value in %s: %s", key, jsontext.Clip(string(text)))
		}
		numbers = append(numbers, int(n))
		return nil
	})
	if !isArray {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse JSON array from non-array value: %s: %s", key, jsontext.Clip(o.text(v)))
	}
	return numbers, err
}

// boolean returns a member that must be true or false.
func (o jsonObject) boolean(key string) (bool, error) {
	v, ok := o.find(key)
	if !ok {
		return false, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing boolean: %s", key)
	}
	switch o.raw[v.at.start] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, moorage.Errorf(moorage.KindBadRequest,
		"Cannot parse to a boolean value: %s: %s", key, jsontext.Clip(o.text(v)))
}

// str returns a member that must be a string, and its place.
func (o jsonObject) str(key string) (string, extent, error) {
	v, ok := o.find(key)
	if !ok {
		return "", v.at, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing string: %s", key)
	}
	if o.raw[v.at.start] != '"' {
		return "", v.at, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a string value: %s: %s", key, jsontext.Clip(o.text(v)))
	}
	return jsontext.Unquote(o.raw[v.at.start:v.at.end]), v.at, nil
}

// patch replaces the bytes of an extent; an empty extent inserts.
type patch struct {
	at   extent
	with string
}

// applyPatches returns raw with the patches applied. They must not overlap.
func applyPatches(raw []byte, patches []patch) []byte {
	patches = slices.Clone(patches)
	slices.SortStableFunc(patches, func(a, b patch) int { return a.at.start - b.at.start })
	out := make([]byte, 0, len(raw)+16*len(patches))
	done := 0
	for _, p := range patches {
		out = append(append(out, raw[done:p.at.start]...), p.with...)
		done = p.at.end
	}
	return append(out, raw[done:]...)
}

// setMember is the patch that gives the member key the value (JSON), which becomes the first
// member of the object if it is not there.
func (o jsonObject) setMember(key, value string) patch {
	if v, ok := o.find(key); ok {
		return patch{v.at, value}
	}
	with := jsontext.Quote(key) + ":" + value
	if len(o.members) > 0 {
		with += ","
	}
	return patch{extent{o.at.start + 1, o.at.start + 1}, with}
}

// dropMembers are the patches that remove members with one comma each.
func (o jsonObject) dropMembers(drop func(jsonField) bool) []patch {
	var patches []patch
	kept := false
	start := o.at.start + 1 // of member i, with the comma before it once one is kept
	for i, m := range o.members {
		end := m.value.at.end
		dropped := drop(m)
		if !kept && dropped && i+1 < len(o.members) {
			end = bytes.IndexByte(o.raw[end:], ',') + end + 1
		}
		if dropped {
			patches = append(patches, patch{at: extent{start, end}})
		}
		kept = kept || !dropped
		start = end
	}
	return patches
}
