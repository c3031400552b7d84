package metadata

import "moorage/metadata/schema"

// Column is a field of a schema.
type Column = schema.Column

// Columns returns the fields of the current schema. A field precedes the fields in it. Long paths
// are truncated.
func (d *Document) Columns() []Column { return columnsOf(d.presentSchema()) }

// LackedField returns the first of ids for which the current schema has no field, at any depth.
func (d *Document) LackedField(ids []int) (id int, lacks bool) {
	return lackedField(d.presentSchema(), ids)
}

// presentSchema returns the current schema, or nil if it cannot be read.
func (d *Document) presentSchema() *schema.Schema {
	if d.canonical != nil { // an old document may have its schema elsewhere
		return d.canonical.presentSchema()
	}
	return schemaIn(d.arrays[schemas], d.value(schemas.key()), d.currentSchemaID)
}

// Columns returns the fields of the schema of the current version. Long paths are truncated.
func (d *ViewDocument) Columns() []Column { return columnsOf(d.presentSchema()) }

// LackedField returns the first of ids for which the current schema has no field, at any depth.
func (d *ViewDocument) LackedField(ids []int) (id int, lacks bool) {
	return lackedField(d.presentSchema(), ids)
}

func (d *ViewDocument) presentSchema() *schema.Schema {
	current, err := d.version(d.currentVersionID)
	if err != nil || current == nil { // not reached: ParseView checks it
		return nil
	}
	return schemaIn(d.arrays[viewSchemas], d.value(viewArrayKeys[viewSchemas]), current.schemaID)
}

// schemaIn returns the schema with this id, or nil. raw contains the JSON of the schemas.
func schemaIn(all list, raw []byte, id int) *schema.Schema {
	for _, e := range all.all(0) {
		if e.id != int64(id) {
			continue
		}
		if s, err := schema.Parse(raw[e.start:e.end]); err == nil { // the document was read before
			return s
		}
	}
	return nil
}

func columnsOf(s *schema.Schema) []Column {
	if s == nil {
		return nil
	}
	return s.Columns()
}

func lackedField(s *schema.Schema, ids []int) (id int, lacks bool) {
	for _, id := range ids {
		if s == nil || !s.HasField(id) {
			return id, true
		}
	}
	return 0, false
}
