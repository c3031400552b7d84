package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"moorage/manifests"
)

func TestListsOfEachCodecAreRead(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs(t) {
		for _, perBlock := range []int{1, 2, 100} {
			t.Run(fmt.Sprint(name, perBlock), func(t *testing.T) {
				t.Parallel()
				want := []row{ships(1), ships(2), ships(3)}
				l := list(t, file(t, javaList(fieldFirst), codec, perBlock, want...))
				if len(l.Entries()) != len(want) {
					t.Fatalf("%d entries", len(l.Entries()))
				}
				for i, e := range l.Entries() {
					r := want[i]
					got := row{
						"manifest_path": e.Path, "manifest_length": e.Length, "partition_spec_id": int32(e.SpecID), "content": int32(e.Content),
						"sequence_number": e.SequenceNumber, "min_sequence_number": e.MinSequenceNumber, "added_snapshot_id": e.SnapshotID,
						"added_files_count": int32(e.AddedFiles), "existing_files_count": int32(e.ExistingFiles), "deleted_files_count": int32(e.DeletedFiles),
						"added_rows_count": e.AddedRows, "existing_rows_count": e.ExistingRows, "deleted_rows_count": e.DeletedRows,
						"partitions": r["partitions"], "key_metadata": nil, "first_row_id": e.FirstRowID.Value,
					}
					if fmt.Sprint(got) != fmt.Sprint(r) || !e.FirstRowID.Valid {
						t.Errorf("entry %d is\n%v, want\n%v", i, got, r)
					}
					if found, ok := l.Match(e); !ok || found != e {
						t.Errorf("entry %d is not found by its path", i)
					}
				}
			})
		}
	}
}

// If NewList rewrites a list of iceberg-go, iceberg-go reads the same from the result.
func TestListsOfIcebergGoComeBack(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			raw, want := icebergList(t, version, 4)
			l := list(t, raw)
			_, out := builtVersion(t, version, l, nil, unchanged(l.Entries())...)
			if got := icebergText(icebergRead(t, out)); !equalLines(got, icebergText(want)) {
				t.Errorf("got %q\nwant %q", got, icebergText(want))
			}
			for i, e := range l.Entries() {
				f := want[i]
				if e.Path != f.FilePath() || e.SequenceNumber != f.SequenceNum() || e.AddedRows != f.AddedRows() ||
					e.FirstRowID.Valid != (f.FirstRowID() != nil) || int64(f.DeletedDataFiles()) != e.DeletedFiles || e.SnapshotID != f.SnapshotID() {
					t.Errorf("entry %d is %+v, iceberg-go reads %+v", i, e, f)
				}
			}
		})
	}
}

// With the same schema, records keep their bytes, even a field that this package does not know and
// numbers in a longer form than needed. The codec stays.
func TestRecordsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := ships(1), ships(2)
			first["later"], second["later"] = map[string]any{"a": 1.5}, nil
			schema := javaList(fieldFirst, fieldUnknown)
			l := list(t, file(t, schema, codec, 10, first, second))
			l2, out := built(t, l, unchanged(l.Entries())...)
			for i, e := range list(t, out).Entries() {
				if want := l.Entries()[i].Raw; e.Raw != want || l2.Entries()[i].Raw != want {
					t.Errorf("record %d is %q, want %q", i, e.Raw, want)
				}
			}
			got, header := rows(t, out)
			if want := text([]row{first, second}); !equalLines(text(got), want) {
				t.Errorf("got %q\nwant %q", text(got), want)
			}
			if string(header["avro.codec"]) != name && name != "null" {
				t.Errorf("codec is %q", header["avro.codec"])
			}
			for key, want := range map[string]string{
				"avro.schema": schema, "format-version": "2", "snapshot-id": "77", "parent-snapshot-id": "-5", "sequence-number": "9", "later": "\x00\xff",
			} {
				if string(header[key]) != want {
					t.Errorf("header has %q under %s, want %q", header[key], key, want)
				}
			}
			if _, again := built(t, l, unchanged(l.Entries())...); !bytes.Equal(again, out) {
				t.Error("the same list has other bytes")
			}
		})
	}
}

