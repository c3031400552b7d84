package storagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/storage"
)

// RunLister tests the contract of storage.Lister with the stores returned by open, which must
// implement it.
func RunLister(t *testing.T, open Open) {
	t.Helper()
	run(t, open, []check[listStore]{
		{"List", testList},
		{"ListKeys", testListKeys},
		{"ListPages", testListPages},
		{"ListIsOfOneFolder", testListIsOfOneFolder},
		{"ListDates", testListDates},
		{"ListMissing", testListMissing},
		{"ListOutside", testListOutside},
		{"ListLinks", testListLinks},
	})
}

type listStore interface {
	storage.Store
	storage.Lister
}

// listAll returns the names that a listing of folder contains, read in pages of limit names.
func listAll(t *testing.T, store listStore, folder string, limit int) []string {
	t.Helper()
	names := []string{}
	normal, err := storage.Normalise(folder)
	if err != nil {
		t.Fatal(err)
	}
	for after := ""; ; {
		page, err := store.List(t.Context(), folder, after, limit)
		if err != nil {
			t.Fatalf("List(%q, %q): %v", folder, after, err)
		}
		if len(page.Files) > limit {
			t.Errorf("List returned %d files, at most %d were wanted", len(page.Files), limit)
		}
		for _, found := range page.Files {
			names = append(names, strings.TrimPrefix(found.Location, normal+"/"))
		}
		if page.Next == "" {
			slices.Sort(names)
			return names
		}
		if page.Next == after {
			t.Fatalf("the page after %q ends there", after)
		}
		after = page.Next
	}
}

func mustList(t *testing.T, store listStore, folder string, limit int, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := listAll(t, store, folder, limit); !slices.Equal(got, want) {
		t.Errorf("below %s, %d at a time, are listed %q, want %q", folder, limit, got, want)
	}
}

func testList(t *testing.T, store listStore, root string) {
	names := []string{
		"data/a.parquet", "data/a/b.parquet", "data/a-b.parquet", "data.parquet", "z", "data/p=1/x.parquet",
		"data/p=%20/x.parquet",
		"data/ü/é.parquet", "data/a b.parquet", "data/_hidden", "data/.hidden", "metadata/1.metadata.json",
	}
	for _, name := range names {
		mustCreate(t, store, root+"/"+name, name)
	}
	for _, limit := range []int{1, 3, 1000} {
		mustList(t, store, root, limit, names...)
	}
	mustList(t, store, root+"/data/a", 10, "b.parquet")
	mustList(t, store, root+"/metadata/", 10, "1.metadata.json")
	page, err := store.List(t.Context(), root+"/data/a", "", 10)
	if err != nil || len(page.Files) != 1 || page.Files[0].Bytes != int64(len("data/a/b.parquet")) {
		t.Errorf("List = %+v, %v", page, err)
	}
}

// testListKeys makes, lists, reads and deletes files whose names contain bytes that a store might
// misread.
func testListKeys(t *testing.T, store listStore, root string) {
	names := []string{
		"%", "%%", "%3F", "%3f", "%2F", "%25", "a%zz", "a%20b", "a b", " ", "...", "..a", "a..", ".a", "a.b.c",
		"é", "e\u0301", "日本語", "🦆", "a+b", "?versionId=1", "a?b=c&d", "a#b?c", "?", "#", "a?/b", "a#/b", "p=a?b/c",
	}
	for c := byte(' '); c <= '~'; c++ {
		if c == '/' || c == '\\' && strings.HasPrefix(root, "s3:") { // SeaweedFS lists it as a slash
			continue
		}
		names = append(names, fmt.Sprintf("x%cy/%cz%c", c, c, c))
	}
	names = slices.DeleteFunc(names, func(name string) bool { // names that the scheme cannot express
		_, err := storage.ParseFile(storage.Join(root, "k", name))
		return err != nil
	})
	var locations []string
	for _, name := range names {
		locations = append(locations, storage.Join(root, "k", name))
		mustCreate(t, store, storage.Join(root, "k", name), name)
	}
	mustList(t, store, root+"/k", 1000, slices.Clone(names)...) // mustList sorts them
	mustList(t, store, root+"/k", 7, slices.Clone(names)...)
	for i, name := range names {
		mustHold(t, store, locations[i], name)
	}
	for i, location := range locations {
		if i%2 == 0 {
			mustDelete(t, store, location) // separately
			mustMiss(t, store, location)
		}
	}
	mustDelete(t, store, locations...)
	mustList(t, store, root+"/k", 1000)
}

