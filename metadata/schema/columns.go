package schema

// Columns returns all fields of s, in the order of the schema. A field precedes the fields in it.
// No path is truncated.
func (s *Schema) Columns() (columns []Column) {
	var visit func(t *fieldType, above string)
	visit = func(t *fieldType, above string) {
		for _, f := range t.fields {
			column := f.column()
			column.Path = above + f.name
			columns = append(columns, column)
			visit(f.typ, column.Path+".")
		}
	}
	visit(s.root, "")
	return columns
}
