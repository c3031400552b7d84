package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
)

// The streaming reader gets the same from a list as iceberg-go, in each format version.
func TestEachListedAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			var files []iceberg.ManifestFile
			for i := range 3 {
				_, file := written(t, version, fmt.Sprintf("s3://b/m-%d.avro", i), "a", "b", "c", "d")
				files = append(files, file)
			}
			if version > 1 {
				files = append(files, iceberg.NewManifestFile(version, "s3://b/deletes.avro", 9, 0, snapshotID).
					Content(iceberg.ManifestContentDeletes).SequenceNum(sequence, sequence).AddedFiles(1).Build())
			}
			raw := writtenList(t, version, files...)
			want, err := iceberg.ReadManifestList(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			var got []manifests.Listed
			for listed, err := range manifests.EachListed(bytes.NewReader(raw)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, listed)
			}
			if len(got) != len(want) {
				t.Fatalf("%d manifests, want %d", len(got), len(want))
			}
			for i, w := range want {
				g := got[i]
				if g.Path() != w.FilePath() || g.Bytes != w.Length() ||
					g.Deletes() != (w.ManifestContent() == iceberg.ManifestContentDeletes) ||
					g.Added != w.AddedDataFiles() || g.Existing != w.ExistingDataFiles() ||
					g.Deleted != w.DeletedDataFiles() || g.Encrypted {
					t.Errorf("%d: got %+v, want %+v", i, g, w)
				}
			}
		})
	}
}

func TestEntriesSayWhatWasRemoved(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 3; version++ {
		body, file := written(t, version, "m", "existing", "added", "deleted")
		for listed, err := range manifests.EachListed(bytes.NewReader(writtenList(t, version, file))) {
			if err != nil {
				t.Fatal(err)
			}
			var got []manifests.NamedFile
			for entry, err := range listed.Entries(bytes.NewReader(body)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, entry)
			}
			want := []manifests.NamedFile{{"existing", false}, {"added", false}, {"deleted", true}}
			if !slices.Equal(got, want) || listed.Live() != 2 || !listed.MayDelete() {
				t.Errorf("v%d: got %v of %+v", version, got, listed)
			}
		}
	}
}

func TestEncryptedManifestsAreSeen(t *testing.T) {
	t.Parallel()
	file := iceberg.NewManifestFile(2, "m", 9, 0, snapshotID).KeyMetadata([]byte("key")).Build()
	for listed, err := range manifests.EachListed(bytes.NewReader(writtenList(t, 2, file))) {
		if err != nil || !listed.Encrypted {
			t.Errorf("got %+v, %v", listed, err)
		}
	}
}

func TestEachListedOfDamagedLists(t *testing.T) {
	t.Parallel()
	_, file := written(t, 2, "m", "a")
	whole := writtenList(t, 2, file)
	count := func(raw []byte) (n int, failure error) {
		for _, err := range manifests.EachListed(bytes.NewReader(raw)) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	for cut := range whole {
		if n, err := count(whole[:cut]); err == nil && n == 1 {
			t.Errorf("a list of %d bytes cut at %d was read whole", len(whole), cut)
		}
	}
	broken := errors.New("the disk is gone")
	for _, err := range manifests.EachListed(iotest.ErrReader(broken)) {
		if !errors.Is(err, broken) {
			t.Errorf("a broken disk is %v", err)
		}
	}
}

// readAsLibrary reads a list with iceberg-go, which panics on some input.
func readAsLibrary(raw []byte) (files []iceberg.ManifestFile, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	return iceberg.ReadManifestList(bytes.NewReader(raw))
}

// FuzzEachListed: the streaming reader and iceberg-go accept the same lists, and no list ends the
// process.
func FuzzEachListed(f *testing.F) {
	for version := 1; version <= 3; version++ {
		body, file := written(f, version, "m", "a", "b", "c")
		f.Add(body)
		f.Add(writtenList(f, version, file, file))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got []string
		var failure error
		for listed, err := range manifests.EachListed(bytes.NewReader(raw)) {
			if failure = err; err == nil {
				got = append(got, listed.Path())
			}
		}
		want, err := readAsLibrary(raw)
		if err != nil || failure != nil {
			return
		}
		var paths []string
		for _, m := range want {
			paths = append(paths, m.FilePath())
		}
		if !slices.Equal(got, paths) {
			t.Errorf("got %q, the library %q", got, paths)
		}
	})
}
