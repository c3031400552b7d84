package rows_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	oracle "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"moorage"
	"moorage/catalog/rows"
	"moorage/storage"
)

// person is a row of most tests.
type person struct {
	ID   int64   `parquet:"id,id(1)"`
	Name *string `parquet:"name,optional,id(2)"`
}

const personFields = `{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"name","required":false,"type":"string"}`

func people(from, to int64) (all []person) {
	for id := from; id < to; id++ {
		name := fmt.Sprintf("n%d", id)
		all = append(all, person{id, &name})
	}
	return all
}

// Rows are returned in the order of the table's files. Deleted files are left out.
func TestPlainTable(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	l.data(1, parquetOf(t, append(people(1, 3), person{3, nil})...), 3)
	l.manifest(false, 2, entry{status: 2, path: location + "/gone", rows: 5, size: 500})
	l.data(2, parquetOf(t, people(4, 5)...), 1)
	l.wantRows(`[1,"n1"] [2,"n2"] [3,null] [4,"n4"]`)
	l.wantRows(`["n1"] ["n2"] [null] ["n4"]`, "name")
	l.wantRows(`["n1",1] ["n2",2] [null,3] ["n4",4]`, "name", "id")
	got, result, err := l.read(2)
	if err != nil || got != `[1,"n1"] [2,"n2"]` || result.IsComplete || result.Stopped != "" || result.SnapshotID != 7 {
		t.Errorf("two rows: %s, %+v, %v", got, result, err)
	}
	if want := (rows.Column{ID: 2, Name: "name", Type: "string"}); len(result.Columns) != 2 || result.Columns[1] != want || result.Width != 2 {
		t.Errorf("columns %v of %d", result.Columns, result.Width)
	}
	for _, asked := range []rows.Request{{}, {Limit: 201}, {Limit: 1, Columns: []string{"x"}}, {Limit: 1, Columns: []string{"id", "id"}}} {
		if _, err := rows.New().Read(t.Context(), l.table(), asked); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("%+v: %v", asked, err)
		}
	}
}

// A table without a snapshot has no rows.
func TestEmptyTable(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	table := l.table()
	table.Snapshot = nil
	result, err := rows.New().Read(t.Context(), table, rows.Request{Limit: 1})
	if err != nil || len(result.Rows) != 0 || !result.IsComplete || result.Rows == nil {
		t.Errorf("%+v, %v", result, err)
	}
	l.wantRows("") // a snapshot without files
}

// At most FilesMax data files are read, and the answer reports that.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	for id := range int64(8) {
		l.data(1, parquetOf(t, people(id, id+1)...), 1)
	}
	got, result, err := l.read(200)
	if err != nil || len(result.Rows) != rows.FilesMax || result.IsComplete || result.Stopped == "" {
		t.Errorf("%s, %+v, %v", got, result, err)
	}
}

// deletes is a row of a position delete file.
type deletes struct {
	Path     string `parquet:"file_path,id(2147483546)"`
	Position int64  `parquet:"pos,id(2147483545)"`
}

// Position deletes apply to the files that they name, unless a file is newer than the deletes.
func TestPositionDeletes(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	first := l.data(1, parquetOf(t, people(0, 4)...), 4)
	second := l.data(2, parquetOf(t, people(4, 8)...), 4)
	newer := l.data(9, parquetOf(t, people(8, 9)...), 1)
	content := parquetOf(t, deletes{second, 3}, deletes{first, 0}, deletes{first, 2}, deletes{newer, 0}, deletes{"elsewhere", 1})
	l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("d.parquet", content), rows: 5, size: int64(len(content))})
	onlyFirst := parquetOf(t, deletes{first, 1}, deletes{second, 0})
	l.manifest(true, 9, entry{
		status: 0, sequence: 1, content: 1, path: l.put("d.parquet", onlyFirst), rows: 2, size: int64(len(onlyFirst)), referenced: first,
	})
	l.wantRows(`[3,"n3"] [4,"n4"] [5,"n5"] [6,"n6"] [8,"n8"]`)
}

