package file

import (
	"os"
	"path/filepath"
	"testing"
)

// The kernel remembers a file that was just made, and takes nothing else for one.
func TestRemembers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.Mkdir(filepath.Join(folder, "folder"), 0o777),
		os.WriteFile(filepath.Join(folder, "folder", "file"), nil, 0o666),
		os.WriteFile(filepath.Join(folder, "removed"), nil, 0o666),
		os.Remove(filepath.Join(folder, "removed")),
		os.WriteFile(outside, nil, 0o666),
		os.Symlink("folder/file", filepath.Join(folder, "link")),
		os.Symlink("folder", filepath.Join(folder, "way")),
		os.Symlink(filepath.Dir(outside), filepath.Join(folder, "out")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := openRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"folder/file": true, "way/file": true,
		"folder": false, "link": false, "removed": false, "none": false, "folder/file/x": false, "out/outside": false,
		"../" + filepath.Base(folder) + "/folder/file": false,
	} {
		if got := files.Remembers(name); got != want {
			t.Errorf("Remembers(%s) = %t, want %t", name, got, want)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if files.Remembers("folder/file") {
		t.Error("a folder that is closed remembers a file")
	}
}
