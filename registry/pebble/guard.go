package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the engine's file system. It forwards all calls to the real file system until a change
// fails. Then it calls fail, which freezes the guard. After that, each change that the engine
// requests waits and is never made. letGo ends the waiting: from then on the guard reports that
// changes succeed. The guard always forwards reads. Nothing depends on removals of files: a failed
// removal does not freeze the guard, and a frozen guard ignores removals. The guard always forwards
// calls for the folder of a backup, which the engine does not need.
type guard struct {
	vfs.FS
	fail func(error)

	apart  atomic.Pointer[string] // the folder of the current backup; nil if there is none
	frozen atomic.Bool            // if true, no change reaches the file system; set by fail
	once   sync.Once              // closes gone
	gone   chan struct{}          // closed by letGo
	void   vfs.FS                 // holds files that are created after letGo
}

func newGuard(inner vfs.FS, fail func(error)) *guard {
	return &guard{FS: inner, fail: fail, gone: make(chan struct{}), void: vfs.NewMem()}
}

// isApart reports whether name is the folder of the current backup, or in it.
func (g *guard) isApart(name string) bool {
	apart := g.apart.Load()
	return apart != nil && (name == *apart || strings.HasPrefix(name, *apart+string(filepath.Separator)))
}

// freeze keeps later changes from the file system.
func (g *guard) freeze() { g.frozen.Store(true) }

// letGo freezes g and ends the waiting.
func (g *guard) letGo() {
	g.freeze()
	g.once.Do(func() { close(g.gone) })
}

// change calls do unless g is frozen, and reports whether do succeeded. If change returns false,
// the caller must still report success to the engine, because the engine does not survive an error.
func (g *guard) change(what, name string, do func() error) (made bool) {
	if !g.frozen.Load() {
		err := do()
		if err == nil {
			return true
		}
		g.fail(fmt.Errorf("%s %s: %w", what, name, err))
	}
	<-g.gone
	return false
}

// open is like change, for calls that return a file.
func (g *guard) open(what, name string, do func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	made := g.change(what, name, func() (err error) {
		file, err = do()
		return err
	})
	if !made {
		return g.nowhere()
	}
	return &guardedFile{File: file, guard: g, name: name}, nil
}

// nowhere returns a file that is not on any disk.
func (g *guard) nowhere() (vfs.File, error) {
	return g.void.Create("nowhere", vfs.WriteCategoryUnspecified)
}

// Create implements vfs.FS.
func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if g.isApart(name) {
		return g.FS.Create(name, category)
	}
	return g.open("create", name, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (g *guard) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open("open", name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open("reuse", newname, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements vfs.FS. A directory is opened to be synced.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil || g.isApart(name) {
		return dir, err
	}
	return &guardedFile{File: dir, guard: g, name: name}, nil
}

// Link implements vfs.FS.
func (g *guard) Link(oldname, newname string) error {
	if g.isApart(newname) {
		return g.FS.Link(oldname, newname)
	}
	g.change("link", newname, func() error { return g.FS.Link(oldname, newname) })
	return nil
}

// Rename implements vfs.FS.
func (g *guard) Rename(oldname, newname string) error {
	if g.isApart(newname) {
		return g.FS.Rename(oldname, newname)
	}
	g.change("rename to", newname, func() error { return g.FS.Rename(oldname, newname) })
	return nil
}

// MkdirAll implements vfs.FS.
func (g *guard) MkdirAll(dir string, perm fs.FileMode) error {
	if g.isApart(dir) {
		return g.FS.MkdirAll(dir, perm)
	}
	g.change("create directory", dir, func() error { return g.FS.MkdirAll(dir, perm) })
	return nil
}

// Remove implements vfs.FS. If the file cannot be removed, the store does not fail.
func (g *guard) Remove(name string) error {
	if g.frozen.Load() && !g.isApart(name) {
		return nil
	}
	return g.FS.Remove(name)
}

// RemoveAll implements vfs.FS.
func (g *guard) RemoveAll(name string) error {
	if g.frozen.Load() && !g.isApart(name) {
		return nil
	}
	return g.FS.RemoveAll(name)
}

// Lock implements vfs.FS. It returns ErrLocked if another process has the lock.
func (g *guard) Lock(name string) (io.Closer, error) {
	lock, err := g.FS.Lock(name)
	var path *fs.PathError
	var code syscall.Errno
	switch {
	case err == nil:
		return lock, nil
	case errors.As(err, &path): // the lock file could not be created
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES): // another process has the lock
		return nil, lockedBy(name)
	case !errors.As(err, &code): // this process has the lock: the engine keeps a list of its locks
		return nil, ErrLocked
	}
	return nil, err
}

// GetDiskUsage implements vfs.FS. The engine uses the result to pace itself, and would take an
// error for its own.
func (g *guard) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	usage, err := g.FS.GetDiskUsage(path)
	if err != nil {
		return vfs.DiskUsage{}, vfs.ErrUnsupported
	}
	return usage, nil
}

// Unwrap implements vfs.FS.
func (g *guard) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file or directory that was opened through a guard.
type guardedFile struct {
	vfs.File
	guard *guard
	name  string
}

// Write implements vfs.File.
func (f *guardedFile) Write(p []byte) (int, error) {
	f.guard.change("write", f.name, func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

// WriteAt implements vfs.File.
func (f *guardedFile) WriteAt(p []byte, offset int64) (int, error) {
	f.guard.change("write", f.name, func() error {
		_, err := f.File.WriteAt(p, offset)
		return err
	})
	return len(p), nil
}

// Stat implements vfs.File. It is guarded like a change, because the engine does not survive an
// error of Stat when it reuses a file of its log.
func (f *guardedFile) Stat() (info vfs.FileInfo, err error) {
	made := f.guard.change("stat", f.name, func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	if made {
		return info, nil
	}
	file, err := f.guard.nowhere()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// Close implements vfs.File. It closes the file even if the guard is frozen.
func (f *guardedFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.guard.change("close", f.name, func() error { return err })
	}
	return nil
}

// Sync implements vfs.File.
func (f *guardedFile) Sync() error {
	f.guard.change("sync", f.name, f.File.Sync)
	return nil
}

// SyncData implements vfs.File.
func (f *guardedFile) SyncData() error {
	f.guard.change("sync", f.name, f.File.SyncData)
	return nil
}

// SyncTo implements vfs.File.
func (f *guardedFile) SyncTo(length int64) (fullSync bool, err error) {
	f.guard.change("sync", f.name, func() (err error) {
		fullSync, err = f.File.SyncTo(length)
		return err
	})
	return fullSync, nil
}
