package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"moorage/storage"
)

// gate, once closed, holds the syncs of folders until the test lets them continue.
type gate struct {
	closed  bool
	arrived chan *heldSync
}

// heldSync is the sync of a folder that waits at a gate.
type heldSync struct {
	goOn chan error // receives the result; if nil, the sync is done
}

func (g *gate) pass(sync func() error) error {
	if !g.closed {
		return sync()
	}
	held := &heldSync{make(chan error)}
	g.arrived <- held
	if err := <-held.goOn; err != nil {
		return err
	}
	return sync()
}

// await waits until count syncs are waiting at the gate at the same time, and returns them.
func (g *gate) await(t *testing.T, count int) []*heldSync {
	t.Helper()
	var held []*heldSync
	for range count {
		select {
		case one := <-g.arrived:
			held = append(held, one)
		case <-time.After(2 * time.Minute):
			t.Fatalf("%d folders are synced at a time, want %d", len(held), count)
		}
	}
	return held
}

// gatedFS is a fileSystem in which syncs of folders wait at a gate.
type gatedFS struct {
	fileSystem
	gate *gate
}

func (f gatedFS) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	opened, err := f.fileSystem.OpenFile(name, flag, mode)
	if err == nil && flag == os.O_RDONLY {
		opened = gatedHandle{opened, f.gate}
	}
	return opened, err
}

func (f gatedFS) Folder(name string) (folderFS, error) {
	opened, err := f.fileSystem.Folder(name)
	return gatedFolder{opened, f.gate}, err
}

type gatedHandle struct {
	handle
	gate *gate
}

func (h gatedHandle) Sync() error { return h.gate.pass(h.handle.Sync) }

type gatedFolder struct {
	folderFS
	gate *gate
}

func (f gatedFolder) Sync() error { return f.gate.pass(f.folderFS.Sync) }

// startGated begins to create a file in two new folders. It returns the waiting syncs of the three
// folders. The channel receives the result of the Create.
func startGated(t *testing.T) (*Store, []*heldSync, <-chan error) {
	t.Helper()
	held := &gate{arrived: make(chan *heldSync)}
	store, err := NewOpener().open([]string{"file://" + t.TempDir()}, func(folder string) (fileSystem, error) {
		files, err := openRoot(folder)
		return gatedFS{files, held}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	create(t, store, gatedAt(store, "harbour/first"))
	held.closed = true
	answer := make(chan error, 1)
	go func() {
		answer <- store.Create(t.Context(), gatedAt(store, "harbour/ships/metadata/1.json"), []byte("content"))
	}()
	return store, held.await(t, foldersAtOnce), answer
}

func gatedAt(store *Store, name string) string {
	return storage.Join(store.roots[0].location.String(), name)
}

// known returns the new folders that store considers durable.
func known(store *Store) []string {
	return slices.DeleteFunc([]string{"harbour/ships", "harbour/ships/metadata"}, func(name string) bool {
		return !store.roots[0].durable.has(name)
	})
}

// TestFoldersSettleTogether checks that the folders of a new table are synced at the same time.
// Until all of them are synced, no other Create may rely on them, and readers do not see the file.
func TestFoldersSettleTogether(t *testing.T) {
	t.Parallel()
	store, held, answer := startGated(t)
	for i, sync := range held {
		if found := known(store); len(found) > 0 {
			t.Errorf("after %d of %d syncs, these are taken for durable: %v", i, len(held), found)
		}
		if _, err := store.Stat(t.Context(), gatedAt(store, "harbour/ships/metadata/1.json")); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after %d of %d syncs, a reader finds: %v", i, len(held), err)
		}
		sync.goOn <- nil
	}
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	if found := known(store); len(found) != 2 {
		t.Errorf("in the end, these are taken for durable: %v", found)
	}
}

// TestSyncOfOneFolderFails makes one of the syncs fail, while another succeeds or finds its folder
// missing. The failure counts: the file does not exist, and no folder counts as durable.
func TestSyncOfOneFolderFails(t *testing.T) {
	t.Parallel()
	missing := &fs.PathError{Op: "open", Path: "harbour", Err: syscall.ENOENT}
	for name, others := range map[string]error{"others succeed": nil, "others are missing": missing} {
		for failing := range foldersAtOnce {
			t.Run(fmt.Sprintf("sync %d fails, %s", failing, name), func(t *testing.T) {
				t.Parallel()
				store, held, answer := startGated(t)
				for i, sync := range held {
					if i == failing {
						sync.goOn <- syscall.EIO
					} else {
						sync.goOn <- others
					}
				}
				if err := <-answer; !errors.Is(err, syscall.EIO) {
					t.Errorf("with sync %d failing, Create answered %v", failing, err)
				}
				if found := known(store); len(found) > 0 {
					t.Errorf("with sync %d failing, these are taken for durable: %v", failing, found)
				}
				if _, err := store.Stat(t.Context(), gatedAt(store, "harbour/ships/metadata/1.json")); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("with sync %d failing, a reader finds: %v", failing, err)
				}
			})
		}
	}
}
