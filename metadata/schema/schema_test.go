package schema_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

func mustSchema(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(raw))
	if err != nil {
		t.Fatalf("schema.Parse(%s): %v", raw, err)
	}
	return s
}

// column returns a schema with one field of the given type.
func column(typ string) string {
	return `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":` + typ + `}]}`
}

// lists returns a list of lists … of int, nested to the given depth.
func lists(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, `{"type":"list","element-id":%d,"element-required":true,"element":`, i+2)
	}
	return b.String() + `"int"` + strings.Repeat(`}`, depth)
}

// nested has every kind of type in every kind of place.
const nested = `{"type":"struct","schema-id":4,"identifier-field-ids":[1],"fields":[
 {"id":1,"name":"id","required":true,"type":"long","doc":"the \"key\""},
 {"id":2,"name":"a","required":false,"type":{"type":"struct","fields":[
   {"id":21,"name":"x","required":true,"type":"int"},{"id":22,"name":"y","required":false,"type":"string"}]}},
 {"id":3,"name":"l","required":false,"type":{"type":"list","element-id":31,"element-required":true,"element":
   {"type":"struct","fields":[{"id":32,"name":"z","required":true,"type":"double"}]}}},
 {"id":4,"name":"m","required":false,"type":{"type":"map","key-id":41,"key":"string","value-id":42,"value-required":false,"value":"decimal(9,2)"}},
 {"id":5,"name":"ts","required":false,"type":"timestamptz"}]}`

func TestParseSchema(t *testing.T) {
	t.Parallel()
	s := mustSchema(t, nested)
	if s.ID != 4 || s.HighestID != 42 || string(s.Raw) != nested {
		t.Errorf("id %d, highest %d", s.ID, s.HighestID)
	}
	names := s.ColumnNames()
	for name, id := range map[string]int{
		"id": 1, "a": 2, "a.x": 21, "a.y": 22, "l": 3, "l.element": 31, "l.element.z": 32, "l.z": 32,
		"m": 4, "m.key": 41, "m.value": 42, "ts": 5,
	} {
		if found, _ := names.Find(name); found != id {
			t.Errorf("Find(%q) = %d, want id %d", name, found, id)
		}
	}
	for _, name := range []string{"", "z", "a.", ".a", "l.element.element", "m.value.z"} {
		if found, ok := names.Find(name); ok {
			t.Errorf("Find(%q) = %d, want none", name, found)
		}
	}
	mustSchema(t, column(lists(schema.TypeDepthMax-1)))
	if empty := mustSchema(t, `{"type":"struct","fields":[]}`); empty.HighestID != 0 {
		t.Errorf("highest id without fields is %d", empty.HighestID)
	}
}

