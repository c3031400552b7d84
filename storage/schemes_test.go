package storage_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
	"moorage/storage/memory"
	"moorage/testkit/storagetest"
)

// newSchemes returns a store of files in a folder and of objects in memory, and the roots of both.
func newSchemes(t *testing.T) (store storage.Schemes, fileRoot, objectRoot string) {
	t.Helper()
	fileRoot, objectRoot = "file://"+t.TempDir()+"/w", "s3://bucket/w"
	files, err := file.New([]string{fileRoot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	objects, err := memory.New().Within([]string{objectRoot})
	if err != nil {
		t.Fatal(err)
	}
	return storage.Schemes{storage.SchemeFile: files, storage.SchemeS3: objects}, fileRoot, objectRoot
}

func TestSchemes(t *testing.T) {
	t.Parallel()
	openFiles := func(t *testing.T) (storage.Store, string) {
		store, root, _ := newSchemes(t)
		return store, root
	}
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		storagetest.Run(t, openFiles)
		storagetest.RunFolders(t, openFiles)
		storagetest.RunLocal(t, openFiles)
	})
	t.Run("objects", func(t *testing.T) {
		t.Parallel()
		storagetest.Run(t, func(t *testing.T) (storage.Store, string) {
			store, _, root := newSchemes(t)
			return store, root
		})
	})
}

func TestSchemesDeletesInEach(t *testing.T) {
	t.Parallel()
	store, fileRoot, objectRoot := newSchemes(t)
	locations := []string{fileRoot + "/a", objectRoot + "/a"}
	for _, location := range locations {
		if err := store.Create(t.Context(), location, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Delete(t.Context(), append(locations, "memory://x/a")...); !errors.Is(err, storage.ErrOutside) {
		t.Errorf("Delete = %v, want ErrOutside for the one location", err)
	}
	for _, location := range locations {
		if _, err := store.Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat(%s) = %v, want ErrNotFound", location, err)
		}
	}
}

func TestSchemesWithoutFolders(t *testing.T) {
	t.Parallel()
	store, _, objectRoot := newSchemes(t)
	if err := store.MakeFolder(t.Context(), objectRoot+"/folder"); err != nil {
		t.Errorf("MakeFolder: %v", err)
	}
	if removed, err := store.RemoveEmptyFolder(t.Context(), objectRoot+"/folder", 0); removed || err != nil {
		t.Errorf("RemoveEmptyFolder = %t, %v", removed, err)
	}
}

// remote is a store that implements storage.Remote with fixed answers.
type remote struct {
	storage.Store
	config map[string]string
	err    error
}

func (r remote) Probe(context.Context) error     { return r.err }
func (r remote) ClientConfig() map[string]string { return r.config }

func TestSchemesHaveThePowersOfTheirParts(t *testing.T) {
	t.Parallel()
	store, fileRoot, objectRoot := newSchemes(t)
	if err := store.Probe(t.Context()); err != nil || store.ClientConfig() != nil {
		t.Errorf("without remote parts: %v, %v", err, store.ClientConfig())
	}
	broken := errors.New("broken")
	store[storage.SchemeS3] = remote{store[storage.SchemeS3], map[string]string{"s3.region": "eu"}, broken}
	if err := store.Probe(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Probe = %v", err)
	}
	if got := store.ClientConfig(); !maps.Equal(got, map[string]string{"s3.region": "eu"}) {
		t.Errorf("ClientConfig = %v", got)
	}
	if got := []bool{store.MayBeGone(fileRoot + "/a"), store.MayBeGone(objectRoot + "/a"), store.MayBeGone("relative"), store.MayBeGone("memory://x/a")}; !slices.Equal(got, []bool{true, false, false, false}) {
		t.Errorf("MayBeGone: %v", got)
	}
}
