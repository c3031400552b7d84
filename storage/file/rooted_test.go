package file

import (
	"path/filepath"
	"testing"

	"moorage/storage"
	"moorage/testkit/storagetest"
)

// rootedFS is a folder of an operating system that has no openat2(2).
type rootedFS struct{ rootFS }

func (r rootedFS) Folder(name string) (folderFS, error) { return r.rootedFolder(name) }

// TestStoreWithoutOpenat2 checks the contract on a system where only os.Root can open folders.
func TestStoreWithoutOpenat2(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		root := "file://" + filepath.ToSlash(filepath.Join(t.TempDir(), "w"))
		store, err := NewOpener().open([]string{root}, func(folder string) (fileSystem, error) {
			files, err := openRoot(folder)
			if err != nil {
				return nil, err
			}
			return rootedFS{files.(rootFS)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store, root
	}
	storagetest.Run(t, newStore)
	storagetest.RunBatcher(t, newStore)
}
