package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata/schema"
)

func mustSpec(t testing.TB, raw string) *schema.Spec {
	t.Helper()
	p, err := schema.ParseSpec([]byte(raw))
	if err != nil {
		t.Fatalf("schema.ParseSpec(%s): %v", raw, err)
	}
	return p
}

// columns is a schema with columns of many types. Their ids are in order.
const columns = `{"type":"struct","fields":[
 {"id":1,"name":"id","required":true,"type":"long"},
 {"id":2,"name":"name","required":false,"type":"string"},
 {"id":3,"name":"ts","required":false,"type":"timestamptz"},
 {"id":4,"name":"day","required":false,"type":"date"},
 {"id":5,"name":"flag","required":false,"type":"boolean"},
 {"id":6,"name":"v","required":false,"type":"variant"},
 {"id":7,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":8,"name":"x","required":false,"type":"int"}]}},
 {"id":9,"name":"l","required":false,"type":{"type":"list","element-id":10,"element-required":false,"element":
   {"type":"struct","fields":[{"id":11,"name":"y","required":false,"type":"int"}]}}},
 {"id":12,"name":"g","required":false,"type":"geometry"},
 {"id":13,"name":"d","required":false,"type":"double"},
 {"id":14,"name":"t","required":false,"type":"time"},
 {"id":15,"name":"ns","required":false,"type":"timestamp_ns"},
 {"id":16,"name":"f","required":false,"type":"fixed[4]"},
 {"id":17,"name":"u","required":false,"type":"unknown"}]}`

// partitioned returns a spec with one field.
func partitioned(name, transform string, source int) string {
	return fmt.Sprintf(`{"spec-id":0,"fields":[{"name":%q,"transform":%q,"source-id":%d,"field-id":1000}]}`, name, transform, source)
}

func TestParseSpec(t *testing.T) {
	t.Parallel()
	p := mustSpec(t, `{"spec-id":3,"fields":[{"name":"a","transform":"identity","source-id":1,"field-id":1007},{"name":"b","transform":"bucket[16]","source-id":2,"field-id":1005}]}`)
	if p.ID != 3 || p.LastFieldID != 1007 || p.Len() != 2 {
		t.Errorf("id %d, last field id %d, %d fields", p.ID, p.LastFieldID, p.Len())
	}
	if p := mustSpec(t, `{"fields":[{"name":"p","transform":"void","field-id":1000}]}`); p.CheckBound(mustSchema(t, columns)) != nil {
		t.Error("a void transform without source, as iceberg-go writes it, is refused")
	}
	if p := mustSpec(t, `{"fields":[]}`); p.ID != 0 || p.LastFieldID != 999 {
		t.Errorf("id %d, last field id %d", p.ID, p.LastFieldID)
	}
	if p := mustSpec(t, `{"fields":[{"name":"a","transform":"identity","source-id":1},{"name":"b","transform":"void","source-id":1}]}`); p.LastFieldID != 1001 {
		t.Errorf("last field id %d", p.LastFieldID)
	}
}

func TestParseSpecRefuses(t *testing.T) {
	t.Parallel()
	field := func(members string) string { return `{"fields":[{` + members + `}]}` }
	tests := []struct{ name, raw, text string }{
		{"empty", ``, "Cannot parse JSON"},
		{"array", `[]`, "Cannot parse spec from non-object: []"},
		{"no fields", `{"spec-id":1}`, "Cannot parse missing field: fields"},
		{"fields object", `{"fields":{}}`, "Cannot parse partition spec fields, not an array: {}"},
		{"spec-id text", `{"spec-id":"1","fields":[]}`, `Cannot parse to an integer value: spec-id: "1"`},
		{"null field", `{"fields":[null]}`, "Cannot parse partition field from non-object: null"},
		{"no name", field(`"transform":"identity","source-id":1`), "Cannot parse missing string: name"},
		{"no transform", field(`"name":"a","source-id":1`), "Cannot parse missing string: transform"},
		{"no source-id", field(`"name":"a","transform":"identity"`), "Cannot parse missing int: source-id"},
		{"source-id null", field(`"name":"a","transform":"identity","source-id":null`), "Cannot parse to an integer value: source-id: null"},
		{"source-ids of one", field(`"name":"a","transform":"identity","source-ids":[1]`), "Cannot parse missing int: source-id"},
		{"source-ids empty", field(`"name":"a","transform":"x","source-ids":[]`), "Cannot parse empty list: source-ids"},
		{"source-ids text", field(`"name":"a","transform":"x","source-ids":["1"]`), "Cannot parse integer from non-int value in source-ids"},
		{"source-ids number", field(`"name":"a","transform":"x","source-ids":1`), "Cannot parse JSON array from non-array value: source-ids"},
		{"source-id and other source-ids", field(`"name":"a","transform":"x","source-id":2,"source-ids":[1,2]`), "Cannot parse source-id 2 together with source-ids that begin with 1"},
		{"field-id null", field(`"name":"a","transform":"identity","source-id":1,"field-id":null`), "Cannot parse to an integer value: field-id: null"},
		{"some field ids", `{"fields":[{"name":"a","transform":"identity","source-id":1,"field-id":1000},{"name":"b","transform":"identity","source-id":2}]}`, "Cannot parse spec with missing field IDs: 1 missing of 2 fields."},
		{"empty transform", field(`"name":"a","transform":"","source-id":1`), "Invalid transform: "},
		{"no buckets", field(`"name":"a","transform":"bucket[0]","source-id":1`), "Invalid transform: bucket[0]"},
		{"too many buckets", field(`"name":"a","transform":"Bucket[2147483648]","source-id":1`), "Invalid transform: Bucket[2147483648]"},
		{"no width", field(`"name":"a","transform":"truncate[0]","source-id":1`), "Invalid transform: truncate[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := schema.ParseSpec([]byte(tt.raw))
			if p != nil || moorage.KindOf(err) != moorage.KindBadRequest || !strings.Contains(moorage.MessageOf(err), tt.text) {
				t.Errorf("schema.ParseSpec(%s) = %v, %v; want %q", tt.raw, p, err, tt.text)
			}
		})
	}
}

