package rows_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	oracle "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"moorage"
	"moorage/catalog/rows"
	"moorage/metadata"
	"moorage/storage"
	"moorage/storage/memory"
)

const (
	location = "memory://lake/t"
	marker   = "0123456789abcdef"

	listSchema = `{"type":"record","name":"manifest_file","fields":[
		{"name":"manifest_path","type":"string","field-id":500},{"name":"manifest_length","type":"long","field-id":501},
		{"name":"partition_spec_id","type":"int","field-id":502},{"name":"content","type":"int","field-id":517},
		{"name":"sequence_number","type":"long","field-id":515},{"name":"min_sequence_number","type":"long","field-id":516},
		{"name":"added_snapshot_id","type":"long","field-id":503},{"name":"key_metadata","type":["null","bytes"],"field-id":519}]}`
	manifestSchema = `{"type":"record","name":"manifest_entry","fields":[
		{"name":"status","type":"int","field-id":0},{"name":"sequence_number","type":["null","long"],"field-id":3},
		{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
			{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
			{"name":"file_format","type":"string","field-id":101},{"name":"record_count","type":"long","field-id":103},
			{"name":"file_size_in_bytes","type":"long","field-id":104},
			{"name":"key_metadata","type":["null","bytes"],"field-id":131},
			{"name":"referenced_data_file","type":["null","string"],"field-id":143},
			{"name":"content_offset","type":["null","long"],"field-id":144},
			{"name":"content_size_in_bytes","type":["null","long"],"field-id":145}]}}]}`
)

func text(out []byte, s string) []byte { return append(binary.AppendVarint(out, int64(len(s))), s...) }

func long(out []byte, n int64) []byte { return binary.AppendVarint(out, n) }

// optional appends an Avro union of null and another type. value appends the value if there is
// true.
func optional(out []byte, there bool, value func([]byte) []byte) []byte {
	if !there {
		return append(out, 0)
	}
	return value(append(out, 2))
}

// container returns an Avro file of records.
func container(schema string, records ...[]byte) []byte {
	out := text(text(append([]byte("Obj\x01"), 2), "avro.schema"), schema)
	out = append(append(out, 0), marker...)
	block := bytes.Join(records, nil)
	if len(records) > 0 {
		out = append(text(long(out, int64(len(records))), string(block)), marker...)
	}
	return out
}

// entry is a file in a manifest.
type entry struct {
	status     int64 // 0 existing, 1 added, 2 deleted
	sequence   int64 // null if 0
	content    int64 // 0 data, 1 position deletes, 2 equality deletes
	path       string
	format     string // PARQUET if empty
	rows, size int64
	encrypted  bool
	referenced string
	offset     int64
	length     int64 // if 0, length and offset are null
}

func (e entry) record() []byte {
	out := long(nil, e.status)
	out = optional(out, e.sequence != 0, func(out []byte) []byte { return long(out, e.sequence) })
	out = text(text(long(out, e.content), e.path), cmp.Or(e.format, "PARQUET"))
	out = long(long(out, e.rows), e.size)
	out = optional(out, e.encrypted, func(out []byte) []byte { return text(out, "key") })
	out = optional(out, e.referenced != "", func(out []byte) []byte { return text(out, e.referenced) })
	out = optional(out, e.length != 0, func(out []byte) []byte { return long(out, e.offset) })
	return optional(out, e.length != 0, func(out []byte) []byte { return long(out, e.length) })
}

// lake is a table in memory.
type lake struct {
	t         testing.TB
	files     *memory.Store
	manifests [][]byte // records of the manifest list
	serial    int

	schema, properties string
	specs              string
}

func newLake(t testing.TB, fields string) *lake {
	return &lake{t: t, files: memory.New(), schema: fields, specs: `{"spec-id":0,"fields":[]}`}
}

// put writes a file and returns its location.
func (l *lake) put(name string, content []byte) string {
	l.t.Helper()
	l.serial++
	file := fmt.Sprintf("%s/%d-%s", location, l.serial, name)
	if err := l.files.Create(context.Background(), file, content); err != nil {
		l.t.Fatal(err)
	}
	return file
}

// manifest adds a manifest of files.
func (l *lake) manifest(deletes bool, sequence int64, entries ...entry) {
	l.t.Helper()
	records := make([][]byte, len(entries))
	for i, e := range entries {
		records[i] = e.record()
	}
	content, kind := container(manifestSchema, records...), int64(0)
	if deletes {
		kind = 1
	}
	out := long(text(nil, l.put("m.avro", content)), int64(len(content)))
	for _, n := range []int64{0, kind, sequence, sequence, 1} {
		out = long(out, n)
	}
	l.manifests = append(l.manifests, append(out, 0))
}

