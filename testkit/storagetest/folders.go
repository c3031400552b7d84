package storagetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"moorage/storage"
)

func testMakeFolder(t *testing.T, store folderStore, root string) {
	folder := storage.Join(root, "a", "b", "metadata")
	for range 2 {
		if err := store.MakeFolder(t.Context(), folder); err != nil {
			t.Fatalf("MakeFolder: %v", err)
		}
	}
	mustMiss(t, store, folder)
	mustCreate(t, store, storage.Join(folder, "a"), "body")
	mustHold(t, store, storage.Join(folder, "a"), "body")
	if err := store.MakeFolder(t.Context(), storage.Join(folder, "a")); err == nil {
		t.Error("MakeFolder over a file returned no error")
	}
	mustHold(t, store, storage.Join(folder, "a"), "body")
	if err := store.MakeFolder(t.Context(), root); err != nil {
		t.Errorf("MakeFolder of the root: %v", err)
	}
}

func testRemoveEmptyFolder(t *testing.T, store folderStore, root string) {
	folder := storage.Join(root, "a", "metadata")
	remove := func(location string, age time.Duration, want bool) {
		t.Helper()
		if got, err := store.RemoveEmptyFolder(t.Context(), location, age); err != nil || got != want {
			t.Errorf("RemoveEmptyFolder(%q, %v) = %v, %v; want %v", location, age, got, err, want)
		}
	}
	remove(folder, 0, false)
	if err := store.MakeFolder(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	remove(folder, time.Hour, false)
	remove(storage.Join(root, "a"), 0, false)
	mustCreate(t, store, storage.Join(folder, "a"), "body")
	remove(folder, 0, false)
	remove(storage.Join(folder, "a"), 0, false)
	mustHold(t, store, storage.Join(folder, "a"), "body")
	if err := store.Delete(t.Context(), storage.Join(folder, "a")); err != nil {
		t.Fatal(err)
	}
	remove(folder, 0, true)
	remove(folder, 0, false)
	remove(storage.Join(root, "a"), 0, true)
	remove(root, 0, false)
	mustCreate(t, store, storage.Join(folder, "a"), "again")
	mustHold(t, store, storage.Join(folder, "a"), "again")
}

// removalWaitMin is less than any store waits for files in progress before a removal gives up.
const removalWaitMin = time.Second

// testRemoveWhileCreating removes a folder repeatedly while files are created in it, one by one. If
// the store can create several files in one call, it does that too. Every Create must succeed and
// every file must exist. A removal may give up if a Create takes long, as on a busy disk, but only
// after it has waited.
func testRemoveWhileCreating(t *testing.T, store folderStore, root string) {
	folder, location := storage.Join(root, "a", "b"), storage.Join(root, "a", "b", "c")
	done := make(chan struct{})
	var remover sync.WaitGroup
	remover.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, each := range []string{folder, storage.Join(root, "a")} {
				began := time.Now()
				_, err := store.RemoveEmptyFolder(t.Context(), each, 0)
				took := time.Since(began)
				if err != nil && !(errors.Is(err, storage.ErrUnavailable) && took > removalWaitMin) {
					t.Errorf("RemoveEmptyFolder after %s: %v", took, err)
				}
			}
		}
	})
	together := batchOf(root, "a/b/1", "a/2", "a/b/3", "a/b/d/4")
	batcher, batches := store.(storage.Batcher)
	for range 50 {
		mustCreate(t, store, location, "body")
		mustHold(t, store, location, "body")
		if err := store.Delete(t.Context(), location); err != nil {
			t.Error(err)
		}
		if !batches {
			continue
		}
		if err := errors.Join(batcher.CreateAll(t.Context(), together)...); err != nil {
			t.Error(err)
		}
		for _, file := range together {
			mustHold(t, store, file.Location, string(file.Body))
			if err := store.Delete(t.Context(), file.Location); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	remover.Wait()
	if _, err := store.RemoveEmptyFolder(t.Context(), folder, 0); err != nil {
		t.Errorf("RemoveEmptyFolder when no file is in progress: %v", err)
	}
}
