package manifests_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"moorage/manifests"
)

func files(e *manifests.Entry, raw []byte, bytesMax int) (all []manifests.File, err error) {
	for f, err := range new(manifests.Reader).Files(e, raw, &bytesMax) {
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}

func number(n int64) manifests.Number { return manifests.Number{Value: n, Valid: true} }

func TestFilesOfIcebergGo(t *testing.T) {
	t.Parallel()
	const before = snapshotID - 1
	old := number(sequence - 1)
	for version, want := range map[int][]manifests.File{
		1: {
			{Status: manifests.Existing, SnapshotID: number(before), Path: "s3://b/existing", Rows: 5, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Added, SnapshotID: number(snapshotID), Path: "s3://b/added", Rows: 15, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Deleted, SnapshotID: number(snapshotID), Path: "s3://b/deleted", Rows: 25, Format: "PARQUET", Bytes: 4000},
		},
		2: {
			{Status: manifests.Existing, SnapshotID: number(before), SequenceNumber: old, FileSequenceNumber: old, Path: "s3://b/existing", Rows: 5, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Added, SnapshotID: number(snapshotID), SequenceNumber: old, Path: "s3://b/added", Rows: 15, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Deleted, SnapshotID: number(snapshotID), SequenceNumber: old, FileSequenceNumber: old, Path: "s3://b/deleted", Rows: 25, Format: "PARQUET", Bytes: 4000},
		},
		3: {
			{Status: manifests.Existing, SnapshotID: number(before), SequenceNumber: old, FileSequenceNumber: old, Path: "s3://b/existing", FirstRowID: number(firstRow), Rows: 5, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Added, SnapshotID: number(snapshotID), SequenceNumber: old, Path: "s3://b/added", Rows: 15, Format: "PARQUET", Bytes: 4000},
			{Status: manifests.Deleted, SnapshotID: number(snapshotID), SequenceNumber: old, FileSequenceNumber: old, Path: "s3://b/deleted", Rows: 25, Format: "PARQUET", Bytes: 4000},
		},
	} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			raw, e := icebergManifest(t, version)
			got, err := files(e, raw, manifests.FileBytesMax)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
		})
	}
}

// entrySchema returns a small schema of manifests. Ids inside the partition and outside the file
// have no meaning.
func entrySchema() string {
	return record("manifest_entry", `{"name":"status","type":"int","field-id":0}`, `{"name":"snapshot_id","type":["null","long"],"field-id":1}`,
		`{"name":"sequence_number","type":["null","long"],"field-id":3}`, `{"name":"file_sequence_number","type":["null","long"],"field-id":4}`,
		`{"name":"misleading","type":"long","field-id":142}`,
		`{"name":"data_file","field-id":2,"type":`+record("r2", `{"name":"content","type":"int","field-id":134}`, `{"name":"file_path","type":"string","field-id":100}`,
			`{"name":"partition","field-id":102,"type":`+record("r102", `{"name":"record_count","type":"long","field-id":103}`)+`}`,
			`{"name":"record_count","type":"long","field-id":103}`, `{"name":"first_row_id","type":["null","long"],"field-id":142}`,
			`{"name":"referenced_data_file","type":["null","string"],"field-id":143}`)+`}`)
}

func entry(change func(entry, file row)) row {
	file := row{"content": int32(1), "file_path": "p", "partition": row{"record_count": int64(-4)}, "record_count": int64(8), "first_row_id": nil, "referenced_data_file": nil}
	r := row{"status": int32(1), "snapshot_id": nil, "sequence_number": nil, "file_sequence_number": nil, "misleading": int64(5), "data_file": file}
	change(r, file)
	return r
}

// A null number stays distinguishable from a number. The check of a moved append depends on that.
func TestNullsOfFilesAreSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(entry, file row)
		want   manifests.File
	}{
		"all null":      {func(_, _ row) {}, manifests.File{}},
		"sequence":      {func(e, _ row) { e["sequence_number"] = int64(0) }, manifests.File{SequenceNumber: number(0)}},
		"file sequence": {func(e, _ row) { e["file_sequence_number"] = int64(7) }, manifests.File{FileSequenceNumber: number(7)}},
		"snapshot":      {func(e, _ row) { e["snapshot_id"] = int64(-1) }, manifests.File{SnapshotID: number(-1)}},
		"first row":     {func(_, f row) { f["first_row_id"] = int64(0) }, manifests.File{FirstRowID: number(0)}},
		"refers to":     {func(_, f row) { f["referenced_data_file"] = "d" }, manifests.File{ReferencedFile: "d"}},
		"as DuckDB":     {func(_, f row) { f["referenced_data_file"] = "" }, manifests.File{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, entrySchema(), nil, 1, entry(test.change))
			test.want.Status, test.want.Content, test.want.Path, test.want.Rows = manifests.Added, manifests.Deletes, "p", 8
			if got, err := files(entryOf(t, raw), raw, 1000); err != nil || !slices.Equal(got, []manifests.File{test.want}) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestFilesEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	raw, e := icebergManifest(t, 2)
	count, left := 0, manifests.FileBytesMax
	for range new(manifests.Reader).Files(e, raw, &left) {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d files were yielded", count)
	}
}

func TestInvalidFilesAreDamaged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(entry, file row){
		"status":    func(e, _ row) { e["status"] = int32(3) },
		"content":   func(_, f row) { f["content"] = int32(3) },
		"no path":   func(_, f row) { f["file_path"] = "" },
		"rows":      func(_, f row) { f["record_count"] = int64(-1) },
		"sequence":  func(e, _ row) { e["sequence_number"] = int64(-1) },
		"first row": func(_, f row) { f["first_row_id"] = int64(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, entrySchema(), nil, 1, entry(func(row, row) {}), entry(change))
			if got, err := files(entryOf(t, raw), raw, 1000); !errors.Is(err, manifests.ErrDamaged) || len(got) != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	raw, _ := icebergManifest(t, 2)
	if got, err := files(entryOf(t, raw[1:]), raw, 1000); !errors.Is(err, manifests.ErrDamaged) {
		t.Errorf("a manifest of another length than its list says: %+v, %v", got, err)
	}
	other := file(t, javaList(), nil, 1, ships(1))
	if got, err := files(entryOf(t, other), other, 1000); !errors.Is(err, manifests.ErrDamaged) {
		t.Errorf("a list as a manifest: %+v, %v", got, err)
	}
}

// The bytes of several manifests share one limit.
func TestFilesTakeTheirBytes(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := file(t, entrySchema(), codec, 1, entry(func(row, row) {}), entry(func(row, row) {}))
			e := entryOf(t, raw)
			const size = 2 * 12 // for each record, a byte for each value, and one more for the path
			left := 2*size + 1
			for range 2 {
				for _, err := range new(manifests.Reader).Files(e, raw, &left) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if left != 1 {
				t.Errorf("%d bytes are left", left)
			}
			if all, err := files(e, raw, size-1); !errors.Is(err, manifests.ErrTooLarge) || len(all) != 1 {
				t.Errorf("got %v, %v", all, err)
			}
		})
	}
}
