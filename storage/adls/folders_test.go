package adls_test

import (
	"errors"
	"slices"
	"testing"

	"moorage/storage"
	"moorage/testkit/fakecloud"
)

// TestFolders: in a hierarchical account, a folder is an entry but not a file.
func TestFolders(t *testing.T) {
	t.Parallel()
	lake := fakecloud.StartLake(t)
	container := lake.Behind.NewContainer(t)
	root := container + "/w"
	store := open(t, identified(t, lake), root)
	file := storage.Join(root, "t", "data", "a")
	if err := store.Create(t.Context(), file, []byte("body")); err != nil {
		t.Fatal(err)
	}
	want := []string{"w", "w/t", "w/t/data", "w/t/data/a"}
	if got := lake.Behind.Names(t, container); !slices.Equal(got, want) {
		t.Fatalf("the account has the entries %q, want %q", got, want)
	}
	for _, folder := range []string{storage.Join(root, "t"), storage.Join(root, "t", "data")} {
		if _, err := store.Stat(t.Context(), folder); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat(%q) = %v, want ErrNotFound", folder, err)
		}
		if _, _, err := store.Open(t.Context(), folder); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Open(%q) = %v, want ErrNotFound", folder, err)
		}
		if err := store.Create(t.Context(), folder, nil); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Create(%q) = %v, want ErrNotFound: no file can have that name", folder, err)
		}
		if err := store.Delete(t.Context(), folder); err != nil {
			t.Errorf("Delete(%q) = %v", folder, err)
		}
	}
	page, err := store.List(t.Context(), root, "", 10)
	if err != nil || len(page.Files) != 1 || page.Files[0].Location != file {
		t.Errorf("List = %+v, %v; want %q alone", page, err, file)
	}
	if err := store.Delete(t.Context(), file); err != nil {
		t.Error(err)
	}
	if page, err := store.List(t.Context(), root, "", 10); err != nil || len(page.Files) != 0 {
		t.Errorf("List after Delete = %+v, %v; want nothing", page, err)
	}
}
