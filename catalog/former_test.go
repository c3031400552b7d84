package catalog_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
)

// A register of a file that the expiry is about to delete, because it left the metadata log long
// ago, is refused or finds its file.
func TestRegisterRacesWithTrimFormer(t *testing.T) {
	t.Parallel()
	const kept = time.Hour
	for _, row := range []struct {
		name string
		// applies happens before the Apply, and deletes during the first deletion.
		applies, deletes func(f *fixture, register func() error)
		left             int // of the four files that are old enough
	}{
		{"before the Apply", func(f *fixture, register func() error) { must(f.t, register()) }, nil, 4},
		{"a commit before the Apply", func(f *fixture, _ func() error) { f.metadataFiles("t", 1) }, nil, 0},
		{"during the deletion", nil, func(f *fixture, register func() error) {
			wantKind(f.t, register(), moorage.KindUnavailable)
		}, 0},
		{"unregistered during the deletion", nil, func(f *fixture, register func() error) {
			last, err := f.UnregisterTable(f.ctx, ident("t"))
			must(f.t, err)
			wantKind(f.t, register(), moorage.KindUnavailable)
			_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			must(f.t, err)
			wantKind(f.t, register(), moorage.KindUnavailable)
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var applies, deletes hook
			f := newFixture(t, deletes.onDelete, func(config *catalog.Config) {
				config.Store = &hookedApplies{config.Store, &applies}
			})
			files := []string{f.create("t").MetadataLocation}
			short, err := f.Commit(f.ctx, ident("t"), setProperty(t, "write.metadata.previous-versions-max", "2"))
			must(t, err)
			files = append(files, short.MetadataLocation)
			for range 5 {
				f.clock.Advance(2 * time.Second) // a register of the last ones is not to be refused
				files = append(files, f.metadataFiles("t", 1)...)
			}
			f.clock.Advance(2 * kept)
			register := func() error {
				_, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: files[2], Overwrite: true})
				return err
			}
			if row.applies != nil {
				applies.once(func() { row.applies(f, register) })
			}
			if row.deletes != nil {
				deletes.once(func() { row.deletes(f, register) })
			}
			pointer := f.pointerOf("t").ID
			tables := f.Catalog.Tables()
			_, err = tables.TrimFormer(f.ctx, pointer, kept)
			must(t, err)
			if left := f.present(files[:4]); len(left) != row.left {
				t.Errorf("%d of the old files are left, want %d", len(left), row.left)
			}
			if left := f.present(append(files[4:], f.pointerOf("t").MetadataLocation)); len(left) != 4 {
				t.Errorf("%d of the others are left, want all", len(left))
			}
			f.clock.Advance(2 * time.Minute)
			if err := register(); row.left == 0 {
				wantKind(t, err, moorage.KindNotFound)
			} else {
				must(t, err)
			}
			f.wantClean()
		})
	}
}
