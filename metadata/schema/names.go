package schema

import (
	"crypto/sha256"
	"strings"

	"moorage"
)

// nameKey identifies a full name, which is the names of a field's parents and of the field, joined
// by dots. It is the hash of the part after the last dot and of the nameKey of the part before it.
// So a column "a.b" and the field b of a struct a have the same key, because their full names are
// equal. The full names themselves are not kept in memory, because in a deep schema they would take
// far more space than the schema.
type nameKey [16]byte

// below returns the key of the full name that consists of k's name, a dot and name. name may have
// dots.
func (k nameKey) below(name string) nameKey {
	buffer := make([]byte, 0, 64)
	for part := range strings.SplitSeq(name, ".") {
		buffer = append(append(buffer[:0], k[:]...), part...)
		sum := sha256.Sum256(buffer)
		copy(k[:], sum[:])
	}
	return k
}

// nameIndex finds fields by their names.
type nameIndex map[nameKey]*field

// addFull adds the full names of t's fields. at is the key of the full name of the field whose type
// is t. It refuses two fields with the same full name.
func (x nameIndex) addFull(t *fieldType, at nameKey) error {
	for _, f := range t.fields {
		key := at.below(f.name)
		if other := x[key]; other != nil {
			return moorage.Errorf(moorage.KindValidation,
				"Invalid schema: multiple fields for name %s: %d and %d", f.fullName(), other.id, f.id)
		}
		x[key] = f
		if err := x.addFull(f.typ, key); err != nil {
			return err
		}
	}
	return nil
}

// addShort adds the short names of t's fields, which leave out "element" and "value" before a
// struct: "points.x" in addition to "points.element.x". If several fields have the same short name,
// it means the first of them.
func (x nameIndex) addShort(t *fieldType, at nameKey) {
	for _, f := range t.fields {
		key := at.below(f.name)
		if x[key] == nil {
			x[key] = f
		}
		if f.typ.kind == kindStruct && (t.kind == kindList || t.kind == kindMap && f.name == "value") {
			key = at
		}
		x.addShort(f.typ, key)
	}
}

// ColumnNames finds the fields of a schema by their names.
type ColumnNames struct{ full, short nameIndex }

// ColumnNames indexes the names of the schema, which takes about as long as parsing it.
func (s *Schema) ColumnNames() ColumnNames {
	short := make(nameIndex, len(s.byID))
	short.addShort(s.root, nameKey{})
	return ColumnNames{s.names, short}
}

// Find returns the id of the field with the full name. If there is no such field, it looks for the
// short name. It returns false if there is no such field either.
func (c ColumnNames) Find(name string) (id int, found bool) {
	if f := c.find(name); f != nil {
		return f.id, true
	}
	return 0, false
}

// find is like Find, but returns the field, or nil.
func (c ColumnNames) find(name string) *field {
	key := nameKey{}.below(name)
	if f := c.full[key]; f != nil {
		return f
	}
	return c.short[key]
}