func TestParseSchemaRefuses(t *testing.T) {
	t.Parallel()
	field := func(members string) string { return `{"type":"struct","fields":[{` + members + `}]}` }
	const rest = `"required":false,"type":"int"`
	tests := []struct {
		name, raw string
		kind      moorage.Kind
		text      string
	}{
		{"empty", ``, moorage.KindBadRequest, "Cannot parse JSON"},
		{"cut", nested[:200], moorage.KindBadRequest, "Cannot parse JSON"},
		{"two values", `{} {}`, moorage.KindBadRequest, "Cannot parse JSON"},
		{"null", `null`, moorage.KindBadRequest, "Cannot parse schema from non-object: null"},
		{"array", `[]`, moorage.KindBadRequest, "Cannot parse schema from non-object"},
		{"no type", `{"fields":[]}`, moorage.KindBadRequest, "Cannot parse type from json"},
		{"list", `{"type":"list","fields":[]}`, moorage.KindBadRequest, "Cannot parse type from json"},
		{"no fields", `{"type":"struct"}`, moorage.KindBadRequest, "Cannot parse missing field: fields"},
		{"null fields", `{"type":"struct","fields":null}`, moorage.KindBadRequest, "Cannot parse missing field: fields"},
		{"fields object", `{"type":"struct","fields":{}}`, moorage.KindBadRequest, "Cannot parse struct fields from non-array: {}"},
		{"field string", `{"type":"struct","fields":["a"]}`, moorage.KindBadRequest, `Cannot parse struct field from non-object: "a"`},
		{"schema-id text", `{"type":"struct","schema-id":"1","fields":[]}`, moorage.KindBadRequest, `Cannot parse to an integer value: schema-id: "1"`},
		{"no id", field(`"name":"a",` + rest), moorage.KindBadRequest, "Cannot parse missing int: id"},
		{"id fraction", field(`"id":1.0,"name":"a",` + rest), moorage.KindBadRequest, "Cannot parse to an integer value: id: 1.0"},
		{"id too long", field(`"id":2147483648,"name":"a",` + rest), moorage.KindBadRequest, "Cannot parse to an integer value: id: 2147483648"},
		{"no name", field(`"id":1,` + rest), moorage.KindBadRequest, "Cannot parse missing string: name"},
		{"null name", field(`"id":1,"name":null,` + rest), moorage.KindBadRequest, "Cannot parse to a string value: name: null"},
		{"no required", field(`"id":1,"name":"a","type":"int"`), moorage.KindBadRequest, "Cannot parse missing boolean: required"},
		{"required text", field(`"id":1,"name":"a","required":"true","type":"int"`), moorage.KindBadRequest, `Cannot parse to a boolean value: required: "true"`},
		{"no field type", field(`"id":1,"name":"a","required":true`), moorage.KindBadRequest, "Cannot parse missing field: type"},
		{"doc number", field(`"id":1,"name":"a","doc":1,` + rest), moorage.KindBadRequest, "Cannot parse to a string value: doc: 1"},
		{"duplicate key", field(`"id":1,"id":2,"name":"a",` + rest), moorage.KindBadRequest, "duplicate key"},
		{"type number", column(`1`), moorage.KindBadRequest, "Cannot parse type from json: 1"},
		{"type object", column(`{"type":"set"}`), moorage.KindBadRequest, `Cannot parse type from json: {"type":"set"}`},
		{"no element-id", column(`{"type":"list","element":"int","element-required":true}`), moorage.KindBadRequest, "Cannot parse missing int: element-id"},
		{"no element", column(`{"type":"list","element-id":2,"element-required":true}`), moorage.KindBadRequest, "Cannot parse missing field: element"},
		{"no element-required", column(`{"type":"list","element-id":2,"element":"int"}`), moorage.KindBadRequest, "Cannot parse missing boolean: element-required"},
		{"no key-id", column(`{"type":"map","key":"int","value-id":3,"value":"int","value-required":true}`), moorage.KindBadRequest, "Cannot parse missing int: key-id"},
		{"no key", column(`{"type":"map","key-id":2,"value-id":3,"value":"int","value-required":true}`), moorage.KindBadRequest, "Cannot parse missing field: key"},
		{"no value-id", column(`{"type":"map","key-id":2,"key":"int","value":"int","value-required":true}`), moorage.KindBadRequest, "Cannot parse missing int: value-id"},
		{"no value", column(`{"type":"map","key-id":2,"key":"int","value-id":3,"value-required":true}`), moorage.KindBadRequest, "Cannot parse missing field: value"},
		{"no value-required", column(`{"type":"map","key-id":2,"key":"int","value-id":3,"value":"int"}`), moorage.KindBadRequest, "Cannot parse missing boolean: value-required"},
		{"identifiers text", `{"type":"struct","fields":[],"identifier-field-ids":"1"}`, moorage.KindBadRequest, "Cannot parse JSON array from non-array value: identifier-field-ids"},
		{"identifier text", `{"type":"struct","fields":[],"identifier-field-ids":["1"]}`, moorage.KindBadRequest, "Cannot parse integer from non-int value in identifier-field-ids"},
		{"duplicate id", `{"type":"struct","fields":[{"id":1,"name":"a",` + rest + `},{"id":1,"name":"b",` + rest + `}]}`, moorage.KindValidation, "Invalid schema: multiple fields with id 1: a and b"},
		{"duplicate name", `{"type":"struct","fields":[{"id":1,"name":"a",` + rest + `},{"id":2,"name":"a",` + rest + `}]}`, moorage.KindValidation, "Invalid schema: multiple fields for name a: 1 and 2"},
		{"name across levels", `{"type":"struct","fields":[{"id":1,"name":"a.b",` + rest + `},{"id":2,"name":"a","required":true,"type":{"type":"struct","fields":[{"id":3,"name":"b",` + rest + `}]}}]}`, moorage.KindValidation, "Invalid schema: multiple fields for name a.b: 1 and 3"},
		{"too deep", column(lists(schema.TypeDepthMax)), moorage.KindBadRequest, "Cannot parse schema: types nest deeper than 100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Parse([]byte(tt.raw))
			if s != nil || moorage.KindOf(err) != tt.kind || !strings.Contains(moorage.MessageOf(err), tt.text) {
				t.Errorf("schema.Parse(%s) = %v, %v %v; want %v %q", jsontext.Clip(tt.raw), s, moorage.KindOf(err), err, tt.kind, tt.text)
			}
		})
	}
}

