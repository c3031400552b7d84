package metadata

import "moorage/metadata/schema"

// Column is a field of a schema.
type Column = schema.Column

// Columns returns the fields of the current schema. A field precedes the fields in it.
func (d *Document) Columns() []Column {
	if d.canonical != nil { // an old document may have its schema elsewhere
		return d.canonical.Columns()
	}
	return columnsOf(d.arrays[schemas], d.value(schemas.key()), d.currentSchemaID)
}

// Columns returns the fields of the schema of the current version.
func (d *ViewDocument) Columns() []Column {
	current, err := d.version(d.currentVersionID)
	if err != nil || current == nil { // not reached: ParseView checks it
		return nil
	}
	return columnsOf(d.arrays[viewSchemas], d.value(viewArrayKeys[viewSchemas]), current.schemaID)
}

// columnsOf returns the fields of the schema with this id. raw is the JSON of the schemas.
func columnsOf(all list, raw []byte, id int) []Column {
	for _, e := range all.all(0) {
		if e.id != int64(id) {
			continue
		}
		if s, err := schema.Parse(raw[e.start:e.end]); err == nil { // the document was read before
			return s.Columns()
		}
	}
	return nil
}