// A deletion vector replaces the position deletes of its file.
func TestDeletionVectors(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	first := l.data(1, parquetOf(t, people(0, 6)...), 6)
	l.data(1, parquetOf(t, people(6, 7)...), 1)
	old := parquetOf(t, deletes{first, 5})
	l.manifest(true, 2, entry{status: 1, content: 1, path: l.put("d.parquet", old), rows: 1, size: int64(len(old))})
	vector := vectorOf(serialized(t, 0, 2, 3))
	puffin := l.put("d.puffin", append([]byte("PFA1...."), vector...))
	l.manifest(true, 3, entry{
		status: 1, content: 1, path: puffin, format: "PUFFIN", rows: 3, size: 1000, referenced: first, offset: 8, length: int64(len(vector)),
	})
	l.wantRows(`[1,"n1"] [4,"n4"] [5,"n5"] [6,"n6"]`)
}

// Any feature that the server does not apply or know is refused with the reason, and no row is
// shown.
func TestRefusals(t *testing.T) {
	t.Parallel()
	content := parquetOf(t, people(0, 3)...)
	for _, tt := range []struct {
		words string
		spoil func(l *lake, data *entry)
	}{
		{"equality deletes", func(l *lake, _ *entry) {
			l.manifest(true, 5, entry{status: 1, content: 2, path: location + "/e", rows: 1, size: 10})
		}},
		{"is encrypted", func(_ *lake, e *entry) { e.encrypted = true }},
		{"format ORC", func(_ *lake, e *entry) { e.format = "ORC" }},
		{"format avro", func(_ *lake, e *entry) { e.format = "avro" }},
		{"outside the locations", func(_ *lake, e *entry) { e.path = "memory://lake/other/x" }},
		{"is missing", func(_ *lake, e *entry) { e.path = location + "/none" }},
		{"is shorter", func(_ *lake, e *entry) { e.size += 100_000 }},
		{"does not end as Parquet", func(_ *lake, e *entry) { e.size-- }},
		{"has 3 rows, and 4", func(_ *lake, e *entry) { e.rows++ }},
		{"another content", func(_ *lake, e *entry) { e.content = 1 }},
		{"has no sequence number", func(_ *lake, e *entry) { e.status = 0 }},
		{"lacks its data file", func(l *lake, _ *entry) {
			l.manifest(true, 5, entry{status: 1, content: 1, path: location + "/d", format: "puffin", rows: 1, size: 10})
		}},
		{"the delete file", func(l *lake, _ *entry) {
			l.manifest(true, 5, entry{status: 1, content: 1, path: location + "/d", format: "orc", rows: 1, size: 10})
		}},
		{"is missing", func(l *lake, _ *entry) {
			l.manifest(true, 5, entry{status: 1, content: 1, path: location + "/d", rows: 1, size: 100})
		}},
		{"vector in", func(l *lake, e *entry) {
			v := vectorOf(serialized(l.t, 1))
			v[len(v)-1]++
			l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("v", v), format: "puffin", rows: 1, size: 10, referenced: e.path, length: int64(len(v))})
		}},
		{"it has 1 rows, and 2", func(l *lake, e *entry) {
			v := vectorOf(serialized(l.t, 1))
			l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("v", v), format: "puffin", rows: 2, size: 10, referenced: e.path, length: int64(len(v))})
		}},
		{"4 rows, and the data file 3", func(l *lake, e *entry) {
			v := vectorOf(serialized(l.t, 1, 5, 6, 7))
			l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("v", v), format: "puffin", rows: 4, size: 10, referenced: e.path, length: int64(len(v))})
		}},
		{"two deletion vectors", func(l *lake, e *entry) {
			v := vectorOf(serialized(l.t, 1))
			for range 2 {
				l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("v", v), format: "puffin", rows: 1, size: 10, referenced: e.path, length: int64(len(v))})
			}
		}},
		{"lacks the columns", func(l *lake, _ *entry) {
			d := parquetOf(l.t, people(0, 1)...)
			l.manifest(true, 5, entry{status: 1, content: 1, path: l.put("d", d), rows: 1, size: int64(len(d))})
		}},
		{"type variant", func(l *lake, _ *entry) {
			l.schema = strings.Replace(l.schema, `"string"`, `"variant"`, 1)
		}},
		{"type geometry", func(l *lake, _ *entry) {
			l.schema = strings.Replace(l.schema, `"string"`, `"geometry(srid:3857)"`, 1)
		}},
		{"is required, and missing", func(l *lake, _ *entry) {
			l.schema += `,{"id":3,"name":"c","required":true,"type":"int"}`
		}},
		{"BYTE_ARRAY", func(l *lake, _ *entry) { l.schema = strings.Replace(l.schema, `"string"`, `"int"`, 1) }},
		{"INT64", func(l *lake, _ *entry) { l.schema = strings.Replace(l.schema, `"long"`, `"int"`, 1) }},
		{"in the partition only", func(l *lake, _ *entry) {
			l.schema += `,{"id":3,"name":"c","required":false,"type":"int"}`
			l.specs = `{"spec-id":0,"fields":[{"source-id":3,"field-id":1000,"name":"c","transform":"identity"}]}`
		}},
		{"partition spec 0", func(l *lake, _ *entry) { l.specs = strings.Replace(l.specs, `"spec-id":0`, `"spec-id":1`, 1) }},
	} {
		t.Run(tt.words, func(t *testing.T) {
			t.Parallel()
			l := newLake(t, personFields)
			file := l.put("data.parquet", content)
			e := entry{status: 1, path: file, rows: 3, size: int64(len(content))}
			tt.spoil(l, &e)
			if strings.Contains(l.specs, `"spec-id":1`) {
				l.specs += `,{"spec-id":0,"fields":[]}`
				table := func() rows.Table { tb := l.table(); delete(tb.Identity, 0); return tb }
				l.manifest(false, 1, e)
				if _, err := rows.New().Read(t.Context(), table(), rows.Request{Limit: 1}); moorage.KindOf(err) != moorage.KindNotShown {
					t.Errorf("%v", err)
				}
				return
			}
			l.manifest(false, 1, e)
			l.wantRefused(tt.words)
		})
	}
}

