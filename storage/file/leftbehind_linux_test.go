package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/semaphore"

	"moorage/storage"
)

// A Create takes no further step after the one that hangs. It leaves no file, even if its name was
// just being made.
func TestCreateThatIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"mkdir", "folder", "write", "sync", "link", "remove", "settle"} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprint(op, together), func(t *testing.T) {
				t.Parallel()
				m := newMount(t)
				store, folder := m.onMount()
				location := "file://" + folder + "/a/f"
				var removed atomic.Bool // the next syncs are in settle; they run at the same time
				m.hang(func(called string) bool {
					if op != "settle" {
						return called == op
					}
					if called == "remove" {
						removed.Store(true)
					}
					return called == "sync" && removed.Load()
				})
				err := m.whileHanging(func(ctx context.Context) error {
					if together {
						return store.CreateAll(ctx, []storage.File{{Location: location, Body: []byte("content")}})[0]
					}
					return store.Create(ctx, location, []byte("content"))
				})
				if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNotFound) {
					t.Fatalf("answered %v", err)
				}
				if _, err := os.Stat(filepath.Join(folder, "a", "f")); op != "remove" && op != "settle" && !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("the file is there before its name was made: %v", err)
				}
				m.release()
				m.settle(0)
				for store.Busy() {
					runtime.Gosched()
				}
				if body, err := os.ReadFile(filepath.Join(folder, "a", "f")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("afterwards there is %q, %v", body, err)
				}
				if err := store.Create(t.Context(), location, []byte("content")); err != nil {
					t.Errorf("made again: %v", err)
				}
			})
		}
	}
}

// After the call that hangs, a Delete deletes no further file. It also deletes no checksum file
// after a lookup that hangs.
func TestDeleteThatIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"stat", "remove"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := newMount(t)
			store, folder := m.onMount()
			first, second := "file://"+folder+"/1", "file://"+folder+"/2"
			checksum := "file://" + folder + "/.1.crc"
			for _, location := range []string{first, second, checksum} {
				create(t, store, location)
			}
			m.hang(func(called string) bool { return called == op })
			err := m.whileHanging(func(ctx context.Context) error { return store.Delete(ctx, first, second) })
			if !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("answered %v", err)
			}
			m.release()
			m.settle(0)
			for store.Busy() {
				runtime.Gosched()
			}
			if _, err := store.Stat(t.Context(), second); err != nil {
				t.Errorf("the file that it was not at: %v", err)
			}
			if _, err := store.Stat(t.Context(), checksum); op == "stat" && err != nil {
				t.Errorf("the checksum of a file that stays: %v", err)
			}
		})
	}
}

// A large body that waits for other large bodies does not block small calls.
func TestLargeBodiesHoldUpNoSmallCalls(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	store, folder := m.onMount()
	location := "file://" + folder + "/"
	create(t, store, location+"f")
	m.hang(func(op string) bool { return op == "write" })
	var writers sync.WaitGroup
	defer writers.Wait()
	defer m.release()
	store.calls.bytes = semaphore.NewWeighted(2 * bytesOfCall)
	body := make([]byte, bytesOfCall+1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2 {
		writers.Go(func() { _ = store.Create(ctx, fmt.Sprint(location, i), body) })
	}
	m.settle(1) // the other one waits
	var looks sync.WaitGroup
	for range callsMax { // together with the bodies, more than there are slots
		looks.Go(func() {
			if _, err := store.Stat(ctx, location+"f"); err != nil {
				t.Errorf("a look beside large bodies: %v", err)
			}
		})
	}
	for i := range callsMax / 2 {
		writers.Go(func() { _ = store.Create(ctx, fmt.Sprint(location, "small", i), nil) })
	}
	m.settle(1 + callsMax/2)
	looks.Wait()
}

// A Create that hangs delays the removal of folders, and so other Creates, only for a limited time.
// A removal that hangs delays Creates only until their contexts end.
func TestRemovalOfFoldersThatHangs(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	store, folder := m.onMount()
	location := "file://" + folder + "/"
	for _, name := range []string{"a", "b"} {
		if err := store.MakeFolder(t.Context(), location+name); err != nil {
			t.Fatal(err)
		}
	}
	first := atomic.Bool{}
	m.hang(func(op string) bool { return op == "write" && first.CompareAndSwap(false, true) })
	var stuck sync.WaitGroup
	defer stuck.Wait()
	defer m.release()
	stuck.Go(func() { _ = store.Create(t.Context(), location+"a/f", []byte("content")) })
	m.settle(1)
	if _, err := store.RemoveEmptyFolder(t.Context(), location+"b", 0); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("removed while a file hangs: %v", err)
	}
	create(t, store, location+"b/g")
	m.release()
	stuck.Wait()

	m = newMount(t)
	store, folder = m.onMount()
	location = "file://" + folder + "/"
	if err := store.MakeFolder(t.Context(), location+"a"); err != nil {
		t.Fatal(err)
	}
	m.hang(func(op string) bool { return op == "remove" })
	err := m.whileHanging(func(ctx context.Context) error {
		_, err := store.RemoveEmptyFolder(ctx, location+"a", 0)
		return err
	})
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a removal that hangs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- store.Create(ctx, location+"b", nil) }()
	await(t, &store.calls.inside, 2) // the removal and the Create
	cancel()
	if err := <-answered; !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a file beside a removal that hangs: %v", err)
	}
	if inside := store.calls.inside.Load(); inside != 1 {
		t.Errorf("%d calls wait, want the one that hangs", inside)
	}
}
