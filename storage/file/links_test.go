package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
)

// linked is a store with a root, and a folder outside that root.
type linked struct {
	t             *testing.T
	store         *file.Store
	root, outside string // paths
}

func newLinked(t *testing.T) *linked {
	dir := t.TempDir()
	l := &linked{t: t, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	store, err := file.New([]string{l.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l.store = store
	for _, folder := range []string{l.outside, filepath.Join(l.root, "inside")} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("secret"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *linked) link(target, name string) {
	l.t.Helper()
	if err := os.Symlink(target, filepath.Join(l.root, name)); err != nil {
		l.t.Fatal(err)
	}
}

// calls makes each kind of call on location. It returns the errors, by method.
func (l *linked) calls(location string) map[string]error {
	ctx := l.t.Context()
	errs := map[string]error{"Create": l.store.Create(ctx, location, []byte("body"))}
	errs["CreateAll"] = l.store.CreateAll(ctx, []storage.File{{Location: location, Body: []byte("body")}})[0]
	body, _, err := l.store.Open(ctx, location)
	if err == nil {
		err = body.Close()
	}
	errs["Open"] = err
	_, errs["Stat"] = l.store.Stat(ctx, location)
	errs["Delete"] = l.store.Delete(ctx, location)
	return errs
}

func TestLinks(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	l.link("../outside", "relative")
	l.link(l.outside, "absolute")
	l.link(filepath.Join(l.root, "inside"), "absolute-inside")
	l.link("../outside/secret", "file")
	l.link("../outside/nothing", "dangling")
	l.link("relative", "twice")
	l.link("/dev", "dev")
	l.link("/proc/self/root", "proc")
	l.link("inside/../../outside", "winding")
	for _, name := range []string{
		"relative/secret", "absolute/secret", "absolute-inside/secret", "file", "dangling", "twice/secret", "dev/null", "proc/etc/passwd", "winding/secret",
		"relative/new", "relative/new/new", "absolute/new",
	} {
		for method, err := range l.calls(storage.Join(l.root, name)) {
			if !errors.Is(err, storage.ErrOutside) {
				t.Errorf("%s(%s) = %v, want ErrOutside", method, name, err)
			}
		}
	}
	for _, name := range []string{"relative", "relative/new", "absolute/new"} {
		if err := l.store.MakeFolder(t.Context(), storage.Join(l.root, name)); !errors.Is(err, storage.ErrOutside) {
			t.Errorf("MakeFolder(%s) = %v, want ErrOutside", name, err)
		}
	}
	if _, err := l.store.RemoveEmptyFolder(t.Context(), storage.Join(l.root, "relative/empty"), 0); !errors.Is(err, storage.ErrOutside) {
		t.Errorf("RemoveEmptyFolder = %v, want ErrOutside", err)
	}
	found, err := os.ReadDir(l.outside)
	if err != nil || len(found) != 1 {
		t.Errorf("outside there is %v, %v; want the secret alone", found, err)
	}
	if content, err := os.ReadFile(filepath.Join(l.outside, "secret")); err != nil || string(content) != "secret" {
		t.Errorf("the secret is %q, %v", content, err)
	}
}

// Seen finds a file behind a linked folder. If the file itself is a link, or must not be reached,
// only Stat can tell.
func TestMayBeGoneThroughLinks(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	l.link("inside", "folder")
	l.link("inside/secret", "file")
	l.link("../outside/secret", "away")
	l.link("nothing", "dangling")
	for name, gone := range map[string]bool{"folder/secret": false, "file": true, "away": true, "dangling": true, "folder": true} {
		if got := l.store.MayBeGone(storage.Join(l.root, name)); got != gone {
			t.Errorf("MayBeGone(%s) = %t, want %t", name, got, gone)
		}
	}
	location := storage.Join(l.root, "inside", "secret")
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	if !l.store.MayBeGone(location) {
		t.Error("a file is seen in a store that is closed")
	}
}

func TestLinksInside(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	l.link("inside", "folder")
	l.link("inside/secret", "file")
	l.link("loop", "loop")
	location := storage.Join(l.root, "folder", "new")
	if err := l.store.Create(t.Context(), location, []byte("body")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(l.root, "inside", "new")); err != nil {
		t.Error(err)
	}
	if content, err := storage.ReadAll(t.Context(), l.store, storage.Join(l.root, "file"), 10); err != nil || string(content) != "secret" {
		t.Errorf("through a link: %q, %v", content, err)
	}
	if err := l.store.Create(t.Context(), storage.Join(l.root, "file"), nil); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create over a link = %v, want ErrExists", err)
	}
	if err := l.store.Delete(t.Context(), storage.Join(l.root, "file"), location); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(l.root, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.root, "inside", "secret")); err != nil {
		t.Errorf("Delete of a link deleted what it points to: %v", err)
	}
	for method, err := range l.calls(storage.Join(l.root, "loop", "a")) {
		if err == nil {
			t.Errorf("%s through a loop is no error", method)
		}
	}
	if removed, err := l.store.RemoveEmptyFolder(t.Context(), storage.Join(l.root, "folder"), 0); err != nil || removed {
		t.Errorf("RemoveEmptyFolder of a link = %v, %v", removed, err)
	}
}

// TestPipe: a named pipe does not count as a file, and no call waits for its other end.
func TestPipe(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	if err := syscall.Mkfifo(filepath.Join(l.root, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	location := storage.Join(l.root, "pipe")
	if _, _, err := l.store.Open(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Open of a pipe = %v, want ErrNotFound", err)
	}
	if err := l.store.Create(t.Context(), location, nil); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create over a pipe = %v, want ErrExists", err)
	}
}

// TestFilesAreForEngines: the process's umask alone decides which users may access the store's
// files. Nothing else is left in a folder.
func TestFilesAreForEngines(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	if err := l.store.Create(t.Context(), storage.Join(l.root, "a", "ours"), nil); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.Create(filepath.Join(l.root, "a", "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(theirs.Close(), os.Mkdir(filepath.Join(l.root, "b"), 0o777)); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) os.FileMode {
		found, err := os.Stat(filepath.Join(l.root, name))
		if err != nil {
			t.Fatal(err)
		}
		return found.Mode()
	}
	if mode("a/ours") != mode("a/theirs") || mode("a") != mode("b") {
		t.Errorf("modes %v and %v, want %v and %v", mode("a/ours"), mode("a"), mode("a/theirs"), mode("b"))
	}
	found, err := os.ReadDir(filepath.Join(l.root, "a"))
	if err != nil || len(found) != 2 {
		t.Errorf("in the folder there is %v, %v", found, err)
	}
}

// An impossible name is not reported as a failure of the disk, which callers would retry.
func TestImpossibleNames(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	if err := l.store.Create(t.Context(), storage.Join(l.root, "regular"), nil); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{
		storage.Join(l.root, strings.Repeat("n", 300)), storage.Join(l.root, strings.Repeat("n", 300), "a"), storage.Join(l.root, "regular", "a"),
		storage.Join(l.root, "regular", "a", "b"),
	} {
		if err := l.store.Create(t.Context(), location, nil); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Create(%q) = %v, want ErrNotFound", location, err)
		}
		if err := l.store.MakeFolder(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("MakeFolder(%q) = %v, want ErrNotFound", location, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	regular := filepath.Join(dir, "regular")
	if err := os.WriteFile(regular, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"relative", "", "s3://bucket/a", "memory:///a", dir + "/../a"} {
		if _, err := file.New([]string{dir, root}); !errors.Is(err, storage.ErrLocation) {
			t.Errorf("New(%q) = %v, want ErrLocation", root, err)
		}
	}
	for _, root := range []string{regular, filepath.Join(regular, "below")} {
		if _, err := file.New([]string{dir + "/other", root}); err == nil {
			t.Errorf("New(%q) is no error", root)
		}
	}
}

// TestRoots: roots may be nested and may be links. A location in none of them is outside.
func TestRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real, alias := filepath.Join(dir, "real"), filepath.Join(dir, "alias")
	if err := errors.Join(os.Mkdir(real, 0o777), os.Symlink(real, alias)); err != nil {
		t.Fatal(err)
	}
	store, err := file.New([]string{dir + "/a/b", "file:" + dir + "/a", alias, dir + "/c/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for name, want := range map[string]error{
		"a/x": nil, "a/b/x": nil, "alias/x": nil, "c/x": nil,
		"real/x": storage.ErrOutside, "d/x": storage.ErrOutside, "x": storage.ErrOutside, "ab/x": storage.ErrOutside,
	} {
		if err := store.Create(t.Context(), storage.Join(dir, name), nil); !errors.Is(err, want) {
			t.Errorf("Create(%s) = %v, want %v", name, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(real, "x")); err != nil {
		t.Error(err)
	}
}

// TestTwoStores: stores of several processes do not overwrite each other's files.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	other, err := file.New([]string{l.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	location := storage.Join(l.root, "a", strings.Repeat("n", 255))
	for range 20 {
		first := make(chan error)
		go func() { first <- l.store.Create(t.Context(), location, []byte("1")) }()
		second := other.Create(t.Context(), location, []byte("2"))
		errs := []error{<-first, second}
		content, err := storage.ReadAll(t.Context(), other, location, 1)
		if err != nil {
			t.Fatal(err)
		}
		winner := int(content[0] - '1')
		if errs[winner] != nil || !errors.Is(errs[1-winner], storage.ErrExists) {
			t.Fatalf("the file is %q, and the writers heard %v", content, errs)
		}
		if err := other.Delete(t.Context(), location); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeleteRemovesChecksums: Hadoop would check a new file of the same name against the old
// checksum.
func TestDeleteRemovesChecksums(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	for _, name := range []string{"data.parquet", ".data.parquet.crc", ".other.parquet.crc", strings.Repeat("n", 255)} {
		if err := l.store.Create(t.Context(), storage.Join(l.root, "a", name), nil); err != nil {
			t.Fatal(err)
		}
	}
	err := l.store.Delete(t.Context(), storage.Join(l.root, "a", "data.parquet"), storage.Join(l.root, "a", strings.Repeat("n", 255)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadDir(filepath.Join(l.root, "a"))
	if err != nil || len(found) != 1 || found[0].Name() != ".other.parquet.crc" {
		t.Errorf("left: %v, %v", found, err)
	}
}