// A name mapping supplies the ids of columns in files without ids.
func TestNameMapping(t *testing.T) {
	t.Parallel()
	type plain struct {
		Old  int64            `parquet:"old"`
		Tags []int32          `parquet:"tags,list"`
		Map  map[string]int32 `parquet:"m"`
	}
	l := newLake(t, `{"id":1,"name":"id","required":true,"type":"long"},
		{"id":2,"name":"tags","required":false,"type":{"type":"list","element-id":3,"element":"int","element-required":false}},
		{"id":4,"name":"m","required":false,"type":{"type":"map","key-id":5,"key":"string","value-id":6,"value":"int","value-required":false}}`)
	l.data(1, parquetOf(t, plain{7, []int32{1, 2}, map[string]int32{"a": 1}}), 1)
	l.wantRefused("have no field ids")
	l.properties = `"schema.name-mapping.default":"[{\"field-id\":1,\"names\":[\"id\",\"old\"]},` +
		`{\"field-id\":2,\"names\":[\"tags\"],\"fields\":[{\"field-id\":3,\"names\":[\"element\"]}]},` +
		`{\"field-id\":4,\"names\":[\"m\"],\"fields\":[{\"field-id\":5,\"names\":[\"key\"]},{\"field-id\":6,\"names\":[\"value\"]}]}]"`
	l.wantRows(`[7,[1,2],{"keys":["a"],"values":[1]}]`)
}

// The names "element", "key" and "value" of a name mapping apply only in lists and maps, whatever
// repetition the footer gives to the root.
func TestNameMappingOfRepeatedRoot(t *testing.T) {
	t.Parallel()
	type plain struct {
		Value *int64 `parquet:"value,optional"`
		Key   *int64 `parquet:"key,optional"`
	}
	one, two := int64(1), int64(2)
	l := newLake(t, `{"id":1,"name":"key","required":false,"type":"long"},{"id":2,"name":"value","required":false,"type":"long"}`)
	l.properties = `"schema.name-mapping.default":"[{\"field-id\":1,\"names\":[\"key\"]},{\"field-id\":2,\"names\":[\"value\"]}]"`
	l.data(1, withFooter(t, parquetOf(t, plain{&two, &one}), func(meta *format.FileMetaData) {
		root := &meta.Schema[0].RepetitionType
		root.V, root.Valid = format.Repeated, true
	}), 1)
	l.wantRows(`[1,2]`)
}

