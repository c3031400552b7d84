package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/file"
)

// A create that stages a table makes its folder, because engines write there before they commit.
// The sweep removes the folder after a day if nothing was written.
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
		if err := f.sweepStaged(f.ctx); err != nil {
			t.Fatal(err)
		}
		for name, folder := range folders {
			if _, err := os.Stat(folder); err != nil && !errors.Is(err, fs.ErrNotExist) || (err == nil) != step.want[name] {
				t.Errorf("after %s more the folder that is %s: %v, want it there: %t", step.passes, name, err, step.want[name])
			}
		}
	}
}

// foldersThatHang are folders of a storage that hangs. A call that removes one does not end with
// its context, only when answers is closed.
type foldersThatHang struct {
	storage.Store
	answers chan struct{}
	asked   atomic.Int64
}

func (*foldersThatHang) MakeFolder(context.Context, string) error { return nil }

func (f *foldersThatHang) RemoveEmptyFolder(ctx context.Context, _ string, _ time.Duration) (bool, error) {
	f.asked.Add(1)
	select {
	case <-f.answers:
		return true, nil
	case <-ctx.Done():
		return false, storage.ErrUnavailable
	}
}

// stubbornFolders are folders whose removal does not end with its context.
type stubbornFolders struct{ *foldersThatHang }

func (f stubbornFolders) RemoveEmptyFolder(context.Context, string, time.Duration) (bool, error) {
	<-f.answers
	return true, nil
}

// A storage that hangs keeps the sweep from nothing: keys, changes and windows go on.
func TestSweepBesideStagedFoldersThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now = time.Now })
		stuck := stubbornFolders{&foldersThatHang{answers: make(chan struct{})}}
		must(t, f.staged.make(f.ctx, "stuck", stuck, "file:///stuck/t", time.Now()))
		f.create("t")
		must(t, f.DropTable(f.ctx, ident("t"), DropOptions{}))
		f.Start()
		time.Sleep(f.undropWindow + stagedFolderAge)
		f.create("t") // its location is free: the window was ended
		pointers, err := f.store.List(f.ctx, registry.TablePointer, "", "", 10)
		if err != nil || len(pointers) != 1 {
			t.Errorf("%d pointers, %v; want that of the new table", len(pointers), err)
		}
		close(stuck.answers)
		f.Stop()
	})
}

// The sweep leaves folders of a warehouse whose storage does not answer for a later round. It
// removes those of others.
func TestStagedFoldersOfAStorageThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stuck, other := &foldersThatHang{answers: make(chan struct{})}, &foldersThatHang{answers: make(chan struct{})}
		close(other.answers)
		for range 100 {
			must(t, f.staged.make(f.ctx, "stuck", stuck, "file:///stuck/t", f.now()))
			must(t, f.staged.make(f.ctx, "other", other, "file:///other/t", f.now()))
		}
		f.clock.Advance(stagedFolderAge + time.Hour)
		began := time.Now()
		if err := f.sweepStaged(f.ctx); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("answered %v", err)
		}
		if took := time.Since(began); took != stagedRemoveMax || stuck.asked.Load() != 1 || other.asked.Load() != 100 {
			t.Errorf("after %s it had asked for %d of a hundred folders that hang and %d of a hundred others", took, stuck.asked.Load(), other.asked.Load())
		}
		close(stuck.answers)
		must(t, f.sweepStaged(f.ctx))
		if stuck.asked.Load() != 101 || other.asked.Load() != 100 {
			t.Errorf("then it had asked for %d and %d", stuck.asked.Load(), other.asked.Load())
		}
	})
}
