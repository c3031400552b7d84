package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moorage/internal/worker"
)

const (
	// attemptsMax bounds the attempts to create a folder that other processes keep removing.
	attemptsMax = 5
	// knownMax is the maximum number of folders that a root remembers, about 10 MB.
	knownMax = 1 << 16
	// foldersAtOnce is the number of folders that a Create in a new folder syncs at a time: the
	// metadata folder, the table's folder and the namespace's folder.
	foldersAtOnce = 3
)

// MakeFolder creates the folder at location, and the folders that lead to it, durably. An existing
// folder gets a new modification time.
func (s *Store) MakeFolder(ctx context.Context, location string) error {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	_, err = ask(ctx, s.calls, aWrite(1, 0), func() (struct{}, error) {
		return struct{}{}, root.inFolder(ctx, name, func(unsettled []string) error {
			if err := root.settleFolders(ctx, unsettled, 1); err != nil {
				return err
			}
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

// RemoveEmptyFolder removes the folder at location if it is empty and older than age. It never
// removes a root.
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

// removeFolder removes the folder called name if it is empty and was not changed after limit. It
// briefly waits until no file is in progress. New files wait until the removal has ended. The wait
// is short because a file in progress may hang.
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

// enterFolders prevents the removal of folders until the caller calls leave. If a removal is in
// progress, enterFolders waits until it ends or ctx ends.
func (r *root) enterFolders(ctx context.Context) (leave func(), err error) {
	if err := r.makers.Acquire(ctx, 1); err != nil {
		return nil, unanswered(ctx)
	}
	return func() { r.makers.Release(1) }, nil
}

// inFolder makes the folder called name and calls do, which must settle the given folders. If
// another process removes the folder in between, inFolder starts again.
func (r *root) inFolder(ctx context.Context, name string, do func(unsettled []string) error) error {
	leave, err := r.enterFolders(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for range attemptsMax {
		var unsettled []string
		if unsettled, err = r.makeFolders(name); err == nil {
			err = do(unsettled)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.durable.forget(name)
	}
	return err
}

// makeFolders makes the folder called name and the folders that lead to it. It returns the folders
// that may not be durable, highest first. The caller must have called enterFolders.
//
// The caller settles the folders only after it has written the files in them. At that point, one
// write of the file system's journal may make all of them durable. If settled earlier, each folder
// would need its own write.
func (r *root) makeFolders(name string) (unsettled []string, err error) {
	if r.isSettled(name) {
		return nil, nil
	}
	if unsettled, err = r.makeFolders(path.Dir(name)); err != nil {
		return nil, err
	}
	isNew, err := makeFolder(r.files, name)
	if err != nil {
		return nil, err
	}
	if isNew { // a new folder has no files of killed processes
		r.swept.add(name)
	}
	return append(unsettled, name), nil
}

// isSettled reports whether the folder called name is known to be durable.
func (r *root) isSettled(name string) bool { return name == "." || r.durable.has(name) }

// settleFolders makes the folders returned by makeFolders durable, by syncing them. also lists
// further syncs, which run at the same time. Existing folders are synced too: if an engine or a
// concurrent Create has just made such a folder, a power cut may delete it. The store remembers
// which folders are durable.
//
// The syncs are independent, so atOnce of them run at a time. A folder is durable only if the
// folders that lead to it are durable. So settleFolders remembers the folders only when all syncs
// have succeeded.
func (r *root) settleFolders(ctx context.Context, unsettled []string, atOnce int, also ...func() error) error {
	syncs := also
	for _, name := range unsettled {
		if !r.durable.has(name) { // otherwise another call has made it durable
			syncs = append(syncs, func() error { return syncFolder(r.files, path.Dir(name)) })
		}
	}
	if err := callAll(ctx, min(atOnce, len(syncs)), syncs); err != nil {
		return err
	}
	for _, name := range unsettled {
		r.durable.add(name)
	}
	return nil
}

// callAll makes all of calls, atOnce of them at a time. If atOnce is 1, it stops at the first
// failure. Once ctx has ended, it begins no further call.
//
// If there are several errors, it returns one that is not fs.ErrNotExist, if possible. After
// fs.ErrNotExist, the caller makes the missing folder again and repeats the syncs. But a failed
// sync must be reported: the kernel reports the failure only once, and a repeated sync would
// succeed.
func callAll(ctx context.Context, atOnce int, calls []func() error) error {
	failures := make([]error, len(calls))
	call := func(i int) error {
		failures[i] = worker.Safely(ctx, func(ctx context.Context) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return calls[i]()
		})
		return failures[i]
	}
	if atOnce <= 1 {
		for i := range calls {
			if err := call(i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	work := func() {
		for i := next.Add(1); i <= int64(len(calls)); i = next.Add(1) {
			_ = call(int(i - 1)) // failures holds the error
		}
	}
	var helpers sync.WaitGroup
	for range atOnce - 1 {
		helpers.Go(work)
	}
	work()
	helpers.Wait()
	return gravest(failures)
}

// gravest returns an error in failures that is not fs.ErrNotExist. If there is none, it returns
// fs.ErrNotExist if that occurs, and otherwise nil.
func gravest(failures []error) error {
	var missing error
	for _, err := range failures {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = cmp.Or(missing, err)
	}
	return missing
}

// makeFolder makes the folder called name, and reports whether the folder is new.
func makeFolder(files fileSystem, name string) (isNew bool, err error) {
	err = files.Mkdir(name, folderMode)
	if errors.Is(err, fs.ErrExist) {
		return false, mustBeFolder(files, name)
	}
	return err == nil, err
}

func mustBeFolder(files fileSystem, name string) error {
	found, err := files.Stat(name)
	if err == nil && !found.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// syncFolder makes the entries of the folder called name durable.
func syncFolder(files folderFS, name string) error {
	folder, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// folders remembers names of folders. It is safe for concurrent use.
type folders struct {
	// mu guards names. No other lock is taken while it is held.
	mu    sync.RWMutex
	names map[string]struct{}
}

func (f *folders) has(name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.names[name]
	return ok
}

// add remembers name. If there are too many names, it first forgets all of them.
func (f *folders) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil || len(f.names) >= knownMax {
		f.names = make(map[string]struct{})
	}
	f.names[name] = struct{}{}
}

// forget forgets the folder called name, the folders that lead to it and the folders below it.
func (f *folders) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for known := range f.names {
		if strings.HasPrefix(known+"/", name+"/") || strings.HasPrefix(name+"/", known+"/") {
			delete(f.names, known)
		}
	}
}
