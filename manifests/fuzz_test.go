package manifests_test

import (
	"bytes"
	"testing"

	"moorage/manifests"
)

// FuzzReadList: any client can claim any file to be a list. The file is refused, or is written back
// unchanged.
func FuzzReadList(f *testing.F) {
	for _, codec := range codecs(f) {
		f.Add(file(f, record("m", fieldPath, fieldLength, fieldSpec, fieldSnapshot, fieldUnknown), codec, 1, ships(1), ships(2)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const bytesMax = 1 << 20
		l, err := new(manifests.Reader).List(raw, nil, bytesMax)
		if err != nil {
			if l != nil || !isFault(err) {
				t.Fatalf("got %v, %v", l, err)
			}
			return
		}
		if l.Size() > 2*bytesMax {
			t.Errorf("the list has %d bytes", l.Size())
		}
		l2, out := built(t, l, unchanged(l.Entries())...)
		l3 := list(t, out)
		if len(l2.Entries()) != len(l.Entries()) || len(l3.Entries()) != len(l.Entries()) {
			t.Fatalf("%d entries became %d and %d", len(l.Entries()), len(l2.Entries()), len(l3.Entries()))
		}
		for i, e := range l.Entries() {
			if l3.Entries()[i].Raw != e.Raw {
				t.Errorf("record %d was %q and is %q", i, e.Raw, l3.Entries()[i].Raw)
			}
		}
	})
}

// FuzzTwoLists: a list made from records of any other list has all their values, or is refused.
func FuzzTwoLists(f *testing.F) {
	f.Add(file(f, javaList(fieldFirst), nil, 1, ships(1)), file(f, goList(), nil, 1, ships(2)))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		like, err := new(manifests.Reader).List(first, nil, 1<<20)
		if err != nil {
			return
		}
		other, err := new(manifests.Reader).List(second, nil, 1<<20)
		if err != nil {
			return
		}
		l, err := manifests.NewList(manifests.Header{}, nil, other.Entries(), like, other)
		if err != nil {
			if !isFault(err) {
				t.Error(err)
			}
			return
		}
		for i, e := range l.Entries() {
			got, want := *e, *other.Entries()[i]
			if got.Path != want.Path || got.Length != want.Length || got.SnapshotID != want.SnapshotID || got.SpecID != want.SpecID ||
				got.Content != want.Content || got.Counts != want.Counts || got.FirstRowID != want.FirstRowID ||
				got.SequenceNumber != want.SequenceNumber || got.MinSequenceNumber != want.MinSequenceNumber {
				t.Errorf("record %d was %+v and is %+v", i, want, got)
			}
		}
	})
}

// FuzzFiles: any client can claim any file to be a manifest.
func FuzzFiles(f *testing.F) {
	for version := 1; version <= 3; version++ {
		raw, _ := icebergManifest(f, version)
		f.Add(raw)
	}
	f.Add(file(f, entrySchema(), nil, 1, entry(func(row, row) {})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		all, err := files(entryOf(t, raw), raw, 1<<20)
		if err != nil && !isFault(err) {
			t.Error(err)
		}
		for _, file := range all {
			if file.Path == "" || file.Rows < 0 || file.Status < manifests.Existing || file.Status > manifests.Deleted {
				t.Errorf("a file is %+v", file)
			}
		}
		if !bytes.Equal(raw, before) {
			t.Error("the bytes were changed")
		}
	})
}