func TestNumbersAreReplaced(t *testing.T) {
	t.Parallel()
	unknown := ships(2)
	unknown["first_row_id"], unknown["later"] = nil, map[string]any{"a": 0.5}
	l := list(t, file(t, goList(fieldFirst, fieldUnknown), nil, 10, ships(1), unknown))
	patched := unchanged(l.Entries())
	patched[0].SequenceNumber = manifests.Number{Value: math.MaxInt64, Valid: true}
	patched[0].MinSequenceNumber = manifests.Number{Value: 0, Valid: true}
	patched[1].FirstRowID = manifests.Number{Value: 1 << 50, Valid: true}
	_, out := built(t, l, patched...)
	want := []row{ships(1), unknown}
	want[0]["sequence_number"], want[0]["min_sequence_number"], want[0]["later"] = int64(math.MaxInt64), int64(0), nil
	want[1]["first_row_id"] = int64(1 << 50)
	if got, _ := rows(t, out); !equalLines(text(got), text(want)) {
		t.Errorf("got %q\nwant %q", text(got), text(want))
	}
	l = list(t, file(t, goList(), nil, 10, ships(1)))
	_, err := manifests.NewList(manifests.Header{}, []manifests.Record{{Entry: l.Entries()[0], FirstRowID: manifests.Number{Valid: true}}}, nil, l)
	if !errors.Is(err, manifests.ErrForeign) {
		t.Errorf("a first row id in a schema without one: %v", err)
	}
}

func TestHeaderOfVersion3(t *testing.T) {
	t.Parallel()
	raw, _ := icebergList(t, 3, 2)
	sent := list(t, raw)
	for _, first := range []manifests.Number{{}, {Value: 12, Valid: true}} {
		l, err := manifests.NewList(manifests.Header{FormatVersion: 3, FirstRowID: first}, nil, sent.Entries(), sent)
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, header := rows(t, out)
		if got, ok := header["first-row-id"]; ok != first.Valid || ok && string(got) != "12" {
			t.Errorf("first-row-id is %q, want %v", got, first)
		}
	}
}

// A list made from lists of two writers has the schema with all fields, and the codec of the first.
func TestSchemasOfTwoWriters(t *testing.T) {
	t.Parallel()
	lacks := func(keys ...string) row {
		r := ships(2)
		for _, key := range keys {
			r[key] = nil
		}
		return r
	}
	oldSummary := lacks("first_row_id")
	oldSummary["partitions"] = []any{row{"contains_null": false, "contains_nan": nil, "lower_bound": nil, "upper_bound": []byte("z")}}
	unpartitioned := lacks("first_row_id", "partitions")
	version1 := lacks("first_row_id")
	version1["content"], version1["sequence_number"], version1["min_sequence_number"] = int32(0), int64(0), int64(0)
	mapped := lacks("first_row_id")
	mapped["later"] = map[string]any{"k": int32(-7), "l": int32(1)}
	nullable := `{"name":"added_rows_count","type":["long","null"],"field-id":512},{"name":"existing_rows_count","type":["null","long"],"field-id":513},{"name":"deleted_rows_count","type":["null","int"],"field-id":514}`
	for _, test := range []struct {
		name        string
		like, other string
		row         row // of other
		want        row // in the new list
		schema      int // 0 for the schema of like, 1 for that of other
	}{
		{"same but for names and comments", javaList(), `{"type":"record","name":"x","namespace":"y.z","fields":` + javaList()[len(`{"type":"record","name":"manifest_file","fields":`):], lacks("first_row_id"), lacks("first_row_id"), 0},
		{"other order", javaList(), goList(), lacks("first_row_id"), lacks("first_row_id"), 0},
		{"more fields in like", javaList(fieldFirst), goList(), lacks("first_row_id"), lacks("first_row_id"), 0},
		{"more fields in other", goList(), javaList(fieldFirst), ships(2), ships(2), 1},
		{"null of a field that like lacks", goList(fieldUnknown), javaList(fieldFirst), lacks("first_row_id"), lacks("first_row_id"), 0},
		{"more fields inside", javaList(), record("m", fieldPath, fieldLength, fieldSpec, fieldContent, fieldSequence, fieldSnapshot, fieldFiles, fieldRows, partitions(summaryBound, summaryOld)), oldSummary, oldSummary, 0},
		{"null inside", javaList(), goList(), unpartitioned, unpartitioned, 0},
		{"map of longs where it was of ints", javaList(`{"name":"later","type":["null",{"type":"map","values":"int"}],"field-id":9000}`), goList(`{"name":"later","type":{"type":"map","values":["null","long"]},"field-id":9000}`, fieldFirst), mapped, mapped, 1},
		{"map in another form", javaList(`{"name":"later","type":["null",{"type":"map","values":["null","long"]}],"field-id":9000}`), goList(`{"name":"later","type":{"type":"map","values":"int"},"field-id":9000}`), mapped, mapped, 0},
		{"version 1 in version 2", javaList(), record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, fieldFiles, partitions(summaryOld, summaryNaN, summaryBound), nullable), version1, version1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			codec := codecs(t)["snappy"]
			first := ships(1)
			first["first_row_id"], first["later"] = nil, map[string]any{"k": int32(5)}
			like, other := list(t, file(t, test.like, codec, 10, first)), list(t, file(t, test.other, nil, 10, test.row))
			_, out := builtVersion(t, 2, like, []*manifests.List{other}, append(unchanged(other.Entries()), unchanged(like.Entries())...)...)
			got, header := rows(t, out)
			if want := []string{test.like, test.other}[test.schema]; string(header["avro.schema"]) != want || string(header["avro.codec"]) != "snappy" {
				t.Errorf("schema %s\nwant %s\ncodec %q", header["avro.schema"], want, header["avro.codec"])
			}
			for i, want := range []row{test.want, first} {
				for key, value := range got[i] {
					if fmt.Sprint(value) != fmt.Sprint(want[key]) {
						t.Errorf("record %d has %v under %s, want %v", i, value, key, want[key])
					}
				}
			}
		})
	}
}