func TestParsePrimitive(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, spelling string }{
		{"boolean", "boolean", "boolean"}, {"int", "int", "int"}, {"long", "long", "long"},
		{"float", "float", "float"}, {"double", "double", "double"}, {"date", "date", "date"},
		{"time", "time", "time"}, {"timestamp", "timestamp", "timestamp"},
		{"timestamptz", "timestamptz", "timestamptz"}, {"timestamp_ns", "timestamp_ns", "timestamp_ns"},
		{"timestamptz_ns", "timestamptz_ns", "timestamptz_ns"}, {"string", "string", "string"},
		{"uuid", "uuid", "uuid"}, {"binary", "binary", "binary"}, {"unknown", "unknown", "unknown"},
		{"variant", "variant", "variant"}, {"LONG", "long", "long"},
		{"fixed[16]", "fixed[16]", "fixed[16]"}, {"fixed[ 16 ]", "fixed[16]", "fixed[16]"},
		{"decimal(9,2)", "decimal(9, 2)", "decimal(9,2)"}, {"decimal(9, 2)", "decimal(9, 2)", "decimal(9, 2)"},
		{"Decimal( 38 , 0 )", "decimal(38, 0)", "decimal(38,0)"},
		{"geometry", "geometry(OGC:CRS84)", "geometry"},
		{"geometry(srid:3857)", "geometry(srid:3857)", "geometry(srid:3857)"},
		{"GEOMETRY( EPSG:4326 )", "geometry(EPSG:4326)", "geometry( EPSG:4326 )"},
		{"geography", "geography(OGC:CRS84, spherical)", "geography"},
		{"geography(EPSG:4326)", "geography(EPSG:4326, spherical)", "geography(EPSG:4326)"},
		{"geography(EPSG:4326, Karney)", "geography(EPSG:4326, karney)", "geography(EPSG:4326, Karney)"},
	}
	for _, tt := range tests {
		_, text, spelling, err := schema.ParsePrimitive(tt.name)
		if err != nil || text != tt.text || spelling != tt.spelling {
			t.Errorf("ParsePrimitive(%q) = %q, %q, %v; want %q, %q", tt.name, text, spelling, err, tt.text, tt.spelling)
		}
	}
	for _, name := range []string{
		"", "integer", "bigint", "decimal", "decimal()", "decimal(9)", "decimal(39,0)", "decimal(0,0)",
		"decimal(2,3)", "decimal(9,-1)", "decimal(99999999999999999999,0)", "fixed", "fixed[]", "fixed[-1]",
		"fixed[99999999999]", "geometry()", "geography()", "geography(,spherical)", "geography(a, flat)",
		"geography(a,)", "timestamp(6)", " int",
	} {
		if _, got, _, err := schema.ParsePrimitive(name); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("ParsePrimitive(%q) = %q, %v, want a bad request", name, got, err)
		}
	}
}

