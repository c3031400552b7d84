package manifests_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"moorage/manifests"
)

const (
	snapshotID = 77
	parentID   = -5
	sequence   = 9
	firstRow   = 1000
)

// row is a record of a list, under the names in the specification.
type row = map[string]any

// ships returns a row of a data manifest. Rows differ by n.
func ships(n int) row {
	return row{
		"manifest_path": fmt.Sprintf("s3://b/metadata/m-%d.avro", n), "manifest_length": int64(4000 + n),
		"partition_spec_id": int32(n % 3), "content": int32(0),
		"sequence_number": int64(sequence), "min_sequence_number": int64(sequence - 1), "added_snapshot_id": int64(snapshotID),
		"added_files_count": int32(n), "existing_files_count": int32(2), "deleted_files_count": int32(3),
		"added_rows_count": int64(1) << 40, "existing_rows_count": int64(20), "deleted_rows_count": int64(30),
		"partitions": []any{row{
			"contains_null": true, "contains_nan": false, "lower_bound": []byte("a"), "upper_bound": []byte{0, 255, 128},
		}},
		"key_metadata": nil, "first_row_id": int64(firstRow + n),
	}
}

// A field of a schema, as JSON.
const (
	fieldPath     = `{"name":"manifest_path","type":"string","field-id":500}`
	fieldLength   = `{"name":"manifest_length","type":"long","field-id":501}`
	fieldSpec     = `{"name":"partition_spec_id","type":"int","field-id":502}`
	fieldContent  = `{"name":"content","type":"int","doc":"0 is data","field-id":517}`
	fieldSequence = `{"name":"sequence_number","type":"long","field-id":515},{"name":"min_sequence_number","type":"long","field-id":516}`
	fieldSnapshot = `{"name":"added_snapshot_id","type":"long","field-id":503}`
	fieldFiles    = `{"name":"added_files_count","type":"int","field-id":504},{"name":"existing_files_count","type":"int","field-id":505},{"name":"deleted_files_count","type":"int","field-id":506}`
	fieldRows     = `{"name":"added_rows_count","type":"long","field-id":512},{"name":"existing_rows_count","type":"long","field-id":513},{"name":"deleted_rows_count","type":"long","field-id":514}`
	fieldKey      = `{"name":"key_metadata","type":["null","bytes"],"default":null,"field-id":519}`
	fieldFirst    = `{"name":"first_row_id","type":["null","long"],"default":null,"field-id":520}`
	fieldUnknown  = `{"name":"later","type":["null",{"type":"map","values":"double","key-id":9001,"value-id":9002}],"field-id":9000}`

	summaryOld   = `{"name":"contains_null","type":"boolean","field-id":509}`
	summaryNaN   = `{"name":"contains_nan","type":["null","boolean"],"field-id":518}`
	summaryBound = `{"name":"lower_bound","type":["null","bytes"],"field-id":510},{"name":"upper_bound","type":["null","bytes"],"field-id":511}`
)

// partitions returns the field partitions, with these fields in its summaries.
func partitions(summary ...string) string {
	return `{"name":"partitions","type":["null",{"type":"array","items":` + record("r508", summary...) + `,"element-id":508}],"default":null,"field-id":507}`
}

func record(name string, fields ...string) string {
	out := `{"type":"record","name":"` + name + `","fields":[`
	for i, field := range fields {
		if i > 0 {
			out += ","
		}
		out += field
	}
	return out + "]}"
}

// javaList returns the schema written by Java and PyIceberg, with the rows before the partitions.
func javaList(more ...string) string {
	return record("manifest_file", append([]string{fieldPath, fieldLength, fieldSpec, fieldContent, fieldSequence, fieldSnapshot,
		fieldFiles, fieldRows, partitions(summaryOld, summaryNaN, summaryBound), fieldKey}, more...)...)
}

// goList returns the schema written by iceberg-go, with the rows after the partitions.
func goList(more ...string) string {
	return record("manifest_file", append([]string{fieldPath, fieldLength, fieldSpec, fieldContent, fieldSequence, fieldSnapshot,
		fieldFiles, partitions(summaryOld, summaryNaN, summaryBound), fieldRows, fieldKey}, more...)...)
}

func codecs(tb testing.TB) map[string]ocf.Codec {
	tb.Helper()
	zstandard, err := ocf.ZstdCodec(nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]ocf.Codec{"null": nil, "deflate": ocf.DeflateCodec(-1), "snappy": ocf.SnappyCodec(), "zstandard": zstandard}
}