func mustDelete(t *testing.T, store storage.Store, locations ...string) {
	t.Helper()
	if err := store.Delete(t.Context(), locations...); err != nil {
		t.Errorf("Delete(%q): %v", locations, err)
	}
}

func testListPages(t *testing.T, store listStore, root string) {
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("%d/%d", i%4, i))
		mustCreate(t, store, root+"/t/"+names[i], "body")
	}
	mustList(t, store, root+"/t", 4, names...)
}

func testListIsOfOneFolder(t *testing.T, store listStore, root string) {
	for _, name := range []string{"t/a", "t2/b", "t.c", "ta"} {
		mustCreate(t, store, root+"/"+name, "body")
	}
	mustList(t, store, root+"/t", 10, "a")
	mustList(t, store, root+"/t/a", 10)
}

// testListDates checks the times in a listing. By List's clock, the time of a file must lie between
// the beginning and the end of its creation.
func testListDates(t *testing.T, store listStore, root string) {
	mustCreate(t, store, root+"/a", "body")
	page, err := store.List(t.Context(), root, "", 10)
	if err != nil || len(page.Files) != 1 {
		t.Fatalf("List = %+v, %v", page, err)
	}
	const second = time.Second // the precision of some servers
	if age := page.Now.Sub(page.Files[0].Modified); age < -2*second || age > time.Minute {
		t.Errorf("a new file is %v old", age)
	}
	described, err := store.Stat(t.Context(), root+"/a")
	if err != nil || described.Modified.Truncate(second).After(page.Files[0].Modified.Add(second)) {
		t.Errorf("Stat says %v, %v, and List %v", described.Modified, err, page.Files[0].Modified)
	}
	mustList(t, store, root, 10, "a") // the file that List itself made must be gone
}

func testListMissing(t *testing.T, store listStore, root string) {
	mustList(t, store, root+"/none", 10)
	mustCreate(t, store, root+"/a", "body")
	mustList(t, store, root+"/a/b", 10)
}

func testListOutside(t *testing.T, store listStore, root string) {
	for _, folder := range []string{root + "x", root + "/../x", "relative"} {
		if page, err := store.List(t.Context(), folder, "", 10); err == nil {
			t.Errorf("List(%q) = %+v", folder, page)
		}
	}
}

// testListLinks makes links in the folder of a store of local files: to a folder, to a file, to
// itself and out of the store. Neither the links nor their targets may be listed.
func testListLinks(t *testing.T, store listStore, root string) {
	folder, isFile := strings.CutPrefix(root, "file://")
	mustCreate(t, store, root+"/t/mine", "body")
	if info, err := os.Stat(folder); !isFile || err != nil || !info.IsDir() {
		return // an object store has no links
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "theirs"), []byte("body"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, store, root+"/other/theirs", "body")
	for link, target := range map[string]string{
		"folder": "../other", "file": "../other/theirs", "loop": ".", "up": "..", "self": "self", "out": outside,
		"gone": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(folder, "t", link)); err != nil {
			t.Fatal(err)
		}
	}
	mustList(t, store, root+"/t", 10, "mine")
	for _, link := range []string{"folder", "loop", "up", "out"} {
		mustList(t, store, root+"/t/"+link, 10)
	}
}