func TestSchemaSameAs(t *testing.T) {
	t.Parallel()
	with := func(old, changed string) string { return strings.ReplaceAll(nested, old, changed) }
	defaults := func(value string) string {
		return `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"double","initial-default":` + value + `}]}`
	}
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"itself", nested, nested, true},
		{"other id", nested, with(`"schema-id":4`, `"schema-id":9`), true},
		{"other spaces and spelling", nested, with(`"type":"decimal(9,2)"`, `"type": "DECIMAL(9, 2)"`), true},
		{"unknown members", nested, with(`"schema-id":4`, `"schema-id":4,"x":1`), true},
		{"name", nested, with(`"y"`, `"w"`), false},
		{"field id", nested, with(`"id":22`, `"id":23`), false},
		{"element id", nested, with(`"element-id":31`, `"element-id":33`), false},
		{"required", nested, with(`"value-required":false`, `"value-required":true`), false},
		{"doc", nested, with(`the`, `a`), false},
		{"type", nested, with(`decimal(9,2)`, `decimal(10,2)`), false},
		{"identifiers", nested, with(`[1]`, `[]`), false},
		{"identifiers twice", nested, with(`[1]`, `[1,1]`), true},
		{"order", column(`"int"`), `{"type":"struct","fields":[]}`, false},
		{"crs case", column(`"geometry(OGC:crs84)"`), column(`"geometry"`), true},
		{"crs", column(`"geometry(EPSG:4326)"`), column(`"geometry"`), false},
		{"algorithm", column(`"geography(OGC:CRS84, karney)"`), column(`"geography"`), false},
		{"equal defaults", defaults(`1.50`), defaults(`1.5`), true},
		{"other default", defaults(`1.5`), defaults(`1.25`), false},
		{"null default", defaults(`null`), column(`"double"`), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := mustSchema(t, tt.a), mustSchema(t, tt.b)
			if a.SameAs(b) != tt.want || b.SameAs(a) != tt.want {
				t.Errorf("sameAs = %v, %v; want %v\n%s\n%s", a.SameAs(b), b.SameAs(a), tt.want, tt.a, tt.b)
			}
		})
	}
}