// file writes rows with the writer of twmb/avro, perBlock rows per block.
func file(tb testing.TB, schema string, codec ocf.Codec, perBlock int, rows ...row) []byte {
	tb.Helper()
	var out bytes.Buffer
	options := []ocf.WriterOpt{ocf.WithSchema(schema), ocf.WithBlockCount(perBlock), ocf.WithMetadata(map[string][]byte{
		"format-version": []byte("2"), "snapshot-id": []byte("1"), "later": []byte("\x00\xff"),
	})}
	if codec != nil {
		options = append(options, ocf.WithCodec(codec))
	}
	w, err := ocf.NewWriter(&out, avro.MustParse(schema), options...)
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Encode(r); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// rows reads a file with the reader of twmb/avro.
func rows(tb testing.TB, raw []byte) (all []row, header map[string][]byte) {
	tb.Helper()
	r, err := ocf.NewReader(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	for {
		var next any
		if err := r.Decode(&next); err == io.EOF {
			return all, r.Metadata()
		} else if err != nil {
			tb.Fatal(err)
		}
		all = append(all, next.(row))
	}
}

// text returns rows in a comparable form.
func text(all []row) (lines []string) {
	for _, r := range all {
		lines = append(lines, fmt.Sprint(r))
	}
	return lines
}

func list(tb testing.TB, raw []byte) *manifests.List {
	tb.Helper()
	l, err := new(manifests.Reader).List(raw, nil, manifests.FileBytesMax)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// built returns the list of records, and its file.
func built(tb testing.TB, like *manifests.List, records ...manifests.Record) (*manifests.List, []byte) {
	tb.Helper()
	return builtVersion(tb, 2, like, nil, records...)
}

func builtVersion(tb testing.TB, version int, like *manifests.List, others []*manifests.List, records ...manifests.Record) (*manifests.List, []byte) {
	tb.Helper()
	header := manifests.Header{FormatVersion: int64(version), SnapshotID: snapshotID, ParentID: parentID, SequenceNumber: sequence}
	l, err := manifests.NewList(header, records, nil, append([]*manifests.List{like}, others...)...)
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := l.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return l, raw
}

// unchanged returns records of entries that are carried over unchanged.
func unchanged(entries []*manifests.Entry) (records []manifests.Record) {
	for _, e := range entries {
		records = append(records, manifests.Record{Entry: e})
	}
	return records
}

// icebergList writes a list with iceberg-go, and returns it with the entries that iceberg-go reads
// from it.
func icebergList(tb testing.TB, version, count int) ([]byte, []iceberg.ManifestFile) {
	tb.Helper()
	var files []iceberg.ManifestFile
	for n := range count {
		lower, nan := []byte{1, byte(n)}, true
		files = append(files, iceberg.NewManifestFile(version, fmt.Sprintf("s3://b/m-%d.avro", n), int64(5000+n), int32(n%2), snapshotID).
			SequenceNum(sequence, sequence-2).AddedFiles(int32(n)).ExistingFiles(1).DeletedFiles(2).AddedRows(10).ExistingRows(11).DeletedRows(12).
			Partitions([]iceberg.FieldSummary{{ContainsNull: true, ContainsNaN: &nan, LowerBound: &lower}}).Build())
	}
	var out bytes.Buffer
	parent, number := int64(parentID), int64(sequence)
	if err := iceberg.WriteManifestList(version, &out, snapshotID, &parent, &number, firstRow, files); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes(), icebergRead(tb, out.Bytes())
}

func icebergRead(tb testing.TB, raw []byte) []iceberg.ManifestFile {
	tb.Helper()
	files, err := iceberg.ReadManifestList(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// icebergText returns all values that iceberg-go has for files.
func icebergText(files []iceberg.ManifestFile) (lines []string) {
	for _, f := range files {
		first := "none"
		if id := f.FirstRowID(); id != nil {
			first = fmt.Sprint(*id)
		}
		line := fmt.Sprint(f.FilePath(), f.Length(), f.PartitionSpecID(), f.ManifestContent(), f.SequenceNum(), f.MinSequenceNum(), f.SnapshotID(),
			f.AddedDataFiles(), f.ExistingDataFiles(), f.DeletedDataFiles(), f.AddedRows(), f.ExistingRows(), f.DeletedRows(), first, f.KeyMetadata())
		for _, p := range f.Partitions() {
			line += fmt.Sprint(p.ContainsNull, *p.ContainsNaN, *p.LowerBound, p.UpperBound == nil)
		}
		lines = append(lines, line)
	}
	return lines
}

var equalLines = slices.Equal[[]string]

// icebergManifest writes a manifest with iceberg-go that has a file of each status, with these
// numbers and with null. It also returns the manifest's entry in a list.
func icebergManifest(tb testing.TB, version int) ([]byte, *manifests.Entry) {
	tb.Helper()
	var out bytes.Buffer
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "price", Type: iceberg.DecimalTypeOf(12, 2)})
	spec := iceberg.NewPartitionSpec(
		iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1001, Name: "price", Transform: iceberg.IdentityTransform{}})
	writer, err := iceberg.NewManifestWriter(version, &out, spec, schema, snapshotID)
	if err != nil {
		tb.Fatal(err)
	}
	for i, path := range []string{"s3://b/existing", "s3://b/added", "s3://b/deleted"} {
		builder, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, path, iceberg.ParquetFile,
			map[int]any{1000: int64(7)}, nil, nil, int64(10*i+5), 4000)
		if err != nil {
			tb.Fatal(err)
		}
		builder.ColumnSizes(map[int]int64{1: 2, 3: 4}).LowerBoundValues(map[int][]byte{1: {1, 2}}).SplitOffsets([]int64{4, 5})
		if version == 3 && i == 0 {
			builder.FirstRowID(firstRow)
		}
		id, number := int64(snapshotID-1), int64(sequence-1)
		entry := iceberg.NewManifestEntry(iceberg.ManifestEntryStatus(i), &id, &number, &number, builder.Build())
		if err := []func(iceberg.ManifestEntry) error{writer.Existing, writer.Add, writer.Delete}[i](entry); err != nil {
			tb.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes(), entryOf(tb, out.Bytes())
}

// entryOf returns an entry of a list for the manifest in raw.
func entryOf(tb testing.TB, raw []byte) *manifests.Entry {
	tb.Helper()
	r := ships(1)
	r["manifest_length"] = int64(len(raw))
	return list(tb, file(tb, javaList(), nil, 1, r)).Entries()[0]
}
