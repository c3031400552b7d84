package schema

// Columns returns all fields of s, in the order of the schema. A field precedes the fields in it.
// Long paths are truncated, as in Diff, because a schema can have many fields in a struct with a
// huge name.
func (s *Schema) Columns() (columns []Column) {
	var visit func(t *fieldType)
	visit = func(t *fieldType) {
		for _, f := range t.fields {
			columns = append(columns, f.column())
			visit(f.typ)
		}
	}
	visit(s.root)
	return columns
}

// HasField reports whether a field of s, at any depth, has the id.
func (s *Schema) HasField(id int) bool { return s.byID[id] != nil }
