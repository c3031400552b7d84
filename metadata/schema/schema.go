package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Schema is a parsed schema: its fields, with its bytes from the request. It is immutable, and safe
// for concurrent use.
//
// Parse accepts every schema that may occur in a metadata document, so that this catalog can read
// tables written by another catalog. Check refuses schemas that must not be added to a document.
type Schema struct {
	ID          int    // schema-id; 0 if absent
	Raw         []byte // as sent
	HighestID   int    // the highest field id; 0 if there are no fields
	root        *fieldType
	identifiers []int // identifier-field-ids, sorted, each once
	byID        map[int]*field
	names       nameIndex // full names

	members jsontext.Fields
	patches []jsontext.Patch // replace spellings that only Java reads; remove null defaults, which Java cannot read
}

// Width returns the number of top-level columns.
func (s *Schema) Width() int { return len(s.root.fields) }

// field is a field of a struct, the element of a list, or the key or the value of a map.
type field struct {
	id       int
	name     string // "element", "key" and "value" in lists and maps
	required bool
	typ      *fieldType
	doc      *string
	parent   *field  // nil for columns
	schema   *Schema // the schema to which the field belongs

	// Positions in the schema's bytes.
	initialDefault jsontext.Span // empty if absent or null
	writeDefault   jsontext.Span
	idAt           jsontext.Span
}

// typeDepthMax is the maximum nesting of types. There is a limit because the functions that walk
// over a schema are recursive. No table with data is nested that deeply.
const typeDepthMax = 100

// Parse reads a schema. It returns KindBadRequest for malformed JSON, a missing member or an
// unknown type, and KindValidation for a name or id that is used twice.
func Parse(raw []byte) (*Schema, error) {
	members, err := jsontext.ParseFields(raw, "schema")
	if err != nil {
		return nil, err
	}
	s := &Schema{Raw: raw, members: members, byID: make(map[int]*field), names: make(nameIndex)}
	if v, ok := members.Find("type"); !ok || members.Text(v) != `"struct"` {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse type from json: %s", jsontext.Clip(string(raw)))
	}
	if _, ok := members.Present("schema-id"); ok {
		if s.ID, _, err = members.Int("schema-id"); err != nil {
			return nil, err
		}
	}
	p := schemaParser{schema: s, primitives: make(map[string]namedType)}
	if s.root, err = p.structType(members, nil, 0); err != nil {
		return nil, err
	}
	if s.identifiers, err = parseIdentifiers(members); err != nil {
		return nil, err
	}
	if err := s.names.addFull(s.root, nameKey{}); err != nil {
		return nil, err
	}
	return s, nil
}