// Columns are found by id after they are renamed, moved, promoted, dropped or added. This includes
// columns in structs, lists and maps.
func TestEvolution(t *testing.T) {
	t.Parallel()
	flat := columnsOf(t, map[string]column{
		"a": {oracle.FieldID(oracle.Leaf(oracle.Int32Type), 1), []oracle.Value{oracle.Int32Value(5)}},
		"b": {oracle.FieldID(oracle.Leaf(oracle.FloatType), 2), []oracle.Value{oracle.FloatValue(0.1)}},
		"c": {oracle.FieldID(oracle.String(), 3), []oracle.Value{oracle.ByteArrayValue([]byte("text"))}},
		"d": {oracle.FieldID(oracle.Decimal(2, 5, oracle.Int32Type), 4), []oracle.Value{oracle.Int32Value(-7)}},
		"e": {oracle.FieldID(oracle.Date(), 5), []oracle.Value{oracle.Int32Value(20000)}},
	})
	l := newLake(t, `{"id":3,"name":"a","required":false,"type":"string"},{"id":1,"name":"renamed","required":true,"type":"long"},
		{"id":2,"name":"b","required":false,"type":"double"},{"id":4,"name":"d","required":false,"type":"decimal(9,2)"},
		{"id":5,"name":"e","required":false,"type":"timestamp"},
		{"id":6,"name":"new","required":false,"type":"int"},
		{"id":7,"name":"filled","required":true,"type":"string","initial-default":"x\"y"},
		{"id":8,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":9,"name":"z","required":false,"type":"int"}]}}`)
	l.data(1, flat, 1)
	l.wantRows(fmt.Sprintf(`["text",5,%v,"-0.07","2024-10-04T00:00:00.000000",null,"x\"y",null]`, float64(float32(0.1))))
}