// data adds a data file in its own manifest.
func (l *lake) data(sequence int64, content []byte, count int) string {
	l.t.Helper()
	file := l.put("data.parquet", content)
	l.manifest(false, sequence, entry{status: 1, path: file, rows: int64(count), size: int64(len(content))})
	return file
}

// table returns the table with one snapshot of all manifests.
func (l *lake) table() rows.Table {
	l.t.Helper()
	list := l.put("snap.avro", container(listSchema, l.manifests...))
	document := fmt.Sprintf(`{"format-version":3,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":%q,"last-sequence-number":9,
		"last-updated-ms":1600,"last-column-id":99,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[%s]}],
		"default-spec-id":0,"partition-specs":[%s],"last-partition-id":1000,"default-sort-order-id":0,"next-row-id":0,
		"sort-orders":[{"order-id":0,"fields":[]}],"properties":{%s},"current-snapshot-id":7,
		"snapshots":[{"snapshot-id":7,"sequence-number":9,"timestamp-ms":1500,"manifest-list":%q,"schema-id":0,"first-row-id":0,"added-rows":0,"summary":{"operation":"append"}}],
		"refs":{"main":{"snapshot-id":7,"type":"branch"}}}`, location, l.schema, l.specs, l.properties, list)
	parsed, err := metadata.Parse([]byte(document))
	if err != nil {
		l.t.Fatal(err)
	}
	scan, found := parsed.Scan("")
	if !found {
		l.t.Fatal("the table has no snapshot to read")
	}
	mapping, _ := parsed.Property("schema.name-mapping.default")
	return rows.Table{Scan: scan, NameMapping: mapping, Files: l.files, Within: func(file string) bool {
		inside, err := storage.Within(location, file)
		return err == nil && inside
	}}
}

// read returns the rows of the table as one text.
func (l *lake) read(limit int, columns ...string) (string, rows.Result, error) {
	l.t.Helper()
	result, err := rows.New().Read(l.t.Context(), l.table(), rows.Request{Limit: limit, Columns: columns})
	return joined(result.Rows), result, err
}

func joined(all []json.RawMessage) string {
	texts := make([]string, len(all))
	for i, row := range all {
		texts[i] = string(row)
	}
	return strings.Join(texts, " ")
}

// wantRows fails the test unless the table has these rows.
func (l *lake) wantRows(want string, columns ...string) {
	l.t.Helper()
	got, result, err := l.read(rows.RowsMax, columns...)
	if err != nil || got != want || !result.IsComplete || result.Stopped != "" {
		l.t.Errorf("got %s (complete %t, stopped %q), %v; want %s", got, result.IsComplete, result.Stopped, err, want)
	}
}

// wantRefused fails the test unless reading the table fails with KindNotShown and a reason that
// contains words.
func (l *lake) wantRefused(words string) {
	l.t.Helper()
	got, _, err := l.read(rows.RowsMax)
	if moorage.KindOf(err) != moorage.KindNotShown || !strings.Contains(moorage.MessageOf(err), words) {
		l.t.Errorf("got %s, %v; want a refusal: %s", got, err, words)
	}
}

// parquetOf returns a Parquet file with the rows, which are structs.
func parquetOf[T any](t testing.TB, all ...T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := oracle.NewGenericWriter[T](&out)
	_, err := w.Write(all)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// column is a column of a file that a test writes value by value.
type column struct {
	node   oracle.Node
	values []oracle.Value
}

// columnsOf returns a Parquet file with columns that are given as values with levels.
func columnsOf(t testing.TB, columns map[string]column) []byte {
	t.Helper()
	group := oracle.Group{}
	for name, c := range columns {
		group[name] = c.node
	}
	schema := oracle.NewSchema("table", group)
	var out bytes.Buffer
	w := oracle.NewWriter(&out, schema)
	for at := 0; ; at++ {
		var row oracle.Row
		for i, path := range schema.Columns() {
			values := columns[path[0]].values
			if at == len(values) {
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				return out.Bytes()
			}
			v := values[at]
			row = append(row, v.Level(v.RepetitionLevel(), v.DefinitionLevel(), i))
		}
		if _, err := w.WriteRows([]oracle.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
}

// withFooter returns content with its footer edited by change.
func withFooter(t testing.TB, content []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	end := len(content) - 8
	start := end - int(binary.LittleEndian.Uint32(content[end:]))
	var meta format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), content[start:end], &meta); err != nil {
		t.Fatal(err)
	}
	change(&meta)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(content[:start]), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), "PAR1"...)
}

// vectorOf returns a deletion vector of a bitmap.
func vectorOf(bitmap []byte) []byte {
	content := append([]byte{0xd1, 0xd3, 0x39, 0x64}, bitmap...)
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(content))
}