func TestSchemaWithID(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"replaced", `{ "schema-id" : 12 , "type":"struct","fields":[] , "x":1.50}`, `{ "schema-id" : 7 , "type":"struct","fields":[] , "x":1.50}`},
		{"added", `{"type":"struct","fields":[]}`, `{"schema-id":7,"type":"struct","fields":[]}`},
		{"null", `{"type":"struct","schema-id":null,"fields":[]}`, `{"type":"struct","schema-id":7,"fields":[]}`},
		{"type spelling", column(`"LONG"`), strings.Replace(column(`"long"`), `{`, `{"schema-id":7,`, 1)},
		{
			"null defaults go",
			`{"type":"struct","fields":[{"initial-default":null , "write-default" : null,"id":1,"name":"c","required":false,"type":"int"}]}`,
			`{"schema-id":7,"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"}]}`,
		},
		{
			"null defaults go from the end",
			`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int","initial-default":null , "write-default" : null }]}`,
			`{"schema-id":7,"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int" }]}`,
		},
		{
			"values stay",
			`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"double","initial-default":0.0,"write-default":1e3,"x":9223372036854775807}]}`,
			`{"schema-id":7,"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"double","initial-default":0.0,"write-default":1e3,"x":9223372036854775807}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mustSchema(t, tt.raw)
			got := s.WithID(7)
			if string(got) != tt.want {
				t.Errorf("withID(7)\n got %s\nwant %s", got, tt.want)
			}
			again := mustSchema(t, string(got))
			if again.ID != 7 || !again.SameAs(s) || !bytes.Equal(again.WithID(7), got) {
				t.Errorf("%s parses to another schema", got)
			}
		})
	}
}

func TestSchemaCheck(t *testing.T) {
	t.Parallel()
	typed := func(typ string) string { return column(fmt.Sprintf("%q", typ)) }
	const (
		id    = `{"id":1,"name":"id","required":true,"type":"long"}`
		inner = `{"type":"struct","fields":[{"id":9,"name":"x","required":true,"type":"int"}]}`
	)
	identified := func(ids, fields string) string {
		return `{"type":"struct","identifier-field-ids":[` + ids + `],"fields":[` + fields + `]}`
	}
	field := func(required, typ string) string {
		return `{"id":2,"name":"f","required":` + required + `,"type":` + typ + `}`
	}
	tests := []struct {
		name, raw string
		version   int
		text      string // "" if the schema is valid
	}{
		{"nested", nested, 1, ""},
		{"variant", typed("variant"), 3, ""},
		{"variant v2", typed("variant"), 2, "Invalid schema for v2:\n- Invalid type for c: variant is not supported until v3"},
		{"unknown v2", typed("unknown"), 2, "Invalid schema for v2:\n- Invalid type for c: unknown is not supported until v3"},
		{"nanoseconds v1", typed("timestamp_ns"), 1, "Invalid schema for v1:\n- Invalid type for c: timestamp_ns is not supported until v3"},
		{"nanoseconds with zone v2", typed("timestamptz_ns"), 2, "Invalid type for c: timestamptz_ns is not supported until v3"},
		{"geometry v2", typed("geometry"), 2, "Invalid type for c: geometry(OGC:CRS84) is not supported until v3"},
		{"geography v2", typed("geography"), 2, "Invalid type for c: geography(OGC:CRS84, spherical) is not supported until v3"},
		{"nested variant v2", column(`{"type":"list","element-id":2,"element-required":true,"element":"variant"}`), 2, "Invalid type for c.element: variant is not supported until v3"},
		{"initial default v2", `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int","initial-default":34}]}`, 2, "Invalid schema for v2:\n- Invalid initial default for c: non-null default (34) is not supported until v3"},
		{"initial default v3", `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int","initial-default":34}]}`, 3, ""},
		{"write default v1", `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int","write-default":34}]}`, 1, ""},
		{"null default v2", `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int","initial-default":null}]}`, 2, ""},
		{"two problems", `{"type":"struct","fields":[{"id":2,"name":"b","required":false,"type":"variant"},{"id":1,"name":"a","required":false,"type":"geometry"}]}`, 2, "Invalid schema for v2:\n- Invalid type for a: geometry(OGC:CRS84) is not supported until v3\n- Invalid type for b: variant is not supported until v3"},
		{"empty name", `{"type":"struct","fields":[{"id":1,"name":"","required":false,"type":"int"}]}`, 2, "Invalid column name: (empty)"},
		{"reserved id", `{"type":"struct","fields":[{"id":2147483448,"name":"c","required":false,"type":"int"}]}`, 2, "Invalid field id for c: 2147483448 is reserved (above 2147483447)"},
		{"highest id", `{"type":"struct","fields":[{"id":2147483447,"name":"c","required":false,"type":"int"}]}`, 2, ""},
		{"id 0", `{"type":"struct","fields":[{"id":0,"name":"c","required":false,"type":"int"}]}`, 2, ""},
		{"required unknown", `{"type":"struct","fields":[{"id":1,"name":"c","required":true,"type":"unknown"}]}`, 3, "Cannot create required field with unknown type: c"},
		{"identifier", identified("1", id), 2, ""},
		{"identifier in struct", identified("9", field("true", inner)), 2, ""},
		{"identifier missing", identified("7", id), 2, "Cannot add fieldId 7 as an identifier field: field does not exist"},
		{"identifier struct", identified("2", field("true", inner)), 2, "Cannot add field f as an identifier field: not a primitive type field"},
		{"identifier variant", identified("2", field("true", `"variant"`)), 3, "Cannot add field f as an identifier field: not a primitive type field"},
		{"identifier optional", identified("2", field("false", `"int"`)), 2, "Cannot add field f as an identifier field: not a required field"},
		{"identifier float", identified("2", field("true", `"float"`)), 2, "Cannot add field f as an identifier field: must not be float or double field"},
		{"identifier double", identified("2", field("true", `"double"`)), 2, "Cannot add field f as an identifier field: must not be float or double field"},
		{"identifier in optional struct", identified("9", field("false", inner)), 2, "Cannot add field x as an identifier field: must not be nested in an optional field 2: f: optional struct<9: x: required int>"},
		{"identifier in list", identified("9", field("true", `{"type":"list","element-id":3,"element-required":true,"element":`+inner+`}`)), 2, "Cannot add field x as an identifier field: must not be nested in 2: f: required list<struct<9: x: required int>>"},
		{"identifier map key", identified("3", field("true", `{"type":"map","key-id":3,"key":"int","value-id":4,"value-required":true,"value":"int"}`)), 2, "Cannot add field key as an identifier field: must not be nested in 2: f: required map<int, int>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := mustSchema(t, tt.raw).Check(tt.version)
			if tt.text == "" {
				if err != nil {
					t.Errorf("check(%d) of %s = %v", tt.version, tt.raw, err)
				}
				return
			}
			if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.HasSuffix(moorage.MessageOf(err), tt.text) {
				t.Errorf("check(%d) of %s\n got %v\nwant %s", tt.version, tt.raw, err, tt.text)
			}
		})
	}
}

