package storagetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"moorage/storage"
)

func testMissing(t *testing.T, store storage.Store, root string) {
	for _, location := range []string{"a", "a/b/c", strings.Repeat("n", 300)} {
		mustMiss(t, store, storage.Join(root, location))
	}
	mustCreate(t, store, storage.Join(root, "file"), "body")
	mustMiss(t, store, storage.Join(root, "fil"))
	mustMiss(t, store, storage.Join(root, "file", "below"))
	mustMiss(t, store, storage.Join(root, "FILE2"))
}

func testFolderIsNoFile(t *testing.T, store storage.Store, root string) {
	mustCreate(t, store, storage.Join(root, "folder", "a"), "body")
	mustMiss(t, store, storage.Join(root, "folder"))
	mustMiss(t, store, root)
	if err := store.Delete(t.Context(), storage.Join(root, "folder"), root); err != nil {
		t.Errorf("Delete of a folder: %v", err)
	}
	mustHold(t, store, storage.Join(root, "folder", "a"), "body")
}

func testDelete(t *testing.T, store storage.Store, root string) {
	a, b, c := storage.Join(root, "x", "a"), storage.Join(root, "x", "b"), storage.Join(root, "x", "c")
	mustCreate(t, store, a, "a")
	mustCreate(t, store, b, "b")
	mustCreate(t, store, c, "c")
	if err := store.Delete(t.Context(), a, storage.Join(root, "missing"), b, a, storage.Join(c, "below")); err != nil {
		t.Errorf("Delete: %v", err)
	}
	mustMiss(t, store, a)
	mustMiss(t, store, b)
	mustHold(t, store, c, "c")
	if err := store.Delete(t.Context()); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	mustCreate(t, store, a, "again")
	mustHold(t, store, a, "again")
}

func testDeleteGoesOn(t *testing.T, store storage.Store, root string) {
	a, b := storage.Join(root, "a"), storage.Join(root, "b")
	mustCreate(t, store, a, "a")
	mustCreate(t, store, b, "b")
	err := store.Delete(t.Context(), a, "relative", elsewhere(root), b)
	if !errors.Is(err, storage.ErrLocation) || !errors.Is(err, storage.ErrOutside) {
		t.Errorf("Delete = %v, want ErrLocation and ErrOutside", err)
	}
	mustMiss(t, store, a)
	mustMiss(t, store, b)
}

// testOpenSurvivesDelete reads a file that is deleted during the read. The reader must get an error
// or the whole file.
func testOpenSurvivesDelete(t *testing.T, store storage.Store, root string) {
	location := storage.Join(root, "a")
	mustCreate(t, store, location, "body")
	body, _, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if err := store.Delete(t.Context(), location); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(body); err == nil && string(content) != "body" {
		t.Errorf("read %q after the file was deleted", content)
	}
}

func testOutside(t *testing.T, store storage.Store, root string) {
	for _, location := range []string{elsewhere(root), storage.Trim(root) + "2/a", storage.Trim(root) + "2",
		"memory://elsewhere/a", "s3://elsewhere/a"} {
		for method, err := range everyMethod(t.Context(), store, location) {
			if !errors.Is(err, storage.ErrOutside) {
				t.Errorf("%s(%q) = %v, want ErrOutside", method, location, err)
			}
		}
	}
}

func testMalformed(t *testing.T, store storage.Store, root string) {
	for _, location := range []string{
		"", "a", "../a", storage.Join(root, "..", "a"), storage.Join(root, "a", "..", "b"),
		storage.Join(root, "a\x00b"), storage.Join(root, "a\nb"),
		storage.Join(root, "a\xff"), "ftp://host/a",
	} {
		for method, err := range everyMethod(t.Context(), store, location) {
			if !errors.Is(err, storage.ErrLocation) {
				t.Errorf("%s(%q) = %v, want ErrLocation", method, location, err)
			}
		}
	}
}

func testCancelled(t *testing.T, store storage.Store, root string) {
	there, missing := storage.Join(root, "there"), storage.Join(root, "folder", "missing")
	mustCreate(t, store, there, "body")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, location := range []string{there, missing} {
		for method, err := range everyMethod(ctx, store, location) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s(%q) = %v, want context.Canceled", method, location, err)
			}
		}
	}
	mustHold(t, store, there, "body")
	mustMiss(t, store, missing)
}

// everyMethod calls each method with location, and returns the errors by method.
func everyMethod(ctx context.Context, store storage.Store, location string) map[string]error {
	errs := make(map[string]error)
	errs[MethodCreate] = store.Create(ctx, location, []byte("body"))
	body, _, err := store.Open(ctx, location)
	if err == nil {
		err = body.Close()
	}
	errs[MethodOpen] = err
	_, errs[MethodReadRange] = store.ReadRange(ctx, location, 1, 2)
	_, errs[MethodStat] = store.Stat(ctx, location)
	errs[MethodDelete] = store.Delete(ctx, location)
	if folders, ok := store.(storage.Folders); ok {
		errs[MethodMakeFolder] = folders.MakeFolder(ctx, location)
		_, errs[MethodRemoveEmptyFolder] = folders.RemoveEmptyFolder(ctx, location, 0)
	}
	return errs
}

// elsewhere returns a location next to root.
func elsewhere(root string) string {
	parsed, err := storage.Parse(root)
	if err != nil {
		return err.Error()
	}
	return storage.Join(parsed.Parent().String(), "elsewhere", "a")
}
