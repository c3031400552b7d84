package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/internal/jsontext"
)

const (
	// fieldIDMax is the highest field id of a user's column. Higher ids are reserved for metadata
	// columns. Source: table specification, "Reserved Field IDs".
	fieldIDMax = 2147483447
	// defaultsMinFormatVersion is the first format version whose readers fill in initial-default.
	defaultsMinFormatVersion = 3
	// problemsMax is the maximum number of problems in one message.
	problemsMax = 20
)

// Check refuses a schema that must not be added to a table of formatVersion. It refuses types and
// defaults that the version does not support ("Invalid schema for v…"), empty names and reserved
// field ids. It also refuses every schema that CheckLoad refuses. Errors are KindIllegalArgument.
func (s *Schema) Check(formatVersion int) error {
	fields := s.sortedFields()
	if err := checkVersion(fields, formatVersion); err != nil {
		return err
	}
	for _, f := range fields {
		if f.name == "" {
			return moorage.Errorf(moorage.KindIllegalArgument, "Invalid column name: (empty)")
		}
		if f.id > fieldIDMax {
			return moorage.Errorf(moorage.KindIllegalArgument,
				"Invalid field id for %s: %d is reserved (above %d)", f.fullName(), f.id, fieldIDMax)
		}
	}
	return s.CheckLoad()
}

// CheckLoad refuses a schema that the Java reference cannot load, with KindIllegalArgument:
// unsuitable identifier fields, defaults that are not values of their field's type, and required
// fields of the type unknown.
func (s *Schema) CheckLoad() error {
	for _, f := range s.sortedFields() {
		if _, unknown := f.typ.primitive.(iceberg.UnknownType); unknown && f.required {
			return moorage.Errorf(moorage.KindIllegalArgument,
				"Cannot create required field with unknown type: %s", f.fullName())
		}
		for _, at := range []jsontext.Span{f.initialDefault, f.writeDefault} {
			if err := f.checkDefault(at); err != nil {
				return err
			}
		}
	}
	for _, id := range s.identifiers {
		if err := s.checkIdentifier(id); err != nil {
			return err
		}
	}
	return nil
}

// sortedFields returns all fields by id.
func (s *Schema) sortedFields() []*field {
	fields := make([]*field, 0, len(s.byID))
	for _, f := range s.byID {
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b *field) int { return a.id - b.id })
	return fields
}

// checkVersion follows Java Schema.checkCompatibility.
func checkVersion(fields []*field, formatVersion int) error {
	var problems []string
	for _, f := range fields {
		switch {
		case f.hasInitialDefault() && formatVersion < defaultsMinFormatVersion:
			problems = append(problems, fmt.Sprintf(
				"Invalid initial default for %s: non-null default (%s) is not supported until v%d",
				f.fullName(), jsontext.Clip(f.text(f.initialDefault)), defaultsMinFormatVersion))
		case formatVersion < f.typ.minFormatVersion():
			problems = append(problems, fmt.Sprintf("Invalid type for %s: %s is not supported until v%d",
				f.fullName(), f.typ.String(), f.typ.minFormatVersion()))
		}
		if len(problems) == problemsMax {
			break
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return moorage.Errorf(moorage.KindIllegalArgument,
		"Invalid schema for v%d:\n- %s", formatVersion, strings.Join(problems, "\n- "))
}

// checkIdentifier follows Java Schema.validateIdentifierField.
func (s *Schema) checkIdentifier(id int) error {
	f := s.byID[id]
	if f == nil {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot add fieldId %d as an identifier field: field does not exist", id)
	}
	refuse := func(format string, args ...any) error {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot add field %s as an identifier field: %s", jsontext.Clip(f.name), fmt.Sprintf(format, args...))
	}
	switch {
	case !f.typ.isPrimitive():
		return refuse("not a primitive type field")
	case !f.required:
		return refuse("not a required field")
	case f.typ.isFloat():
		return refuse("must not be float or double field")
	}
	var parents []*field
	for p := f.parent; p != nil; p = p.parent {
		parents = append(parents, p)
	}
	for _, p := range slices.Backward(parents) {
		if p.typ.kind != kindStruct {
			return refuse("must not be nested in %s", p)
		}
		if !p.required {
			return refuse("must not be nested in an optional field %s", p)
		}
	}
	return nil
}
