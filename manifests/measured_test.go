package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
)

// partitioned returns a manifest of three files, one of each status, in a partition with these
// values.
func partitioned(tb testing.TB, schema *iceberg.Schema, spec iceberg.PartitionSpec, values map[int]any) []byte {
	tb.Helper()
	var body bytes.Buffer
	writer, err := iceberg.NewManifestWriter(2, &body, spec, schema, snapshotID)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 3 {
		file, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, fmt.Sprint("s3://b/", i), iceberg.ParquetFile, values, nil, nil, 10, int64(100+i))
		if err != nil {
			tb.Fatal(err)
		}
		id, number := int64(snapshotID), int64(sequence)
		entry := iceberg.NewManifestEntry(iceberg.ManifestEntryStatus(i), &id, &number, &number, file.Build())
		add := []func(iceberg.ManifestEntry) error{writer.Existing, writer.Add, writer.Delete}[i]
		if err := add(entry); err != nil {
			tb.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	return body.Bytes()
}

func measure(body []byte) (files []manifests.MeasuredFile, err error) {
	for file, fault := range manifests.Unlisted("m").Measure(bytes.NewReader(body)) {
		if fault != nil {
			return files, fault
		}
		files = append(files, file)
	}
	return files, nil
}

// Measure yields the live files, with the names of partitions as written by engines.
func TestMeasure(t *testing.T) {
	t.Parallel()
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "at", Type: iceberg.PrimitiveTypes.TimestampTz},
		iceberg.NestedField{ID: 2, Name: "day", Type: iceberg.PrimitiveTypes.Date},
		iceberg.NestedField{ID: 3, Name: "flag", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 4, Name: "n", Type: iceberg.PrimitiveTypes.Int64})
	of := func(source int, name string, transform iceberg.Transform) iceberg.PartitionSpec {
		return iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{source}, FieldID: 1000, Name: name, Transform: transform})
	}
	for _, c := range []struct {
		spec  iceberg.PartitionSpec
		value any
		want  string
	}{
		{of(1, "at_year", iceberg.YearTransform{}), int32(56), "at_year=2026"},
		{of(1, "at_month", iceberg.MonthTransform{}), int32(682), "at_month=2026-11"},
		{of(1, "at_month", iceberg.MonthTransform{}), int32(-1), "at_month=1969-12"},
		{of(1, "at_day", iceberg.DayTransform{}), iceberg.Date(20784), "at_day=2026-11-27"},
		{of(1, "at_hour", iceberg.HourTransform{}), int32(498819), "at_hour=2026-11-27-03"},
		{of(2, "day", iceberg.IdentityTransform{}), iceberg.Date(20784), "day=2026-11-27"},
		{of(3, "flag", iceberg.IdentityTransform{}), "N L/é", "flag=N+L%2F%C3%A9"},
		{of(3, "flag", iceberg.IdentityTransform{}), nil, "flag=null"},
		{of(4, "n_bucket", iceberg.BucketTransform{NumBuckets: 16}), int32(7), "n_bucket=7"},
		{of(4, "n", iceberg.IdentityTransform{}), int64(-5), "n=-5"},
	} {
		files, err := measure(partitioned(t, schema, c.spec, map[int]any{1000: c.value}))
		want := []manifests.MeasuredFile{{Rows: 10, Bytes: 100, Partition: c.want}, {Rows: 10, Bytes: 101, Partition: c.want}}
		if err != nil || !slices.Equal(files, want) {
			t.Errorf("got %+v, %v; want %q", files, err, c.want)
		}
	}
	body, _ := written(t, 1, "m", "a", "b", "c")
	if files, err := measure(body); err != nil || len(files) != 2 || files[0].Partition != "" || files[0].Bytes != 4 {
		t.Errorf("without partitions: %+v, %v", files, err)
	}
	for n := range len(body) {
		if files, err := measure(body[:n]); err == nil && len(files) > 0 {
			t.Errorf("no error for the first %d bytes of %d: %+v", n, len(body), files)
		}
	}
	if _, err := measure([]byte("PAR1")); err == nil || errors.Is(err, manifests.ErrTooMuch) {
		t.Errorf("no manifest: %v", err)
	}
}