func parseIdentifiers(members jsontext.Fields) ([]int, error) {
	const key = "identifier-field-ids"
	v, ok := members.Present(key)
	if !ok {
		return nil, nil
	}
	ids, err := members.Ints(key, v)
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// schemaParser collects the fields of a schema while it reads the schema's types.
type schemaParser struct {
	schema     *Schema
	primitives map[string]namedType // by name; fields share them
}

type namedType struct {
	*fieldType
	spelling string
}

func (p *schemaParser) add(f *field) error {
	s := p.schema
	if other, twice := s.byID[f.id]; twice {
		return moorage.Errorf(moorage.KindValidation,
			"Invalid schema: multiple fields with id %d: %s and %s", f.id, other.fullName(), f.fullName())
	}
	s.byID[f.id] = f
	s.HighestID = max(s.HighestID, f.id)
	return nil
}

// typeOf reads a type. parent becomes the parent of the type's fields.
func (p *schemaParser) typeOf(v jsontext.Span, parent *field, depth int) (*fieldType, error) {
	raw := p.schema.Raw
	if depth > typeDepthMax {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse schema: types nest deeper than %d", typeDepthMax)
	}
	switch raw[v.Start] {
	case '"':
		return p.primitive(jsontext.Unquote(raw[v.Start:v.End]), v)
	case '{':
		o, err := p.schema.members.Object(v, "type")
		if err != nil {
			return nil, err
		}
		if name, ok := o.Find("type"); ok {
			switch o.Text(name) {
			case `"struct"`:
				return p.structType(o, parent, depth)
			case `"list"`:
				return p.listType(o, parent, depth)
			case `"map"`:
				return p.mapType(o, parent, depth)
			}
		}
	}
	return nil, moorage.Errorf(moorage.KindBadRequest,
		"Cannot parse type from json: %s", jsontext.Clip(string(raw[v.Start:v.End])))
}

// primitive returns the primitive type called name. at is the position of the name.
func (p *schemaParser) primitive(name string, at jsontext.Span) (*fieldType, error) {
	t, ok := p.primitives[name]
	if !ok {
		var err error
		if t.fieldType, t.spelling, err = parsePrimitive(name); err != nil {
			return nil, err
		}
		p.primitives[name] = t
	}
	if t.spelling != name {
		p.schema.patches = append(p.schema.patches, jsontext.Patch{At: at, With: jsontext.Quote(t.spelling)})
	}
	return t.fieldType, nil
}

func (p *schemaParser) structType(o jsontext.Fields, parent *field, depth int) (*fieldType, error) {
	t := &fieldType{kind: kindStruct}
	v, err := o.Required("fields")
	if err != nil {
		return t, err
	}
	isArray, err := o.EachObject(v, "struct field", func(o jsontext.Fields) error {
		f, err := p.structField(o, parent, depth)
		t.fields = append(t.fields, f)
		return err
	})
	if err == nil && !isArray {
		err = moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse struct fields from non-array: %s", jsontext.Clip(o.Text(v)))
	}
	return t, err
}

func (p *schemaParser) structField(o jsontext.Fields, parent *field, depth int) (*field, error) {
	f := &field{parent: parent, schema: p.schema}
	var err error
	if f.id, f.idAt, err = o.Int("id"); err != nil {
		return nil, err
	}
	if f.name, _, err = o.Str("name"); err != nil {
		return nil, err
	}
	if _, ok := o.Present("doc"); ok {
		doc, _, err := o.Str("doc")
		if err != nil {
			return nil, err
		}
		f.doc = &doc
	}
	if f.required, err = o.Bool("required"); err != nil {
		return nil, err
	}
	f.initialDefault, _ = o.Present("initial-default")
	f.writeDefault, _ = o.Present("write-default")
	p.schema.patches = append(p.schema.patches, o.Drop(func(key string, at jsontext.Span) bool {
		return (key == "initial-default" || key == "write-default") && o.Bytes(at)[0] == 'n'
	})...)
	typeJSON, err := o.Required("type")
	if err != nil {
		return nil, err
	}
	return f, p.complete(f, typeJSON, depth)
}

// complete adds f to the schema and reads its type.
func (p *schemaParser) complete(f *field, typeJSON jsontext.Span, depth int) error {
	if err := p.add(f); err != nil {
		return err
	}
	var err error
	f.typ, err = p.typeOf(typeJSON, f, depth+1)
	return err
}

func (p *schemaParser) listType(o jsontext.Fields, parent *field, depth int) (*fieldType, error) {
	t := &fieldType{kind: kindList}
	element := &field{name: "element", parent: parent, schema: p.schema}
	var err error
	if element.id, element.idAt, err = o.Int("element-id"); err != nil {
		return t, err
	}
	typeJSON, err := o.Required("element")
	if err != nil {
		return t, err
	}
	if element.required, err = o.Bool("element-required"); err != nil {
		return t, err
	}
	t.fields = []*field{element}
	return t, p.complete(element, typeJSON, depth)
}

func (p *schemaParser) mapType(o jsontext.Fields, parent *field, depth int) (*fieldType, error) {
	t := &fieldType{kind: kindMap}
	key := &field{name: "key", required: true, parent: parent, schema: p.schema}
	value := &field{name: "value", parent: parent, schema: p.schema}
	var err error
	if key.id, key.idAt, err = o.Int("key-id"); err != nil {
		return t, err
	}
	keyJSON, err := o.Required("key")
	if err != nil {
		return t, err
	}
	if value.id, value.idAt, err = o.Int("value-id"); err != nil {
		return t, err
	}
	valueJSON, err := o.Required("value")
	if err != nil {
		return t, err
	}
	if value.required, err = o.Bool("value-required"); err != nil {
		return t, err
	}
	t.fields = []*field{key, value}
	if err := p.complete(key, keyJSON, depth); err != nil {
		return t, err
	}
	return t, p.complete(value, valueJSON, depth)
}

// fullName returns the names of the field's parents and the field's name, joined by dots. It
// truncates a long name.
func (f *field) fullName() string {
	var parts []string
	size := 0
	for ; f != nil; f = f.parent {
		parts = append(parts, jsontext.Clip(f.name))
		if size += len(f.name); size > jsontext.ClipBytes {
			break
		}
	}
	slices.Reverse(parts)
	return jsontext.Clip(strings.Join(parts, "."))
}

// label returns the text that the Java reference prints before a field's type.
func (f *field) label() string {
	if f.required {
		return fmt.Sprintf("%d: %s: required ", f.id, jsontext.Clip(f.name))
	}
	return fmt.Sprintf("%d: %s: optional ", f.id, jsontext.Clip(f.name))
}

// String returns the field as the Java reference prints it, without its doc.
func (f *field) String() string { return f.label() + f.typ.String() }

// SameAs reports whether two schemas have equal fields (docs and defaults included) and the same
// identifier fields. Ids do not matter. Source: Java Schema.sameSchema.
func (s *Schema) SameAs(o *Schema) bool {
	return slices.Equal(s.identifiers, o.identifiers) && s.root.sameAs(o.root)
}

func sameFields(a, b []*field) bool {
	return slices.EqualFunc(a, b, func(f, g *field) bool {
		return f.id == g.id && f.name == g.name && f.required == g.required && sameDoc(f.doc, g.doc) &&
			f.typ.sameAs(g.typ) &&
			sameDefault(f, f.initialDefault, g, g.initialDefault) &&
			sameDefault(f, f.writeDefault, g, g.writeDefault)
	})
}

func sameDoc(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// WithID returns the schema as it was sent, with its schema-id replaced or added. It also changes
// parts that some reader could not load: type names get their lower-case spelling, and null
// defaults are left out.
func (s *Schema) WithID(id int) []byte {
	patches := slices.Clone(s.patches)
	return jsontext.ApplyPatches(s.Raw, append(patches, s.members.Set("schema-id", strconv.Itoa(id))))
}

// field returns the field with an id, or nil if there is no such field.
func (s *Schema) field(id int) *field { return s.byID[id] }
