package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/storage"
	"moorage/storage/file"
)

// A staged table's folder is made, because engines write there before they commit, and removed after a day if
// nothing was written.
func TestStagedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFixture(t, func(c *Config) {
		inMemory := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			if !strings.Contains(place.Roots[0], dir) {
				return inMemory(place)
			}
			opened, err := file.New(place.Roots)
			if err == nil {
				t.Cleanup(func() { opened.Close() })
			}
			return opened, err
		}
	})
	if _, err := f.CreateWarehouse(f.ctx, WarehouseSpec{Name: "disk", Location: "file://" + dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.ctx, "disk", moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{}
	for _, name := range []string{"empty", "written"} {
		staged, err := f.CreateTable(f.ctx, moorage.Identifier{Warehouse: "disk", Namespace: moorage.Namespace{"ns"}, Name: name},
			CreateTableRequest{Schema: []byte(testSchema), Stage: true})
		if err != nil {
			t.Fatal(err)
		}
		folders[name] = filepath.Join(strings.TrimPrefix(staged.Document.Location(), "file://"), "metadata")
	}
	if err := os.WriteFile(filepath.Join(folders["written"], "snap.avro"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders { // to the storage, which has a clock of its own, they are two days old
		if err := os.Chtimes(folder, time.Time{}, time.Now().Add(-2*stagedFolderAge)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		passes time.Duration
		want   map[string]bool
	}{
		{stagedFolderAge - time.Minute, map[string]bool{"empty": true, "written": true}},
		{2 * time.Minute, map[string]bool{"empty": false, "written": true}},
	} {
		f.clock.Advance(step.passes)
		if err := f.sweepAll(f.ctx); err != nil {
			t.Fatal(err)
		}
		for name, folder := range folders {
			if _, err := os.Stat(folder); err != nil && !errors.Is(err, fs.ErrNotExist) || (err == nil) != step.want[name] {
				t.Errorf("after %s more the folder that is %s: %v, want it there: %t", step.passes, name, err, step.want[name])
			}
		}
	}
}
