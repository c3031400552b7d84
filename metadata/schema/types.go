package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/internal/jsontext"
)

// typeKind distinguishes primitive types, including variant, from nested ones.
type typeKind uint8

const (
	kindPrimitive typeKind = iota
	kindStruct
	kindList
	kindMap
)

// fieldType is the type of a field. The fields of a nested type are its children, in this order:
// the fields of a struct, the element of a list, the key and the value of a map.
type fieldType struct {
	kind      typeKind
	primitive iceberg.Type // of a primitive type
	text      string       // of a primitive type, as Java prints it
	key       string       // of a primitive type; equal types have equal keys
	fields    []*field     // of a nested type
}

// Patterns of types with parameters, in all spellings that the Java reference reads. It ignores
// letter case in type names.
var (
	fixedPattern     = regexp.MustCompile(`^fixed\[\s*(\d+)\s*\]$`)
	decimalPattern   = regexp.MustCompile(`^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$`)
	geometryPattern  = regexp.MustCompile(`(?i)^geometry\s*(?:\(\s*([^)]*?)\s*\))?$`)
	geographyPattern = regexp.MustCompile(`(?i)^geography\s*(?:\(\s*([^,]*?)\s*(?:,\s*(\w*)\s*)?\))?$`)
)

const (
	decimalPrecisionMax = 38
	defaultCRS          = "OGC:CRS84"
	defaultAlgorithm    = "spherical"
)

// parsePrimitive reads the name of a primitive type. spelling is a name that every reader
// understands. It equals name, unless only Java can read that name.
func parsePrimitive(name string) (t *fieldType, spelling string, err error) {
	lower := strings.ToLower(name)
	if plain := plainType(lower); plain != nil {
		return &fieldType{primitive: plain, text: lower, key: lower}, lower, nil
	}
	if m := fixedPattern.FindStringSubmatch(lower); m != nil {
		return parseFixed(m[1])
	}
	if m := decimalPattern.FindStringSubmatch(lower); m != nil {
		return parseDecimal(name, m[1], m[2])
	}
	if m := geometryPattern.FindStringSubmatchIndex(name); m != nil {
		return parseGeometry(name, m)
	}
	if m := geographyPattern.FindStringSubmatchIndex(name); m != nil {
		return parseGeography(name, m)
	}
	return nil, "", moorage.Errorf(moorage.KindBadRequest,
		"Cannot parse type string to primitive: %s", jsontext.Clip(name))
}

// plainType returns the type with that name, if it has no parameters. It returns nil if there is no
// such type.
func plainType(name string) iceberg.Type {
	switch name {
	case "boolean":
		return iceberg.BooleanType{}
	case "int":
		return iceberg.Int32Type{}
	case "long":
		return iceberg.Int64Type{}
	case "float":
		return iceberg.Float32Type{}
	case "double":
		return iceberg.Float64Type{}
	case "date":
		return iceberg.DateType{}
	case "time":
		return iceberg.TimeType{}
	case "timestamp":
		return iceberg.TimestampType{}
	case "timestamptz":
		return iceberg.TimestampTzType{}
	case "timestamp_ns":
		return iceberg.TimestampNsType{}
	case "timestamptz_ns":
		return iceberg.TimestampTzNsType{}
	case "string":
		return iceberg.StringType{}
	case "uuid":
		return iceberg.UUIDType{}
	case "binary":
		return iceberg.BinaryType{}
	case "unknown":
		return iceberg.UnknownType{}
	case "variant":
		return iceberg.VariantType{}
	}
	return nil
}

func parseFixed(length string) (*fieldType, string, error) {
	n, err := strconv.ParseInt(length, 10, 32)
	if err != nil {
		return nil, "", moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse type string to primitive: fixed[%s]", jsontext.Clip(length))
	}
	text := fmt.Sprintf("fixed[%d]", n)
	return &fieldType{primitive: iceberg.FixedTypeOf(int(n)), text: text, key: text}, text, nil
}

