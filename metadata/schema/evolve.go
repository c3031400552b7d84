package schema

import (
	"github.com/apache/iceberg-go"

	"moorage"
)

// CheckEvolved refuses s (KindValidation) as a further schema of a table if readers could then no
// longer read its files. This is the case if a field has a type that its old type cannot be
// promoted to. The old type is the field's type in current, or else in the newest of earlier that
// has the field's id. earlier are the table's other schemas, the newest first. Nested types only
// have to keep their kind, because their fields have their own ids. Source: table specification,
// schema evolution.
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
