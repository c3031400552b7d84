package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// triesMax bounds how often a folder is made again that others keep removing.
	triesMax = 5
	// knownMax bounds how many folders a root remembers; about 10 MB.
	knownMax = 1 << 16
)

// MakeFolder creates the folder at location, and those that lead to it, durably. A folder that is
// there becomes as young as a new one.
func (s *Store) MakeFolder(ctx context.Context, location string) error {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	_, err = ask(ctx, s.calls, aWrite(1, 0), func() (struct{}, error) {
		return struct{}{}, root.inFolder(ctx, name, func() error {
			now := s.now()
			return root.files.Chtimes(name, now, now)
		})
	}, nil)
	if isEscape(err) || isImpossible(err) {
		return translate(location, err)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", location, err)
	}
	return nil
}

// RemoveEmptyFolder removes the folder at location if it is empty and older than age. A root stays.
func (s *Store) RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (bool, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil || name == "." {
		return false, err
	}
	removed, err := ask(ctx, s.calls, aWrite(1, 0), func() (bool, error) {
		return root.removeFolder(ctx, name, s.now().Add(-age))
	}, nil)
	return removed, ignoreMissing(translate(location, err))
}

// removeFolder removes the folder called name if it is empty and was not changed after limit.
// It waits for files that are being made, and others wait behind it; not for long, because one may
// hang.
func (r *root) removeFolder(ctx context.Context, name string, limit time.Time) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	if err := r.makers.Acquire(waiting, makersMax); err != nil {
		return false, unanswered(waiting)
	}
	defer r.makers.Release(makersMax)
	found, err := r.files.Lstat(name)
	if err != nil || !found.IsDir() || found.ModTime().After(limit) {
		return false, err
	}
	r.durable.forget(name)
	err = r.files.Remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// enterFolders keeps folders from being removed until leave is called. It waits for a removal that
// is under way until ctx ends.
func (r *root) enterFolders(ctx context.Context) (leave func(), err error) {
	if err := r.makers.Acquire(ctx, 1); err != nil {
		return nil, unanswered(ctx)
	}
	return func() { r.makers.Release(1) }, nil
}

// inFolder makes the folder called name, durably, and calls do. If somebody removes the folder
// meanwhile, it begins again.
func (r *root) inFolder(ctx context.Context, name string, do func() error) error {
	leave, err := r.enterFolders(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for range triesMax {
		if err = r.ensureFolder(name); err == nil {
			err = do()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.durable.forget(name)
	}
	return err
}

// ensureFolder makes the folder called name and those that lead to it, and makes them
// durable. A folder that is there may still be lost in a power cut, because an engine or a
// concurrent Create just made it; so it is made durable too. The store remembers what it made
// durable. The caller must have entered the folders.
func (r *root) ensureFolder(name string) error {
	if name == "." || r.durable.has(name) {
		return nil
	}
	if err := r.ensureFolder(path.Dir(name)); err != nil {
		return err
	}
	if err := makeFolder(r.files, name); err != nil {
		return err
	}
	r.durable.add(name)
	return nil
}

// makeFolder makes the folder called name, unless it is there, and syncs the one that holds it.
func makeFolder(files fileSystem, name string) error {
	err := files.Mkdir(name, folderMode)
	if errors.Is(err, fs.ErrExist) {
		err = mustBeFolder(files, name)
	}
	if err != nil {
		return err
	}
	return syncFolder(files, path.Dir(name))
}

func mustBeFolder(files fileSystem, name string) error {
	found, err := files.Stat(name)
	if err == nil && !found.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// syncFolder makes durable which names are in the folder called name.
func syncFolder(files folderFS, name string) error {
	folder, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// folders remembers names of folders. It is safe for concurrent use.
type folders struct {
	// mu guards names; a leaf.
	mu    sync.RWMutex
	names map[string]struct{}
}

func (f *folders) has(name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.names[name]
	return ok
}

// add remembers name, and forgets everything first when that is too much.
func (f *folders) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil || len(f.names) >= knownMax {
		f.names = make(map[string]struct{})
	}
	f.names[name] = struct{}{}
}

// forget drops the folder called name, those that lead to it and those below it.
func (f *folders) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for known := range f.names {
		if strings.HasPrefix(known+"/", name+"/") || strings.HasPrefix(name+"/", known+"/") {
			delete(f.names, known)
		}
	}
}