func TestSpecCheck(t *testing.T) {
	t.Parallel()
	two := func(first, second string) string { return `{"fields":[{` + first + `},{` + second + `}]}` }
	tests := []struct {
		name, raw string
		version   int
		text      string // "" if the spec is valid
	}{
		{"identity", partitioned("id", "identity", 1), 2, ""},
		{"identity of another name", partitioned("p", "identity", 1), 2, ""},
		{"bucket", partitioned("b", "bucket[16]", 2), 2, ""},
		{"bucket of fixed", partitioned("b", "bucket[16]", 16), 2, ""},
		{"truncate", partitioned("b", "truncate[4]", 2), 2, ""},
		{"day", partitioned("ts_day", "day", 3), 2, ""},
		{"hour of nanoseconds", partitioned("h", "hour", 15), 3, ""},
		{"nested", partitioned("s.x", "identity", 8), 2, ""},
		{"unknown type", partitioned("p", "identity", 17), 3, ""},
		{"unknown transform", partitioned("z", "zorder[3]", 1), 2, ""},
		{"several sources", `{"fields":[{"name":"z","transform":"zorder","source-ids":[1,2],"field-id":1000}]}`, 3, ""},
		{"void", partitioned("v", "void", 6), 2, ""},
		{"void without source", partitioned("v", "void", 99), 2, ""},
		{"void of a dropped column in its name", partitioned("id", "void", 99), 2, ""},
		{"not partitioned", `{"fields":[]}`, 1, ""},

		{"missing source", partitioned("p", "identity", 99), 2, "Cannot find source column for partition field: 1000: p: identity(99)"},
		{"missing of several sources", `{"fields":[{"name":"z","transform":"zorder","source-ids":[1,99],"field-id":1000}]}`, 3, "Cannot find source column for partition field: 1000: z: zorder(1, 99)"},
		{"several sources of one", `{"fields":[{"name":"z","transform":"day","source-ids":[3,4],"field-id":1000}]}`, 3, "Invalid number of source columns for transform day: 2"},
		{"struct source", partitioned("p", "identity", 7), 2, "Cannot partition by non-primitive source field: struct<8: x: optional int>"},
		{"variant source", partitioned("p", "identity", 6), 3, "Cannot partition by non-primitive source field: variant"},
		{"geometry source", partitioned("p", "identity", 12), 3, "Invalid source type geometry(OGC:CRS84) for transform: identity"},
		{"day of long", partitioned("p", "day", 1), 2, "Invalid source type long for transform: day"},
		{"hour of date", partitioned("p", "hour", 4), 2, "Invalid source type date for transform: hour"},
		{"year of time", partitioned("p", "year", 14), 2, "Invalid source type time for transform: year"},
		{"bucket of boolean", partitioned("p", "bucket[2]", 5), 2, "Invalid source type boolean for transform: bucket[2]"},
		{"bucket of double", partitioned("p", "bucket[2]", 13), 2, "Invalid source type double for transform: bucket[2]"},
		{"truncate of fixed", partitioned("p", "truncate[2]", 16), 2, "Invalid source type fixed[4] for transform: truncate[2]"},
		{"bucket of unknown", partitioned("p", "bucket[2]", 17), 3, "Invalid source type unknown for transform: bucket[2]"},
		{"source in list", partitioned("p", "identity", 11), 2, "Invalid partition field parent: list<struct<11: y: optional int>>"},
		{"empty name", partitioned("", "identity", 1), 2, "Cannot use empty partition name: "},
		{"name twice", two(`"name":"p","transform":"identity","source-id":1`, `"name":"p","transform":"identity","source-id":2`), 2, "Cannot use partition name more than once: p"},
		{"name of another column", partitioned("name", "identity", 1), 2, "Cannot create identity partition sourced from different field in schema: name"},
		{"name of another nested column", partitioned("l.y", "identity", 1), 2, "Cannot create identity partition sourced from different field in schema: l.y"},
		{"field id twice", two(`"name":"p","transform":"identity","source-id":1,"field-id":1000`, `"name":"q","transform":"identity","source-id":2,"field-id":1000`), 2, "Invalid partition field id: 1000: q: identity(2)"},
		{"reserved field id", `{"fields":[{"name":"p","transform":"identity","source-id":1,"field-id":2147483448}]}`, 2, "Invalid partition field id: 2147483448: p: identity(1)"},
		{"redundant", two(`"name":"p","transform":"bucket[4]","source-id":1,"field-id":1000`, `"name":"q","transform":"bucket[4]","source-id":1,"field-id":1001`), 2, "Cannot add redundant partition: 1000: p: bucket[4](1) conflicts with 1001: q: bucket[4](1)"},
		{"void twice", two(`"name":"p","transform":"void","source-id":1,"field-id":1000`, `"name":"q","transform":"void","source-id":1,"field-id":1001`), 2, ""},
		{"source-id together with source-ids", `{"fields":[{"name":"z","transform":"zorder","source-id":1,"source-ids":[1,2],"field-id":1000}]}`, 3, "Invalid source-id together with source-ids: 1000: z: zorder(1, 2)"},
		{"source id 0", partitioned("p", "void", 0), 2, "Invalid source id: 1000: p: void(0)"},
		{"gap in v1", `{"fields":[{"name":"p","transform":"identity","source-id":1,"field-id":1001}]}`, 1, "Spec does not use sequential IDs that are required in v1: 1001: p: identity(1)"},
		{"gap in v2", `{"fields":[{"name":"p","transform":"identity","source-id":1,"field-id":1001}]}`, 2, ""},
	}
	s := mustSchema(t, columns)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := mustSpec(t, tt.raw).Check(s, tt.version)
			kind := moorage.KindOf(err)
			if (err == nil) != (tt.text == "") || moorage.MessageOf(err) != tt.text ||
				err != nil && kind != moorage.KindValidation && kind != moorage.KindIllegalArgument {
				t.Errorf("check of %s = %v %v, want %q", tt.raw, kind, err, tt.text)
			}
		})
	}
}

