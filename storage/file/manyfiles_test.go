package file_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/scale"
)

var longFlag = flag.Bool("long", false, "list a folder of a million files")

// listAll lists a folder by pages of limit.
func listAll(t *testing.T, store *file.Store, folder string, limit int) (all []string) {
	t.Helper()
	for after := ""; ; {
		page, err := store.List(t.Context(), folder, after, limit)
		if err != nil || len(page.Files) > limit {
			t.Fatalf("a page of %d has %d files: %v", limit, len(page.Files), err)
		}
		for _, file := range page.Files {
			all = append(all, file.Location)
		}
		if page.Next != "" && page.Next <= after {
			t.Fatalf("the page behind %q is followed by that behind %q", after, page.Next)
		}
		if after = page.Next; after == "" {
			return all
		}
	}
}

// Pages of any length yield the same files, even with links, empty folders and unfinished files
// between them.
func TestListByShortPages(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "a.b", "b", "moorage-1.tmp", "c", "c-d", "z"}
	for range 200 {
		path := folder
		for range random.IntN(3) {
			path = filepath.Join(path, names[random.IntN(len(names))])
		}
		var err error
		switch path = filepath.Join(path, fmt.Sprint(names[random.IntN(len(names))], random.IntN(3))); random.IntN(4) {
		case 0:
			err = os.MkdirAll(path, 0o755)
		case 1:
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				_ = os.Symlink(folder, path)
			}
		default:
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				_ = os.WriteFile(path, nil, 0o644)
			}
		}
		if err != nil {
			continue // a file has this name
		}
	}
	store, err := file.New([]string{"file://" + folder})
	if err != nil {
		t.Fatal(err)
	}
	want := listAll(t, store, "file://"+folder, 10_000)
	if len(want) < 50 || !slices.IsSorted(want) {
		t.Fatalf("the folder has %d files", len(want))
	}
	for _, limit := range []int{1, 2, 3, 7, 50} {
		if got := listAll(t, store, "file://"+folder, limit); !slices.Equal(got, want) {
			t.Errorf("pages of %d have %d files, want %d", limit, len(got), len(want))
		}
	}
}

// A folder is never in memory as a whole. Not parallel, because the test measures the process.
func TestListOfAFolderOfManyFiles(t *testing.T) {
	const pages = 3
	files := 50_000
	if *longFlag {
		files = 1_000_000
	}
	folder := t.TempDir()
	peak := scale.Peak(t, func(t *testing.T) func() {
		for i := range files {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%09d-a-name-as-engines-give-it.parquet", i)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		store, err := file.New([]string{"file://" + folder})
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			page := storage.Page{}
			for range pages {
				var err error
				if page, err = store.List(t.Context(), "file://"+folder, page.Next, 1000); err != nil || len(page.Files) != 1000 {
					t.Fatalf("a page has %d files: %v", len(page.Files), err)
				}
			}
		}
	})
	t.Logf("%d files: %d MB above idle", files, peak>>20)
	if most := int64(10<<20) * scale.MemoryFactor; peak > most && !*longFlag || peak > scale.AboveIdleMax/4 {
		t.Errorf("%d files take %d bytes above idle", files, peak)
	}
}
