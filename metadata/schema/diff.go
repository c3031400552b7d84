package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Difference holds the differences between two schemas of one table. Fields are matched by id, so a
// renamed field counts as changed. Nested fields have their own entries.
type Difference struct {
	Added   []Column       `json:"added,omitempty"`   // by id
	Removed []Column       `json:"removed,omitempty"` // by id
	Changed []ColumnChange `json:"changed,omitempty"` // by id
}

// Column is a field of a schema, at any depth.
type Column struct {
	ID       int    `json:"id"`
	Path     string `json:"path"` // full name: "a.b", "list.element", "map.key"
	Type     string `json:"type"` // as printed by Java; "struct", "list" or "map" for a nested type
	Required bool   `json:"required"`
	Doc      string `json:"doc,omitempty"`
}

// ColumnChange holds the members of one field that differ. Members that are equal are nil on both
// sides.
type ColumnChange struct {
	ID   int    `json:"id"`
	Path string `json:"path"` // full name in the second schema
	Was  Traits `json:"was"`
	Is   Traits `json:"is"`
}

// Traits holds the comparable members of a field. Nil means that the member does not differ.
type Traits struct {
	Path           *string         `json:"path,omitempty"`
	Type           *string         `json:"type,omitempty"`
	Required       *bool           `json:"required,omitempty"`
	Doc            *string         `json:"doc,omitempty"` // empty without a doc
	InitialDefault json.RawMessage `json:"initial-default,omitempty"`
	WriteDefault   json.RawMessage `json:"write-default,omitempty"`
}

// IsEmpty reports whether the schemas have the same fields.
func (d Difference) IsEmpty() bool { return len(d.Added)+len(d.Removed)+len(d.Changed) == 0 }

// Diff returns the differences between two schemas. It does not compare the order of fields, or
// identifier fields.
func Diff(from, to *Schema) Difference {
	var d Difference
	for _, id := range slices.Sorted(maps.Keys(from.byID)) {
		was, is := from.byID[id], to.byID[id]
		if is == nil {
			d.Removed = append(d.Removed, was.column())
		} else if change, differs := was.changeTo(is); differs {
			d.Changed = append(d.Changed, change)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(to.byID)) {
		if from.byID[id] == nil {
			d.Added = append(d.Added, to.byID[id].column())
		}
	}
	return d
}

func (f *field) column() Column {
	return Column{ID: f.id, Path: f.fullName(), Type: f.typ.word(), Required: f.required, Doc: f.docText()}
}

// changeTo returns the members in which f differs from its new form. It returns false if there are
// none.
func (f *field) changeTo(is *field) (change ColumnChange, differs bool) {
	change = ColumnChange{ID: f.id, Path: is.fullName()}
	if f.name != is.name || f.parentID() != is.parentID() { // a renamed struct does not rename its fields
		change.Was.Path, change.Is.Path = unequal(f.fullName(), change.Path)
	}
	change.Was.Type, change.Is.Type = unequal(f.typ.word(), is.typ.word())
	change.Was.Required, change.Is.Required = unequal(f.required, is.required)
	change.Was.Doc, change.Is.Doc = unequal(f.docText(), is.docText())
	change.Was.InitialDefault, change.Is.InitialDefault = unequalJSON(
		f.text(f.initialDefault), is.text(is.initialDefault))
	change.Was.WriteDefault, change.Is.WriteDefault = unequalJSON(f.text(f.writeDefault), is.text(is.writeDefault))
	t := change.Is
	return change, t.Path != nil || t.Type != nil || t.Required != nil || t.Doc != nil ||
		t.InitialDefault != nil || t.WriteDefault != nil
}

// unequal returns both values, or nil twice if they are equal.
func unequal[T comparable](was, is T) (*T, *T) {
	if was == is {
		return nil, nil
	}
	return &was, &is
}

func unequalJSON(was, is string) (json.RawMessage, json.RawMessage) {
	if was == is {
		return nil, nil
	}
	return json.RawMessage(cmp.Or(was, "null")), json.RawMessage(cmp.Or(is, "null"))
}

func (f *field) docText() string {
	if f.doc == nil {
		return ""
	}
	return *f.doc
}

// parentID returns the id of the field that contains f, or zero for a column. Ids begin at 1.
func (f *field) parentID() int {
	if f.parent == nil {
		return 0
	}
	return f.parent.id
}

// word returns the text of a primitive type, or just the name of a nested type.
func (t *fieldType) word() string {
	switch t.kind {
	case kindStruct:
		return "struct"
	case kindList:
		return "list"
	case kindMap:
		return "map"
	}
	return t.text
}
