package schema

import "github.com/apache/iceberg-go"

// The tests are in a different package. This file exports internals that only they need.

// Bounds of schemas and messages.
const (
	TypeDepthMax = typeDepthMax
	ProblemsMax  = problemsMax
)

// ParseTransform reads the name of a transform.
func ParseTransform(name string) (iceberg.Transform, error) { return parseTransform(name) }

// ParsePrimitive reads the name of a primitive type.
func ParsePrimitive(name string) (primitive iceberg.Type, text, spelling string, err error) {
	t, spelling, err := parsePrimitive(name)
	if err != nil {
		return nil, "", "", err
	}
	return t.primitive, t.text, spelling, nil
}

// FieldOf holds the parsed values of a field.
type FieldOf struct {
	Name     string // the full name, not truncated
	Required bool
	Type     iceberg.Type // nil for a nested one
}

// Fields returns all fields by their ids.
func (s *Schema) Fields() map[int]FieldOf {
	fields := make(map[int]FieldOf)
	for id, f := range s.byID {
		fields[id] = FieldOf{longName(f), f.required, f.typ.primitive}
	}
	return fields
}

func longName(f *field) string {
	if f.parent == nil {
		return f.name
	}
	return longName(f.parent) + "." + f.name
}

// Len returns the number of fields.
func (p *Spec) Len() int { return len(p.fields) }

// LacksIDs reports whether fields were sent without ids.
func (p *Spec) LacksIDs() bool { return p.fieldIDs == idsMissing && len(p.fields) > 0 }