// Nested structs, lists and maps are read as they were written.
func TestNested(t *testing.T) {
	t.Parallel()
	optional := oracle.Optional
	leaf := func(id int) oracle.Node { return oracle.FieldID(optional(oracle.Leaf(oracle.Int32Type)), id) }
	node := oracle.FieldID(optional(oracle.Group{
		"l": oracle.FieldID(optional(oracle.List(oracle.FieldID(optional(oracle.Group{"x": leaf(4), "y": leaf(5)}), 3))), 2),
		"m": oracle.FieldID(oracle.Map(oracle.FieldID(oracle.String(), 7),
			oracle.FieldID(optional(oracle.List(oracle.FieldID(optional(oracle.Leaf(oracle.Int32Type)), 9))), 8)), 6),
	}), 1)
	schema := oracle.NewSchema("table", oracle.Group{"s": node})
	// The columns are s.l.x, s.l.y, s.m.key, s.m.value.element, with their levels.
	at := func(n oracle.Value, r, d, c int) oracle.Value { return n.Level(r, d, c) }
	null, one, two := oracle.NullValue(), oracle.Int32Value(1), oracle.Int32Value(2)
	a, b := oracle.ByteArrayValue([]byte("a")), oracle.ByteArrayValue([]byte("b"))
	all := []oracle.Row{
		{at(null, 0, 0, 0), at(null, 0, 0, 1), at(null, 0, 0, 2), at(null, 0, 0, 3)}, // null
		{at(null, 0, 1, 0), at(null, 0, 1, 1), at(null, 0, 1, 2), at(null, 0, 1, 3)}, // l is null, m is empty
		{at(null, 0, 2, 0), at(null, 0, 2, 1), at(a, 0, 2, 2), at(null, 0, 2, 3)},    // l is empty, m has a null
		{
			at(one, 0, 5, 0), at(null, 1, 3, 0), at(null, 1, 4, 0),
			at(null, 0, 4, 1), at(null, 1, 3, 1), at(two, 1, 5, 1),
			at(a, 0, 2, 2), at(b, 1, 2, 2),
			at(one, 0, 5, 3), at(null, 2, 4, 3), at(null, 1, 3, 3),
		},
	}
	content := writeRows(t, schema, all)
	fields := `{"id":1,"name":"s","required":false,"type":{"type":"struct","fields":[
		{"id":2,"name":"l","required":false,"type":{"type":"list","element-id":3,"element-required":false,"element":%s}},
		{"id":6,"name":"m","required":true,"type":{"type":"map","key-id":7,"key":"string","value-id":8,"value-required":false,"value":
			{"type":"list","element-id":9,"element-required":false,"element":"long"}}}]}}`
	l := newLake(t, fmt.Sprintf(fields, `{"type":"struct","fields":[{"id":5,"name":"y","required":false,"type":"int"},{"id":4,"name":"x","required":false,"type":"int"}]}`))
	l.data(1, content, len(all))
	l.wantRows(`[null] [{"l":null,"m":{"keys":[],"values":[]}}] [{"l":[],"m":{"keys":["a"],"values":[null]}}] ` +
		`[{"l":[{"y":null,"x":1},null,{"y":2,"x":null}],"m":{"keys":["a","b"],"values":[[1,null],[]]}}]`)
	// If the file has none of a struct's fields in the schema, other columns show which structs are
	// null.
	l = newLake(t, fmt.Sprintf(fields, `{"type":"struct","fields":[{"id":50,"name":"n","required":false,"type":"int"}]}`))
	l.data(1, content, len(all))
	l.wantRows(`[null] [{"l":null,"m":{"keys":[],"values":[]}}] [{"l":[],"m":{"keys":["a"],"values":[null]}}] ` +
		`[{"l":[{"n":null},null,{"n":null}],"m":{"keys":["a","b"],"values":[[1,null],[]]}}]`)
	l = newLake(t, `{"id":1,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":50,"name":"n","required":true,"type":"int","initial-default":3}]}}`)
	l.data(1, content, len(all))
	l.wantRows(`[null] [{"n":3}] [{"n":3}] [{"n":3}]`)
}

