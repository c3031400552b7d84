package audit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openFile(t *testing.T, path string, bytesMax int64) *File {
	t.Helper()
	f, err := OpenFile(path, bytesMax)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f *File, text string) {
	t.Helper()
	if n, err := f.Write([]byte(text)); err != nil || n != len(text) {
		t.Fatalf("%d bytes of %q are written: %v", n, text, err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// A file is appended to, is readable only by its owner, and is rotated before it becomes too long.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	f := openFile(t, path, 10)
	write(t, f, "aaaa\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFile(t, path, 10)
	write(t, f, "bbbb\n")
	write(t, f, "cccc\n")
	wantFile(t, path+".1", "aaaa\nbbbb\n")
	wantFile(t, path, "cccc\n")
	write(t, f, strings.Repeat("d", 20)+"\n") // longer than the maximum, so it gets its own file
	write(t, f, "e\n")
	wantFile(t, path+".1", strings.Repeat("d", 20)+"\n")
	wantFile(t, path+".2", "cccc\n")
	wantFile(t, path+".3", "aaaa\nbbbb\n")
	wantFile(t, path, "e\n")
	for range filesMax { // the oldest files are deleted
		write(t, f, strings.Repeat("f", 20)+"\n")
	}
	wantFile(t, path+".4", "e\n")
	if _, err := os.Stat(path + ".5"); !os.IsNotExist(err) {
		t.Errorf("a file too many is kept: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the mode is %v: %v", info.Mode(), err)
	}
}

// An incomplete line of a killed process is not joined with the next line.
func TestFileEndsWithinALine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(`{"time":`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, path, 1000)
	write(t, f, "{}\n")
	write(t, f, "{}\n")
	wantFile(t, path, "{\"time\":\n{}\n{}\n")
}

// After a file was moved away, Reopen opens a new one. If that fails, the log keeps the old one.
func TestFileReopen(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "audit.log")
	f := openFile(t, path, 1000)
	write(t, f, "a\n")
	if err := os.Rename(folder, folder+"-gone"); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err == nil {
		t.Error("reopened in a folder that is gone")
	}
	write(t, f, "b\n")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "c\n")
	wantFile(t, filepath.Join(folder+"-gone", "audit.log"), "a\nb\n")
	wantFile(t, path, "c\n")
}

// If the file cannot be created, OpenFile fails at once.
func TestFileCannotBeMade(t *testing.T) {
	t.Parallel()
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none", "audit.log"), 10); err == nil {
		t.Error("opened")
	}
}