func TestSpecSameAs(t *testing.T) {
	t.Parallel()
	base := partitioned("p", "bucket[4]", 1)
	for other, want := range map[string]bool{
		base:                                  true,
		partitioned("p", "BUCKET[4]", 1):      true,
		strings.Replace(base, "1000", "5", 1): true,
		strings.Replace(base, `:0`, `:8`, 1):  true,
		partitioned("q", "bucket[4]", 1):      false,
		partitioned("p", "bucket[5]", 1):      false,
		partitioned("p", "bucket[4]", 2):      false,
		`{"fields":[]}`:                       false,
		partitioned("p", "zorder", 1):         false,
		strings.Replace(base, "]}", ",{\"name\":\"x\",\"transform\":\"void\",\"source-id\":1,\"field-id\":1001}]}", 1): false,
	} {
		if got := mustSpec(t, base).SameAs(mustSpec(t, other)); got != want {
			t.Errorf("%s same as %s = %v, want %v", base, other, got, want)
		}
	}
	if mustSpec(t, partitioned("p", "ZOrder", 1)).SameAs(mustSpec(t, partitioned("p", "zorder", 1))) {
		t.Error("unknown transforms are compared without letter case")
	}
}

func TestSpecAssignFieldIDs(t *testing.T) {
	t.Parallel()
	const raw = `{"spec-id":0, "fields":[{"name":"a","transform":"identity","source-id":1 , "x":1},{"name":"b","transform":"Void","source-id":2}]}`
	tests := []struct {
		last, first int
	}{{0, 1000}, {999, 1000}, {1000, 1001}, {1006, 1007}}
	for _, tt := range tests {
		p := mustSpec(t, raw)
		p.AssignFieldIDs(tt.last)
		want := fmt.Sprintf(`{"spec-id":5, "fields":[{"field-id":%d,"name":"a","transform":"identity","source-id":1 , "x":1},{"field-id":%d,"name":"b","transform":"void","source-id":2}]}`, tt.first, tt.first+1)
		if got := string(p.WithID(5)); got != want || p.LastFieldID != tt.first+1 {
			t.Errorf("assignFieldIDs(%d): last %d\n got %s\nwant %s", tt.last, p.LastFieldID, got, want)
		}
		p.AssignFieldIDs(5000)
		if got := string(p.WithID(5)); got != want {
			t.Errorf("assigned twice: %s", got)
		}
	}
	p := mustSpec(t, partitioned("p", "identity", 1))
	p.AssignFieldIDs(2000)
	if got := string(p.WithID(0)); got != partitioned("p", "identity", 1) {
		t.Errorf("ids that were sent changed: %s", got)
	}
}