// A small request must not cause a large message or take long, however deeply it nests.
func TestSchemaMessagesAreBounded(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 10_000)
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprintf(`{"id":%d,"name":"%s%d","required":false,"type":"variant"}`, i+2, name[:9000], i))
	}
	raw := fmt.Sprintf(`{"type":"struct","fields":[{"id":1,"name":%q,"required":false,"type":{"type":"struct","fields":[%s]}}]}`,
		name, strings.Join(fields, ","))
	err := mustSchema(t, raw).Check(1)
	if n := len(moorage.MessageOf(err)); n == 0 || n > 2*schema.ProblemsMax*jsontext.ClipBytes {
		t.Errorf("message has %d bytes", n)
	}
}

// A request must not take a disproportionate amount of memory, whatever its form. The test is not
// parallel, because it measures allocations.
func TestParseSchemaIsLinear(t *testing.T) {
	const size, factorMax = 1 << 20, 30
	field := func(id int, name, typ string) string {
		return fmt.Sprintf(`{"id":%d,"name":%q,"required":false,"type":%s}`, id, name, typ)
	}
	deep := field(1, strings.Repeat("d", size), `"int"`)
	var children []string
	for i := range size / 64 {
		children = append(children, field(i+200, fmt.Sprint(i), `"int"`))
	}
	wide := field(1, "n", `{"type":"struct","fields":[`+strings.Join(children, ",")+`]}`)
	for depth := range schema.TypeDepthMax - 2 {
		deep = field(depth+2, "n", `{"type":"struct","fields":[`+deep+`]}`)
		wide = field(depth+2, "n", `{"type":"struct","fields":[`+wide+`]}`)
	}
	for name, fields := range map[string]string{
		"dots":                     field(1, strings.Repeat(".", size), `"int"`),
		"deep":                     deep,
		"wide":                     wide,
		"long name, many children": field(1, strings.Repeat("n", size), `{"type":"struct","fields":[`+strings.Join(children, ",")+`]}`),
		"many members":             `{"id":1,"name":"a","required":true,"type":"int"` + manyMembers(size/16) + `}`,
	} {
		raw := []byte(`{"type":"struct","fields":[` + fields + `]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := schema.Parse(raw)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if factor := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(raw)); factor > factorMax {
			t.Errorf("%s: %d bytes allocate %.0f times as much", name, len(raw), factor)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i)
	}
	return b.String()
}

func BenchmarkParseSchema(b *testing.B) {
	var fields []string
	for i := range 500 {
		fields = append(fields, fmt.Sprintf(`{"id":%d,"name":"column_%d","required":false,"type":"string","doc":"what it holds"}`, i+1, i))
	}
	raw := []byte(`{"type":"struct","schema-id":0,"fields":[` + strings.Join(fields, ",") + `]}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