// Every primitive type has the form of the specification.
func TestTypes(t *testing.T) {
	t.Parallel()
	fixed := func(n int, b ...byte) oracle.Value {
		return oracle.FixedLenByteArrayValue(append(b, make([]byte, n-len(b))...))
	}
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	nines := oracle.FixedLenByteArrayValue(huge.Sub(huge, big.NewInt(1)).FillBytes(make([]byte, 16)))
	micros := func(s string) oracle.Value {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return oracle.Int64Value(at.UnixMicro())
	}
	timestamp := func(unit oracle.TimeUnit, utc bool) oracle.Node { return oracle.TimestampAdjusted(unit, utc) }
	leaf := oracle.Leaf
	for _, tt := range []struct {
		typ    string
		node   oracle.Node
		values []oracle.Value
		want   string
	}{
		{"boolean", leaf(oracle.BooleanType), []oracle.Value{oracle.BooleanValue(true), oracle.BooleanValue(false)}, `[true] [false]`},
		{"int", leaf(oracle.Int32Type), []oracle.Value{oracle.Int32Value(math.MinInt32)}, `[-2147483648]`},
		{"int", oracle.Int(8), []oracle.Value{oracle.Int32Value(-3)}, `[-3]`},
		{"long", leaf(oracle.Int64Type), []oracle.Value{oracle.Int64Value(math.MaxInt64)}, `[9223372036854775807]`},
		{"float", leaf(oracle.FloatType), []oracle.Value{
			oracle.FloatValue(0.1), oracle.FloatValue(float32(math.NaN())), oracle.FloatValue(float32(math.Inf(-1))), oracle.FloatValue(2),
		}, `[0.1] ["NaN"] ["-Infinity"] [2.0]`},
		{"double", leaf(oracle.DoubleType), []oracle.Value{oracle.DoubleValue(math.Inf(1)), oracle.DoubleValue(1e300), oracle.DoubleValue(-0.0000001)}, `["Infinity"] [1e+300] [-1e-07]`},
		{"decimal(9,2)", oracle.Decimal(2, 9, oracle.Int32Type), []oracle.Value{oracle.Int32Value(1420), oracle.Int32Value(-5)}, `["14.20"] ["-0.05"]`},
		{"decimal(18,0)", oracle.Decimal(0, 18, oracle.Int64Type), []oracle.Value{oracle.Int64Value(-12)}, `["-12"]`},
		{"decimal(38,38)", oracle.Decimal(38, 38, oracle.FixedLenByteArrayType(16)), []oracle.Value{nines, fixed(16)}, `["0.` + strings.Repeat("9", 38) + `"] ["0.` + strings.Repeat("0", 38) + `"]`},
		{"decimal(5,1)", oracle.Decimal(1, 5, oracle.FixedLenByteArrayType(3)), []oracle.Value{fixed(3, 0xff, 0xff, 0xfe)}, `["-0.2"]`},
		{"date", oracle.Date(), []oracle.Value{oracle.Int32Value(0), oracle.Int32Value(-1), oracle.Int32Value(2932897), oracle.Int32Value(-800000)}, `["1970-01-01"] ["1969-12-31"] ["+10000-01-01"] ["-0221-09-04"]`},
		{"time", oracle.TimeAdjusted(oracle.Microsecond, false), []oracle.Value{oracle.Int64Value(81068123456)}, `["22:31:08.123456"]`},
		{"timestamp", timestamp(oracle.Microsecond, false), []oracle.Value{micros("2017-11-16T22:31:08.123456Z"), micros("1969-12-31T23:59:59.999999Z")}, `["2017-11-16T22:31:08.123456"] ["1969-12-31T23:59:59.999999"]`},
		{"timestamptz", timestamp(oracle.Microsecond, true), []oracle.Value{micros("2017-11-16T22:31:08Z")}, `["2017-11-16T22:31:08.000000+00:00"]`},
		{"timestamp", timestamp(oracle.Millisecond, false), []oracle.Value{oracle.Int64Value(-1)}, `["1969-12-31T23:59:59.999000"]`},
		{"timestamp_ns", timestamp(oracle.Nanosecond, false), []oracle.Value{oracle.Int64Value(math.MinInt64)}, `["1677-09-21T00:12:43.145224192"]`},
		{"timestamptz_ns", timestamp(oracle.Nanosecond, true), []oracle.Value{oracle.Int64Value(1)}, `["1970-01-01T00:00:00.000000001+00:00"]`},
		{"string", oracle.String(), []oracle.Value{oracle.ByteArrayValue([]byte("a\"\n\u2028ü"))}, "[\"a\\\"\\u000a\u2028ü\"]"},
		{"uuid", oracle.UUID(), []oracle.Value{fixed(16, 0xf7, 0x9c, 0x3e, 0x09)}, `["f79c3e09-0000-0000-0000-000000000000"]`},
		{"fixed[3]", leaf(oracle.FixedLenByteArrayType(3)), []oracle.Value{fixed(3, 0xab)}, `["ab0000"]`},
		{"binary", leaf(oracle.ByteArrayType), []oracle.Value{oracle.ByteArrayValue([]byte{0, 0xff}), oracle.ByteArrayValue(nil)}, `["00ff"] [""]`},
	} {
		t.Run(tt.typ, func(t *testing.T) {
			t.Parallel()
			l := newLake(t, fmt.Sprintf(`{"id":1,"name":"v","required":true,"type":%q}`, tt.typ))
			l.data(1, columnsOf(t, map[string]column{"v": {oracle.FieldID(tt.node, 1), tt.values}}), len(tt.values))
			l.wantRows(tt.want)
		})
	}
	for _, tt := range []struct {
		typ, words string
		node       oracle.Node
		value      oracle.Value
	}{
		{"string", "not UTF-8", oracle.String(), oracle.ByteArrayValue([]byte{0xff})},
		{"time", "a time of", oracle.TimeAdjusted(oracle.Microsecond, false), oracle.Int64Value(-1)},
		{"decimal(3,1)", "a decimal of", oracle.Decimal(1, 3, oracle.Int32Type), oracle.Int32Value(1000)},
		{"decimal(9,2)", "has the type", oracle.Decimal(3, 9, oracle.Int32Type), oracle.Int32Value(1)},
		{"decimal(3,2)", "has the type", oracle.Decimal(2, 9, oracle.Int32Type), oracle.Int32Value(1)},
		{"int", "has the type", oracle.Uint(32), oracle.Int32Value(-1)},
		{"int", "has the type", oracle.Date(), oracle.Int32Value(1)},
		{"date", "has the type", oracle.Leaf(oracle.Int32Type), oracle.Int32Value(1)},
		{"timestamp", "has the type", timestamp(oracle.Microsecond, true), oracle.Int64Value(1)},
		{"timestamptz", "has the type", timestamp(oracle.Microsecond, false), oracle.Int64Value(1)},
		{"timestamptz", "has the type", oracle.Date(), oracle.Int32Value(1)},
		{"timestamp", "has the type", timestamp(oracle.Nanosecond, false), oracle.Int64Value(1)},
		{"fixed[4]", "has the type", oracle.Leaf(oracle.FixedLenByteArrayType(3)), fixed(3)},
		{"binary", "has the type", oracle.String(), oracle.ByteArrayValue(nil)},
		{"uuid", "has the type", oracle.Leaf(oracle.ByteArrayType), oracle.ByteArrayValue(nil)},
	} {
		t.Run(tt.typ+" "+tt.words, func(t *testing.T) {
			t.Parallel()
			l := newLake(t, fmt.Sprintf(`{"id":1,"name":"v","required":true,"type":%q}`, tt.typ))
			l.data(1, columnsOf(t, map[string]column{"v": {oracle.FieldID(tt.node, 1), []oracle.Value{tt.value}}}), 1)
			l.wantRefused(tt.words)
		})
	}
}

