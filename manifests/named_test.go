package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
)

// written returns a manifest of one data file for each of paths, and its entry in a list. Their
// states take turns: existing, added, deleted.
func written(tb testing.TB, version int, at string, paths ...string) ([]byte, iceberg.ManifestFile) {
	tb.Helper()
	var body bytes.Buffer
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	writer, err := iceberg.NewManifestWriter(version, &body, *iceberg.UnpartitionedSpec, schema, snapshotID)
	if err != nil {
		tb.Fatal(err)
	}
	for i, path := range paths {
		file, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, 1, 4)
		if err != nil {
			tb.Fatal(err)
		}
		id, number := int64(snapshotID), int64(sequence)
		entry := iceberg.NewManifestEntry(iceberg.ManifestEntryStatus(i%3), &id, &number, &number, file.Build())
		add := []func(iceberg.ManifestEntry) error{writer.Existing, writer.Add, writer.Delete}[i%3]
		if err := add(entry); err != nil {
			tb.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	file, err := writer.ToManifestFile(at, int64(body.Len()))
	if err != nil {
		tb.Fatal(err)
	}
	return body.Bytes(), file
}

func writtenList(tb testing.TB, version int, listed ...iceberg.ManifestFile) []byte {
	tb.Helper()
	var body bytes.Buffer
	number, parent, row := int64(sequence), int64(6), int64(0)
	if err := iceberg.WriteManifestList(version, &body, snapshotID, &parent, &number, row, listed); err != nil {
		tb.Fatal(err)
	}
	return body.Bytes()
}

// namedFiles returns the files listed in a manifest.
func namedFiles(m manifests.Manifest, body io.Reader) (paths []string, err error) {
	for entry, fault := range m.Entries(body) {
		if fault != nil {
			return paths, fault
		}
		paths = append(paths, entry.Path)
	}
	return paths, nil
}

// readList returns the manifests in a list.
func readList(body io.Reader) (found []manifests.Manifest, err error) {
	for listed, fault := range manifests.EachListed(body) {
		if fault != nil {
			return nil, fault
		}
		found = append(found, listed.Manifest)
	}
	return found, nil
}

func TestListsNameManifestsAndManifestsNameFiles(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			want := []string{"s3://b/existing.parquet", "s3://b/added.parquet", "s3://b/deleted.parquet"}
			first, firstFile := written(t, version, "s3://b/m-1.avro", want...)
			_, secondFile := written(t, version, "s3://b/m-2.avro", "s3://b/other.parquet")
			found, err := readList(bytes.NewReader(writtenList(t, version, firstFile, secondFile)))
			if err != nil || len(found) != 2 || found[0].Path() != "s3://b/m-1.avro" || found[1].Path() != "s3://b/m-2.avro" {
				t.Fatalf("got %v, %v", found, err)
			}
			if got, err := namedFiles(found[0], bytes.NewReader(first)); err != nil || !slices.Equal(got, want) {
				t.Errorf("the listed manifest names %q, %v, want %q", got, err, want)
			}
			if got, err := namedFiles(manifests.Unlisted("s3://b/m-1.avro"), bytes.NewReader(first)); err != nil || !slices.Equal(got, want) {
				t.Errorf("the manifest without a list names %q, %v, want %q", got, err, want)
			}
		})
	}
}

// After a caller stops early, Entries reads nothing more.
func TestEntriesEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	body, _ := written(t, 2, "m", "a", "b", "c")
	count := 0
	for range manifests.Unlisted("m").Entries(bytes.NewReader(body)) {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d files were yielded", count)
	}
}

func TestDamagedFilesAreErrors(t *testing.T) {
	t.Parallel()
	body, file := written(t, 2, "m", "a", "b", "c")
	listed := writtenList(t, 2, file)
	for cut := range listed {
		if found, err := readList(bytes.NewReader(listed[:cut])); err == nil && len(found) == 1 {
			t.Errorf("a list of %d bytes cut at %d was read whole", len(listed), cut)
		}
	}
	for cut := range body {
		if got, err := namedFiles(manifests.Unlisted("m"), bytes.NewReader(body[:cut])); err == nil && len(got) == 3 {
			t.Errorf("a manifest of %d bytes cut at %d was read whole", len(body), cut)
		}
	}
	broken := errors.New("the disk is gone")
	if _, err := readList(iotest.ErrReader(broken)); err == nil {
		t.Error("a list was read from a broken disk")
	}
	if _, err := namedFiles(manifests.Unlisted("m"), iotest.ErrReader(broken)); err == nil {
		t.Error("a manifest was read from a broken disk")
	}
}

// FuzzNamedFiles: any client can claim any file to be a manifest list or a manifest. No file ends
// the process.
func FuzzNamedFiles(f *testing.F) {
	for _, paths := range [][]string{{"a"}, {"a", "b", "c"}} {
		body, file := written(f, 2, "m", paths...)
		f.Add(body)
		f.Add(writtenList(f, 2, file))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = namedFiles(manifests.Unlisted("m"), bytes.NewReader(raw))
		found, err := readList(bytes.NewReader(raw))
		if err != nil && len(found) > 0 {
			t.Errorf("an error and %d manifests", len(found))
		}
		for _, m := range found {
			_ = m.Path()
		}
	})
}
