package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	"moorage/storage"
)

// slowLook is a folder in which the first look for a file begins with a call of before. Every sync
// of a folder waits until the test releases it.
type slowLook struct {
	fileSystem
	before  func()
	syncing chan struct{} // receives a value for each waiting sync
	let     chan struct{}
}

func (s slowLook) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	s.before()
	return s.fileSystem.OpenFile(name, flag, mode)
}

func (s slowLook) Stat(name string) (fs.FileInfo, error) {
	s.before()
	return s.fileSystem.Stat(name)
}

func (s slowLook) Seen(name string) bool {
	s.before()
	return s.fileSystem.Seen(name)
}

func (s slowLook) Folder(name string) (folderFS, error) {
	folder, err := s.fileSystem.Folder(name)
	return slowFolder{folder, s}, err
}

type slowFolder struct {
	folderFS
	look slowLook
}

func (f slowFolder) Sync() error {
	f.look.syncing <- struct{}{}
	<-f.look.let
	return f.folderFS.Sync()
}

// TestMadeDuringALook gives a file its name between two steps of a lookup. The lookup must not find
// a file that a power cut could still delete.
func TestMadeDuringALook(t *testing.T) {
	t.Parallel()
	for name, isFound := range map[string]func(store *Store, location string) bool{
		"Open": func(store *Store, location string) bool {
			body, _, err := store.Open(t.Context(), location)
			if err == nil {
				_ = body.Close()
			} else if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Open = %v", err)
			}
			return err == nil
		},
		"Stat": func(store *Store, location string) bool {
			_, err := store.Stat(t.Context(), location)
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Stat = %v", err)
			}
			return err == nil
		},
		"MayBeGone": func(store *Store, location string) bool { return !store.MayBeGone(location) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.ToSlash(t.TempDir())
			location := "file://" + root + "/a.json"
			look := slowLook{syncing: make(chan struct{}, 1), let: make(chan struct{})}
			var store *Store
			var making sync.WaitGroup
			look.before = sync.OnceFunc(func() {
				making.Go(func() {
					if err := store.Create(context.WithoutCancel(t.Context()), location, []byte("body")); err != nil {
						t.Errorf("Create = %v", err)
					}
				})
				<-look.syncing
			})
			store, err := NewOpener().openAs([]string{"file://" + root}, func(folder string) (fileSystem, error) {
				files, err := openRoot(folder)
				look.fileSystem = files
				return look, err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
			if isFound(store, location) {
				t.Error("it was found before it was durable")
			}
			close(look.let)
			making.Wait()
			if !isFound(store, location) {
				t.Error("it is not found when it is made")
			}
		})
	}
}

// relinking is a folder on a network file system that loses the answer to a link. The link is
// repeated, and then the name is taken.
type relinking struct{ fileSystem }

func (r relinking) Folder(name string) (folderFS, error) {
	folder, err := r.fileSystem.Folder(name)
	return relinkingFolder{folder}, err
}

type relinkingFolder struct{ folderFS }

func (f relinkingFolder) Link(from, to string) error {
	if err := f.folderFS.Link(from, to); err != nil {
		return err
	}
	return f.folderFS.Link(from, to)
}

// TestLostAnswerToLink makes files where each link is made twice. A new file counts as the caller's
// own, and an existing file does not.
func TestLostAnswerToLink(t *testing.T) {
	t.Parallel()
	root := "file://" + filepath.ToSlash(t.TempDir())
	store, err := NewOpener().openAs([]string{root}, func(folder string) (fileSystem, error) {
		files, err := openRoot(folder)
		return relinking{files}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []error{nil, storage.ErrExists} {
		if err := store.Create(t.Context(), root+"/a/one", []byte("body")); !errors.Is(err, want) {
			t.Errorf("Create = %v, want %v", err, want)
		}
		for _, err := range store.CreateAll(t.Context(), []storage.File{{Location: root + "/a/two"}, {Location: root + "/b/three"}}) {
			if !errors.Is(err, want) {
				t.Errorf("CreateAll = %v, want %v", err, want)
			}
		}
	}
}
