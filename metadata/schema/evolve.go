package schema

import (
	"github.com/apache/iceberg-go"

	"moorage"
)

// CheckEvolved refuses s (KindValidation) as a new schema of a table if readers could then not read
// the table's existing files. This is the case if the old type of a field cannot be promoted to its
// type in s. The old type is the field's type in current. If current does not have the field's id,
// it is the field's type in the newest schema in earlier that has the id. earlier lists the table's
// other schemas, newest first. A nested type only has to keep its kind, because its fields have
// their own ids. Source: table specification, schema evolution.
func (s *Schema) CheckEvolved(current *Schema, earlier []*Schema, formatVersion int) error {
	for _, f := range s.sortedFields() {
		before := current.field(f.id)
		for i := 0; before == nil && i < len(earlier); i++ {
			before = earlier[i].field(f.id)
		}
		if before != nil && !before.typ.promotesTo(f.typ, formatVersion) {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot change the type of field %d (%s) from %s to %s: readers could not read existing files. "+
					"Add a column with a new id instead", f.id, f.fullName(), before.typ, f.typ)
		}
	}
	return nil
}

// promotesTo reports whether files with a field of type t can be read as type o.
func (t *fieldType) promotesTo(o *fieldType, formatVersion int) bool {
	if t.kind != o.kind {
		return t.isUnknown()
	}
	if t.kind != kindPrimitive || t.key == o.key || t.isUnknown() {
		return true
	}
	switch from := t.primitive.(type) {
	case iceberg.Int32Type:
		return o.key == "long"
	case iceberg.Float32Type:
		return o.key == "double"
	case iceberg.DateType:
		return formatVersion >= 3 && (o.key == "timestamp" || o.key == "timestamp_ns")
	case iceberg.DecimalType:
		to, ok := o.primitive.(iceberg.DecimalType)
		return ok && to.Scale() == from.Scale() && to.Precision() >= from.Precision()
	}
	return false
}

func (t *fieldType) isUnknown() bool {
	_, unknown := t.primitive.(iceberg.UnknownType)
	return unknown
}
