package manifests_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
)

// TestDescribe reads a manifest written by iceberg-go: each file with its status, partition and
// bounds.
func TestDescribe(t *testing.T) {
	t.Parallel()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "flag", Type: iceberg.PrimitiveTypes.String})
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "flag", Transform: iceberg.IdentityTransform{}})
	var body bytes.Buffer
	writer, err := iceberg.NewManifestWriter(2, &body, spec, schema, snapshotID)
	if err != nil {
		t.Fatal(err)
	}
	made, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, "s3://b/1", iceberg.ParquetFile, map[int]any{1000: "NL"}, nil, nil, 10, 100)
	if err != nil {
		t.Fatal(err)
	}
	made.LowerBoundValues(map[int][]byte{2: []byte("a")}).UpperBoundValues(map[int][]byte{2: []byte("z")})
	id, number := int64(snapshotID), int64(sequence)
	if err := errors.Join(writer.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &id, &number, &number, made.Build())), writer.Close()); err != nil {
		t.Fatal(err)
	}
	count := 0
	for file, err := range manifests.Unlisted("m").Describe(bytes.NewReader(body.Bytes())) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		if file.Path != "s3://b/1" || file.Status != manifests.Added || file.Partition != "flag=NL" || file.Rows != 10 || file.Bytes != 100 ||
			file.Format != "PARQUET" || len(file.Lower) != 1 || file.Lower[0].ID != 2 || string(file.Lower[0].Value) != "a" || string(file.Upper[0].Value) != "z" {
			t.Errorf("got %+v", file)
		}
	}
	if count != 1 {
		t.Errorf("%d files", count)
	}
	raw, _ := written(t, 1, "m", "a", "b")
	for n := range len(raw) {
		for file, err := range manifests.Unlisted("m").Describe(bytes.NewReader(raw[:n])) {
			if err == nil && file.Path == "" {
				t.Errorf("no error for the first %d bytes: %+v", n, file)
			}
		}
	}
}
