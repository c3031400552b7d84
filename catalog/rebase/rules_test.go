package rebase

import (
	"cmp"
	"testing"

	"moorage/manifests"
	"moorage/metadata"
)

const ownSnapshot = 7

func valid(n int64) manifests.Number { return manifests.Number{Value: n, Valid: true} }

// A manifest of an append has new files without sequence numbers, and existing files with their
// own.
func TestContentsFit(t *testing.T) {
	t.Parallel()
	added := manifests.File{Status: manifests.Added, Path: "a", Rows: 10, SnapshotID: valid(ownSnapshot)}
	existing := manifests.File{
		Status: manifests.Existing, Path: "b", Rows: 5, SnapshotID: valid(1), SequenceNumber: valid(1),
		FileSequenceNumber: valid(1), FirstRowID: valid(0),
	}
	counts := manifests.Counts{AddedFiles: 1, AddedRows: 10, ExistingFiles: 1, ExistingRows: 5}
	tests := []struct {
		name    string
		spoil   func(added, existing *manifests.File)
		version int // format version; 0 means 3
		want    metadata.Misfit
	}{
		{"as it should be", func(_, _ *manifests.File) {}, 0, metadata.Fits},
		{"an inherited snapshot", func(added, _ *manifests.File) { added.SnapshotID.Valid = false }, 0, metadata.Fits},
		{"another snapshot", func(added, _ *manifests.File) { added.SnapshotID.Value++ }, 0, misfitNumbers},
		{"a sequence number", func(added, _ *manifests.File) { added.SequenceNumber = valid(1) }, 0, misfitNumbers},
		{"a file sequence number", func(added, _ *manifests.File) { added.FileSequenceNumber = valid(1) }, 0, misfitNumbers},
		{"a first row id", func(added, _ *manifests.File) { added.FirstRowID = valid(1) }, 0, misfitNumbers},
		{"no snapshot", func(_, old *manifests.File) { old.SnapshotID.Valid = false }, 0, misfitNumbers},
		{"no sequence number", func(_, old *manifests.File) { old.SequenceNumber.Valid = false }, 0, misfitNumbers},
		{"no file sequence number", func(_, old *manifests.File) { old.FileSequenceNumber.Valid = false }, 0, misfitNumbers},
		{"no first row id", func(_, old *manifests.File) { old.FirstRowID.Valid = false }, 0, misfitNumbers},
		{"no first row id in version 2", func(_, old *manifests.File) { old.FirstRowID.Valid = false }, 2, metadata.Fits},
		{"deletes", func(added, _ *manifests.File) { added.Content = manifests.Deletes }, 0, misfitManifest},
		{"a deleted file", func(_, old *manifests.File) { old.Status = manifests.Deleted }, 0, misfitManifest},
		{"other rows", func(added, _ *manifests.File) { added.Rows++ }, 0, misfitManifest},
		{"other states", func(_, old *manifests.File) { *old = added }, 0, misfitManifest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := added, existing
			tt.spoil(&a, &b)
			e := &manifests.Entry{SnapshotID: ownSnapshot, Counts: counts}
			c := &contents{}
			c.add(e, a)
			c.add(e, b)
			if got := c.fits(e, cmp.Or(tt.version, 3)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConsents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		property string
		request  Choice
		want     bool
	}{
		{"", Unset, false}, {"", On, false}, {"", Off, false},
		{"on", Unset, false}, {"on", On, true}, {"on", Off, false},
		{"on-all", Unset, true}, {"on-all", On, true}, {"on-all", Off, false},
		{"off", On, false}, {"ON", On, false},
	} {
		if got := consents(tt.property, tt.request); got != tt.want {
			t.Errorf("table %q, request %d: got %t", tt.property, tt.request, got)
		}
	}
}
