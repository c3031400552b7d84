package schema

import (
	"slices"

	"github.com/apache/iceberg-go"

	"moorage/internal/jsontext"
)

// Field is a field of a schema, for readers of rows.
type Field struct {
	ID       int
	Name     string // "element", "key" and "value" in lists and maps
	Required bool
	Type     Type
	// Default is the initial-default as JSON. It is empty if there is none.
	Default string
	// IsDefault is true if Default is a value of the type.
	IsDefault bool
}

// Type is the type of a field, for readers of rows.
type Type struct {
	// Name is struct, list or map, or the name of a primitive type without its parameters.
	Name string
	// Text is a primitive type with its parameters. It is empty for nested types.
	Text string
	// Length is the number of bytes of a fixed type. Precision and Scale belong to a decimal type.
	Length, Precision, Scale int
	// Fields holds the fields of a struct, the element of a list, or the key and the value of a
	// map.
	Fields []Field
}

// RowType returns the type of rows: a struct of the columns, in the order of the schema.
func (s *Schema) RowType() Type { return s.root.exported() }

// exported returns the type for readers of rows.
func (t *fieldType) exported() Type {
	out := Type{Name: t.text, Text: t.text}
	switch p := t.primitive.(type) {
	case iceberg.FixedType:
		out.Name, out.Length = "fixed", p.Len()
	case iceberg.DecimalType:
		out.Name, out.Precision, out.Scale = "decimal", p.Precision(), p.Scale()
	case iceberg.GeometryType:
		out.Name = "geometry"
	case iceberg.GeographyType:
		out.Name = "geography"
	}
	switch t.kind {
	case kindStruct:
		out.Name = "struct"
	case kindList:
		out.Name = "list"
	case kindMap:
		out.Name = "map"
	}
	for _, f := range t.fields {
		field := Field{ID: f.id, Name: f.name, Required: f.required, Type: f.typ.exported()}
		if f.initialDefault != (jsontext.Span{}) {
			field.Default, field.IsDefault = f.text(f.initialDefault), f.checkDefault(f.initialDefault) == nil
		}
		out.Fields = append(out.Fields, field)
	}
	return out
}

// IdentitySources returns the sorted ids of the columns that p partitions by value.
func (p *Spec) IdentitySources() (ids []int) {
	for _, f := range p.fields {
		if _, identity := f.transform.Transform.(iceberg.IdentityTransform); identity {
			ids = append(ids, f.transform.sources...)
		}
	}
	slices.Sort(ids)
	return ids
}
