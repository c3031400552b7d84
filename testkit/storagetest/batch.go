package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"moorage/storage"
)

// batchOf returns files below root, each with its name as content.
func batchOf(root string, names ...string) []storage.File {
	files := make([]storage.File, len(names))
	for i, name := range names {
		files[i] = storage.File{Location: storage.Join(root, name), Body: []byte(name)}
	}
	return files
}

func testCreateAll(t *testing.T, store batchStore, root string) {
	names := []string{"a/1", "b/c/2", "a/3", "4"}
	for i := range 100 {
		names = append(names, fmt.Sprintf("many/%d", i))
	}
	for i, err := range store.CreateAll(t.Context(), batchOf(root, names...)) {
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
	for _, name := range names {
		mustHold(t, store, storage.Join(root, name), name)
	}
	if failures := store.CreateAll(t.Context(), nil); len(failures) != 0 {
		t.Errorf("no files: %v", failures)
	}
}

// testCreateAllAnswersEach creates files in one call. Some of them cannot be created.
func testCreateAllAnswersEach(t *testing.T, store batchStore, root string) {
	mustCreate(t, store, storage.Join(root, "taken"), "as it was")
	files := batchOf(root, "one", "taken", "two", "twice", "twice")
	files = append(files, storage.File{Location: storage.Join(elsewhere(root), "x")},
		storage.File{Location: "no location"})
	failures := store.CreateAll(t.Context(), files)
	if len(failures) != len(files) {
		t.Fatalf("%d answers for %d files", len(failures), len(files))
	}
	for i, want := range []error{nil, storage.ErrExists, nil} {
		if !errors.Is(failures[i], want) {
			t.Errorf("%s: %v, want %v", files[i].Location, failures[i], want)
		}
	}
	if twice := failures[3:5]; !slices.Contains(twice, nil) || !errors.Is(errors.Join(twice...), storage.ErrExists) {
		t.Errorf("the same file twice: %v", twice)
	}
	if !errors.Is(failures[5], storage.ErrOutside) || !errors.Is(failures[6], storage.ErrLocation) {
		t.Errorf("outside: %v; malformed: %v", failures[5], failures[6])
	}
	mustHold(t, store, storage.Join(root, "one"), "one")
	mustHold(t, store, storage.Join(root, "taken"), "as it was")
	mustHold(t, store, storage.Join(root, "two"), "two")
	mustHold(t, store, storage.Join(root, "twice"), "twice")
}

// In testCreateAllRace, several goroutines make the same files, in different orders. Each file must
// be made once, without a deadlock.
func testCreateAllRace(t *testing.T, store batchStore, root string) {
	const rounds, writers = 20, 4
	for round := range rounds {
		names := []string{fmt.Sprintf("%d/a", round), fmt.Sprintf("%d/b", round), fmt.Sprintf("%d/c", round)}
		var mu sync.Mutex // guards made
		made := make(map[string]int)
		var wait sync.WaitGroup
		for writer := range writers {
			mine := slices.Clone(names)
			if writer%2 == 1 {
				slices.Reverse(mine)
			}
			wait.Go(func() {
				for i, err := range store.CreateAll(t.Context(), batchOf(root, mine...)) {
					switch {
					case err == nil:
						mu.Lock()
						made[mine[i]]++
						mu.Unlock()
					case !errors.Is(err, storage.ErrExists):
						t.Errorf("%s: %v", mine[i], err)
					}
				}
			})
		}
		wait.Wait()
		for _, name := range names {
			if made[name] != 1 {
				t.Errorf("%d writers made %s", made[name], name)
			}
			mustHold(t, store, storage.Join(root, name), name)
		}
	}
}

func testCreateAllCancelled(t *testing.T, store batchStore, root string) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range store.CreateAll(ctx, batchOf(root, "a", "b")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	mustMiss(t, store, storage.Join(root, "a"))
}