// hangingStore is a storage whose range reads block until the test ends.
type hangingStore struct {
	storage.Store
	began chan struct{}
}

func (s hangingStore) Open(ctx context.Context, _ string) (io.ReadCloser, storage.Info, error) {
	s.began <- struct{}{}
	<-ctx.Done()
	return nil, storage.Info{}, ctx.Err()
}

// Only two calls read at the same time. When a call ends, another can begin.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	l.data(1, parquetOf(t, people(0, 1)...), 1)
	table, reader := l.table(), rows.New()
	hanging := table
	began := make(chan struct{})
	hanging.Files = hangingStore{l.files, began}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range rows.AtOnceMax {
		go func() {
			_, err := reader.Read(ctx, hanging, rows.Request{Limit: 1})
			ended <- err
		}()
		<-began
	}
	if _, err := reader.Read(t.Context(), table, rows.Request{Limit: 1}); moorage.KindOf(err) != moorage.KindTooManyRequests {
		t.Errorf("a third call: %v", err)
	}
	cancel()
	for range rows.AtOnceMax {
		if err := <-ended; err == nil {
			t.Error("a cancelled call succeeded")
		}
	}
	if _, err := reader.Read(t.Context(), table, rows.Request{Limit: 1}); err != nil {
		t.Errorf("a later call: %v", err)
	}
}

// An answer ends before a row that would make it too long.
func TestLongRows(t *testing.T) {
	t.Parallel()
	l := newLake(t, personFields)
	long := strings.Repeat("x", 1<<20)
	l.data(1, parquetOf(t, person{1, &long}, person{2, &long}, person{3, &long}, person{4, &long}), 4)
	_, result, err := l.read(200)
	if err != nil || len(result.Rows) != 3 || result.IsComplete || !strings.Contains(result.Stopped, "4 MiB") {
		t.Errorf("%d rows, %q, %v", len(result.Rows), result.Stopped, err)
	}
}