func TestValuesWithoutAPlaceAreRefused(t *testing.T) {
	t.Parallel()
	withKey := ships(2)
	withKey["key_metadata"] = []byte("k")
	withLater := ships(2)
	withLater["later"] = map[string]any{}
	unknownCount := ships(2)
	unknownCount["added_files_count"] = nil
	shiftedMap := ships(2)
	shiftedMap["later"] = map[string]any{"k": int32(1)}
	noKey := []string{fieldPath, fieldLength, fieldSpec, fieldContent, fieldSequence, fieldSnapshot, fieldFiles, fieldRows, partitions(summaryOld, summaryNaN, summaryBound)}
	nullableFiles := `{"name":"added_files_count","type":["null","int"],"field-id":504}`
	for _, test := range []struct {
		name        string
		like, other string
		row         row
	}{
		{"unknown field", javaList(fieldFirst), goList(fieldUnknown), withLater},
		{"known field", record("m", append(noKey, fieldUnknown)...), javaList(), withKey},
		{"field inside", record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, partitions(summaryOld, summaryBound), fieldKey, fieldUnknown), record("m", append(noKey, fieldFirst)...), ships(2)},
		{"map with another id of its values", javaList(`{"name":"later","type":{"type":"map","values":"long","value-id":1},"field-id":9000}`), goList(`{"name":"later","type":{"type":"map","values":"int","value-id":2},"field-id":9000}`), shiftedMap},
		{"field without an id", javaList(fieldFirst), javaList(`{"name":"first_row_id","type":["null","long"]}`), ships(2)},
		{"null where like wants a number", javaList(), record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, nullableFiles), unknownCount},
		{"long where like has an int", javaList(), record("m", fieldPath, fieldLength, `{"name":"partition_spec_id","type":"long","field-id":502}`, fieldSnapshot), row{"manifest_path": "p", "manifest_length": 1, "partition_spec_id": 1, "added_snapshot_id": 1}},
		{"no value for a number", javaList(), record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot), ships(2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			first := ships(1)
			first["later"] = map[string]any{}
			like, other := list(t, file(t, test.like, nil, 10, first)), list(t, file(t, test.other, nil, 10, test.row))
			l, err := manifests.NewList(manifests.Header{}, nil, slices.Concat(like.Entries(), other.Entries()), like, other)
			if !errors.Is(err, manifests.ErrForeign) {
				t.Errorf("got %v, %v", l, err)
			}
		})
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	entries := list(t, file(t, javaList(), nil, 10, ships(1), ships(2))).Entries()
	want := manifests.Counts{AddedFiles: 3, ExistingFiles: 4, DeletedFiles: 6, AddedRows: 2 << 40, ExistingRows: 40, DeletedRows: 60}
	if got, ok := manifests.Sum(entries); !ok || got != want || got.LiveFiles() != 7 || got.LiveRows() != 2<<40+40 {
		t.Errorf("got %+v, %v", got, ok)
	}
	many := ships(3)
	many["deleted_rows_count"] = int64(math.MaxInt64)
	if got, ok := manifests.Sum(list(t, file(t, javaList(), nil, 10, many)).Entries()); ok {
		t.Errorf("a sum that is too large is %+v", got)
	}
	uncounted := file(t, record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, fieldRows), nil, 10, ships(1))
	if got, ok := manifests.Sum(list(t, uncounted).Entries()); ok {
		t.Errorf("a sum of what is not counted is %+v", got)
	}
}
