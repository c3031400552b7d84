package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
)

// TestNewExisting opens an existing root and a missing one. The missing root is not created.
func TestNewExisting(t *testing.T) {
	t.Parallel()
	there, absent := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	store, err := file.NewExisting([]string{"file://" + there, "file://" + absent})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Create(t.Context(), "file://"+there+"/x", []byte("x")); err != nil {
		t.Errorf("create: %v", err)
	}
	file := "file://" + absent + "/x"
	_, statErr := store.Stat(t.Context(), file)
	_, _, openErr := store.Open(t.Context(), file)
	for what, err := range map[string]error{"stat": statErr, "open": openErr} {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s below a root that is not there: %v, want ErrNotFound", what, err)
		}
	}
	if err := store.Create(t.Context(), file, nil); err == nil {
		t.Error("create below a root that is not there: no error")
	}
	if err := store.Delete(t.Context(), file); err != nil {
		t.Errorf("delete below a root that is not there: %v", err)
	}
	if removed, err := store.RemoveEmptyFolder(t.Context(), "file://"+absent, 0); removed || err != nil {
		t.Errorf("remove an empty folder that is not there: %t, %v", removed, err)
	}
	if _, err := os.Lstat(filepath.Dir(absent)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}

// TestNewExistingRefuses opens something that is not a folder.
func TestNewExistingRefuses(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.NewExisting([]string{"file://" + name}); err == nil {
		t.Error("a file was opened as a folder")
	}
}
