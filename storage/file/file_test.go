package file_test

import (
	"path/filepath"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/storagetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, newStore)
	storagetest.RunBatcher(t, newStore)
	storagetest.RunFolders(t, newStore)
	storagetest.RunLocal(t, newStore)
	storagetest.RunLister(t, newStore)
}

func newStore(t *testing.T) (storage.Store, string) {
	root := "file://" + filepath.Join(t.TempDir(), "w")
	store, err := file.New([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, root
}
