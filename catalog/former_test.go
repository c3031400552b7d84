package catalog_test

import (
	"context"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// A file that left the metadata log long ago is about to be deleted by expiry. A concurrent
// register of it is refused, or finds the file.
func TestRegisterRacesWithTrimFormer(t *testing.T) {
	t.Parallel()
	const kept = time.Hour
	for _, row := range []struct {
		name string
		// applies is called before the Apply, and deletes during the first deletion.
		applies, deletes func(f *catalogkit.Fixture, register func() error)
		left             int // number of files left of the four old ones
	}{
		{"before the Apply", func(f *catalogkit.Fixture, register func() error) { must(f.T, register()) }, nil, 4},
		{"a commit before the Apply", func(f *catalogkit.Fixture, _ func() error) { f.MetadataFiles("t", 1) }, nil, 0},
		{"during the deletion", nil, func(f *catalogkit.Fixture, register func() error) {
			catalogkit.WantKind(f.T, register(), moorage.KindUnavailable)
		}, 0},
		{"unregistered during the deletion", nil, func(f *catalogkit.Fixture, register func() error) {
			last, err := f.UnregisterTable(f.Ctx, ident("t"))
			must(f.T, err)
			catalogkit.WantKind(f.T, register(), moorage.KindUnavailable)
			_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			must(f.T, err)
			catalogkit.WantKind(f.T, register(), moorage.KindUnavailable)
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var applies, deletes catalogkit.Hook
			f := catalogkit.New(t, deletes.OnDelete, func(config *catalog.Config) {
				config.Store = &hookedApplies{config.Store, &applies}
			})
			files := []string{f.Create("t").MetadataLocation}
			short, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "write.metadata.previous-versions-max", "2"))
			must(t, err)
			files = append(files, short.MetadataLocation)
			for range 5 {
				f.Clock.Advance(2 * time.Second) // so a register of the last files is not refused
				files = append(files, f.MetadataFiles("t", 1)...)
			}
			f.Clock.Advance(2 * kept)
			register := func() error {
				_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: files[2], Overwrite: true})
				return err
			}
			if row.applies != nil {
				applies.Once(func() { row.applies(f, register) })
			}
			if row.deletes != nil {
				deletes.Once(func() { row.deletes(f, register) })
			}
			pointer := f.PointerOf("t").ID
			tables := f.Catalog.Tables()
			_, err = tables.TrimFormer(f.Ctx, pointer, kept,
				func(context.Context, *catalog.Version) error { return nil })
			must(t, err)
			if left := f.Present(files[:4]); len(left) != row.left {
				t.Errorf("%d of the old files are left, want %d", len(left), row.left)
			}
			if left := f.Present(append(files[4:], f.PointerOf("t").MetadataLocation)); len(left) != 4 {
				t.Errorf("%d of the others are left, want all", len(left))
			}
			f.Clock.Advance(2 * time.Minute)
			if err := register(); row.left == 0 {
				catalogkit.WantKind(t, err, moorage.KindNotFound)
			} else {
				must(t, err)
			}
			f.WantClean()
		})
	}
}