func parseDecimal(name, precisionText, scaleText string) (*fieldType, string, error) {
	precision, err := strconv.Atoi(precisionText)
	if err != nil || precision > decimalPrecisionMax {
		return nil, "", moorage.Errorf(moorage.KindBadRequest,
			"Decimals with precision larger than 38 are not supported: %s", jsontext.Clip(precisionText))
	}
	scale, err := strconv.Atoi(scaleText)
	if err != nil || scale > precision || precision == 0 { // Java accepts this, other readers do not
		return nil, "", moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse type string to primitive: %s", jsontext.Clip(name))
	}
	text := fmt.Sprintf("decimal(%d, %d)", precision, scale)
	spelling := fmt.Sprintf("decimal(%d,%d)", precision, scale)
	if name == text {
		spelling = text
	}
	return &fieldType{primitive: iceberg.DecimalTypeOf(precision, scale), text: text, key: text}, spelling, nil
}

// submatch returns a group of a match. It returns false if the group did not match.
func submatch(text string, match []int, group int) (string, bool) {
	if match[2*group] < 0 {
		return "", false
	}
	return text[match[2*group]:match[2*group+1]], true
}

func parseGeometry(name string, match []int) (*fieldType, string, error) {
	crs, given := submatch(name, match, 1)
	if !given {
		crs = defaultCRS
	}
	primitive, err := iceberg.GeometryTypeOf(crs)
	if err != nil {
		return nil, "", moorage.Errorf(moorage.KindBadRequest, "Invalid CRS: (empty string)")
	}
	const noun = "geometry"
	t := &fieldType{
		primitive: primitive,
		text:      fmt.Sprintf("%s(%s)", noun, crs),
		key:       fmt.Sprintf("%s(%s)", noun, foldCase(crs)),
	}
	return t, noun + name[len(noun):], nil
}

func parseGeography(name string, match []int) (*fieldType, string, error) {
	crs, given := submatch(name, match, 1)
	if !given {
		crs = defaultCRS
	}
	if crs == "" {
		return nil, "", moorage.Errorf(moorage.KindBadRequest, "Invalid CRS: (empty string)")
	}
	algorithm, given := submatch(name, match, 2)
	if !given {
		algorithm = defaultAlgorithm
	}
	lower := strings.ToLower(algorithm)
	primitive, err := iceberg.GeographyTypeOf(crs, lower)
	if err != nil {
		return nil, "", moorage.Errorf(moorage.KindBadRequest,
			"Invalid edge interpolation algorithm: %s", jsontext.Clip(algorithm))
	}
	const noun = "geography"
	t := &fieldType{
		primitive: primitive,
		text:      fmt.Sprintf("%s(%s, %s)", noun, crs, lower),
		key:       fmt.Sprintf("%s(%s, %s)", noun, foldCase(crs), lower),
	}
	return t, noun + name[len(noun):], nil
}

func foldCase(text string) string { return strings.ToLower(strings.ToUpper(text)) }

// isPrimitive reports whether the type is primitive in the Java reference. There, variant is not
// primitive.
func (t *fieldType) isPrimitive() bool { return t.kind == kindPrimitive && t.text != "variant" }

// isNested reports whether the type has fields.
func (t *fieldType) isNested() bool { return t.kind != kindPrimitive }

// isFloat reports whether values of the type are floating point numbers.
func (t *fieldType) isFloat() bool { return t.text == "float" || t.text == "double" }

// minFormatVersion is the first format version that has the type.
func (t *fieldType) minFormatVersion() int {
	switch t.primitive.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.VariantType,
		iceberg.UnknownType, iceberg.GeometryType, iceberg.GeographyType:
		return 3
	}
	return 1
}

// sameAs reports whether two types are equal, including the ids, names and defaults of their
// fields.
func (t *fieldType) sameAs(o *fieldType) bool {
	if t.kind != o.kind || t.key != o.key {
		return false
	}
	return sameFields(t.fields, o.fields)
}

// String returns the type as the Java reference prints it, truncated if it is long.
func (t *fieldType) String() string {
	var b strings.Builder
	t.print(&b)
	return jsontext.Clip(b.String())
}

// print appends the type until the text is long enough for any message.
func (t *fieldType) print(b *strings.Builder) {
	open := [...]string{kindStruct: "struct<", kindList: "list<", kindMap: "map<"}
	if t.kind == kindPrimitive {
		b.WriteString(t.text)
		return
	}
	b.WriteString(open[t.kind])
	for i, f := range t.fields {
		if b.Len() > jsontext.ClipBytes {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if t.kind == kindStruct {
			b.WriteString(f.label())
		}
		f.typ.print(b)
	}
	b.WriteByte('>')
}
