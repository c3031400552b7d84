package retention_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/file"
)

// Staging a table creates its folder, because engines write there before they commit. If nothing is
// written to the folder, the sweep removes it after a day.
func TestStagedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFixture(t)
	f.newCatalog("disk", "file://"+dir, func(roots []string) (storage.Store, error) {
		opened, err := file.New(roots)
		if err == nil {
			t.Cleanup(func() { opened.Close() })
		}
		return opened, err
	})
	folders := map[string]string{}
	for _, name := range []string{"empty", "written"} {
		staged, err := f.catalog.CreateTable(f.ctx, moorage.Identifier{Warehouse: "disk", Namespace: moorage.Namespace{"ns"}, Name: name},
			catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true})
		if err != nil {
			t.Fatal(err)
		}
		folders[name] = filepath.Join(strings.TrimPrefix(staged.Document.Location(), "file://"), "metadata")
	}
	if err := os.WriteFile(filepath.Join(folders["written"], "snap.avro"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders { // by the storage's own clock, they are two days old
		if err := os.Chtimes(folder, time.Time{}, time.Now().Add(-2*retention.StagedAge)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		passes time.Duration
		want   map[string]bool
	}{
		{retention.StagedAge - time.Minute, map[string]bool{"empty": true, "written": true}},
		{2 * time.Minute, map[string]bool{"empty": false, "written": true}},
	} {
		f.clock.Advance(step.passes)
		if err := f.RunOnce(f.ctx, retention.Staged); err != nil {
			t.Fatal(err)
		}
		for name, folder := range folders {
			if _, err := os.Stat(folder); err != nil && !errors.Is(err, fs.ErrNotExist) || (err == nil) != step.want[name] {
				t.Errorf("after %s more the folder that is %s: %v, want it there: %t", step.passes, name, err, step.want[name])
			}
		}
	}
}

// foldersThatHang is a storage whose removals of folders hang. Such a call does not end with its
// context, only when answers is closed.
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

// stubbornFolders is a storage whose removals of folders do not end with their context.
type stubbornFolders struct{ *foldersThatHang }

func (f stubbornFolders) RemoveEmptyFolder(context.Context, string, time.Duration) (bool, error) {
	<-f.answers
	return true, nil
}

// A storage that hangs does not stop the other jobs: keys, changes and windows continue.
func TestSweepBesideStagedFoldersThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *retention.Config) { c.Now = time.Now })
		stuck := stubbornFolders{&foldersThatHang{answers: make(chan struct{})}}
		f.RememberStaged("stuck", stuck, "file:///stuck/t")
		f.create("t")
		must(t, f.catalog.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
		f.Start()
		time.Sleep(week + retention.StagedAge)
		f.create("t") // its location is free because its window has ended
		pointers, err := f.store.List(f.ctx, registry.TablePointer, "", "", 10)
		if err != nil || len(pointers) != 1 {
			t.Errorf("%d pointers, %v; want that of the new table", len(pointers), err)
		}
		close(stuck.answers)
		f.Stop()
	})
}

// If the storage of a warehouse does not answer, the sweep leaves its folders for a later round. It
// removes folders of other warehouses.
func TestStagedFoldersOfAStorageThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stuck, other := &foldersThatHang{answers: make(chan struct{})}, &foldersThatHang{answers: make(chan struct{})}
		close(other.answers)
		for range 100 {
			f.RememberStaged("stuck", stuck, "file:///stuck/t")
			f.RememberStaged("other", other, "file:///other/t")
		}
		f.clock.Advance(retention.StagedAge + time.Hour)
		began := time.Now()
		if err := f.RunOnce(f.ctx, retention.Staged); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("answered %v", err)
		}
		if took := time.Since(began); took != retention.StagedRemoveMax || stuck.asked.Load() != 1 || other.asked.Load() != 100 {
			t.Errorf("after %s it had asked for %d of a hundred folders that hang and %d of a hundred others", took, stuck.asked.Load(), other.asked.Load())
		}
		close(stuck.answers)
		must(t, f.RunOnce(f.ctx, retention.Staged))
		if stuck.asked.Load() != 101 || other.asked.Load() != 100 {
			t.Errorf("then it had asked for %d and %d", stuck.asked.Load(), other.asked.Load())
		}
	})
}

// refusingFolders is a storage that cannot remove one of its folders.
type refusingFolders struct {
	storage.Store
	refused string
	removed []string
}

var errRefused = errors.New("refused")

func (s *refusingFolders) MakeFolder(context.Context, string) error { return nil }

func (s *refusingFolders) RemoveEmptyFolder(_ context.Context, location string, _ time.Duration) (bool, error) {
	if location == s.refused {
		return false, errRefused
	}
	s.removed = append(s.removed, location)
	return true, nil
}

// If one folder of a staged table cannot be removed, the others still are. The number of remembered
// folders is bounded.
func TestSweepOfStagedFolders(t *testing.T) {
	t.Parallel()
	store := &refusingFolders{refused: "1"}
	f := newFixture(t)
	for i := range 3 {
		f.RememberStaged("w", store, fmt.Sprint(i))
	}
	f.clock.Advance(retention.StagedAge + 1)
	if err := f.RunOnce(f.ctx, retention.Staged); !errors.Is(err, errRefused) {
		t.Errorf("got %v, want what kept a folder there", err)
	}
	if got := fmt.Sprint(store.removed); got != "[0 2]" {
		t.Errorf("removed %s, want [0 2]", got)
	}
	for range retention.StagedMax + 1 {
		f.RememberStaged("w", store, "folder")
	}
	if got := f.StagedFolders(); got > retention.StagedMax {
		t.Errorf("%d folders are remembered, want at most %d", got, retention.StagedMax)
	}
}
