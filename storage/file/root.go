package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"moorage/internal/worker"
	"moorage/storage"
)

// makersMax is the total weight of the concurrent makers of files below a root.
const makersMax = 1 << 30

// openMax is the time for which New waits for roots to open. A working mount opens much faster.
const openMax = 2 * time.Second

// root is an allowed folder, with what the store knows about the folders in it.
type root struct {
	location storage.Location
	openings *semaphore.Weighted // shared by all stores of an Opener
	openIt   func() (fileSystem, error)
	files    fileSystem // set once, before ready
	ready    atomic.Bool

	// makers keeps folders from being removed while they are in use. No lock is taken while makers
	// is held. RemoveEmptyFolder takes the whole weight while it removes a folder. Create and
	// MakeFolder take a weight of 1 until they return. So a folder that they have found durable
	// cannot be replaced by a new folder that is not durable before they return.
	makers *semaphore.Weighted
	// durable holds the names of folders that are known to be durable: they existed after a sync of
	// all folders that lead to them.
	durable folders
	// swept holds the names of folders that are known to have no leftovers of killed processes.
	swept folders
	// writing holds, by name, a *writing for each file that is being made in this process.
	writing sync.Map

	// openMu guards the fields below. While openMu is held, no other lock is taken and the
	// operating system is not called.
	openMu sync.Mutex
	now    *attempt // the current attempt, or the one that has succeeded
	closed bool
}

// attempt is one attempt to open a root.
type attempt struct {
	done chan struct{}
	err  error       // set before done is closed
	late atomic.Bool // set when a caller has waited for openMax
}

// errOpenings is the error of an attempt that was not begun because too many others are in
// progress.
var errOpenings = fmt.Errorf("%w: %d calls to open folders do not end; check whether a mount hangs",
	storage.ErrUnavailable, openingsMax)

// hasFailed reports whether the attempt has failed.
func (a *attempt) hasFailed() bool {
	select {
	case <-a.done:
		return a.err != nil
	default:
		return false
	}
}

// begin returns the attempt to open r that is in progress or has succeeded. If there is none, it
// begins one.
func (r *root) begin() *attempt {
	r.openMu.Lock()
	defer r.openMu.Unlock()
	if r.now == nil {
		if !r.openings.TryAcquire(1) {
			refused := &attempt{done: make(chan struct{}), err: errOpenings}
			close(refused.done)
			return refused
		}
		r.now = &attempt{done: make(chan struct{}), err: errGone}
		go r.carryOut(r.now) // one goroutine for each root: it cannot be ended, and later callers join it
	}
	return r.now
}

// carryOut completes an attempt. After a failed attempt, the next caller begins another.
func (r *root) carryOut(now *attempt) {
	defer close(now.done)
	defer r.openings.Release(1)
	var files fileSystem
	err := worker.Safely(context.Background(), func(context.Context) (err error) {
		files, err = r.openIt()
		return err
	})
	r.openMu.Lock()
	if now.err = err; err != nil {
		r.now = nil
	} else {
		r.files = files
		r.ready.Store(true)
	}
	closed := r.closed
	r.openMu.Unlock()
	if closed && err == nil {
		_ = files.Close() // nothing was written through it
	}
}

// isOpen reports whether r is open.
func (r *root) isOpen() bool { return r.ready.Load() }

// isOpening reports whether the operating system is opening r and has not answered.
func (r *root) isOpening() bool {
	r.openMu.Lock()
	defer r.openMu.Unlock()
	return r.now != nil && !r.ready.Load()
}

// await waits until r is open, at most openMax. It does not wait if another caller has already
// waited that long for the same attempt. It returns storage.ErrUnavailable if r is not open.
func (r *root) await(ctx context.Context) error {
	if r.isOpen() {
		return nil
	}
	now := r.begin()
	patience := openMax
	if now.late.Load() {
		patience = 0
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-now.done:
		return now.err
	case <-waiting.Done():
	}
	if ctx.Err() == nil {
		now.late.Store(true)
	}
	return unanswered(waiting)
}

// probe reads r.
func (r *root) probe(ctx context.Context, c *calls) error {
	err := r.await(ctx)
	if err == nil {
		_, err = ask(ctx, c, aLook(), func() (fs.FileInfo, error) { return r.files.Stat(".") }, nil)
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", r.location, err)
	}
	return nil
}

// close closes r. If r is still being opened, carryOut closes it later.
func (r *root) close(c *calls) error {
	r.openMu.Lock()
	r.closed = true
	open := r.ready.Load()
	r.openMu.Unlock()
	if !open {
		return nil // carryOut closes it
	}
	return c.close(r.files.Close)
}

// makeRoot opens the folder at an absolute path, and creates it if necessary. It makes the folder
// durable, even if another process has just made it and has not synced it.
func makeRoot(folder string, openFolder func(path string) (fileSystem, error)) (fileSystem, error) {
	files, err := openFolder(folder)
	switch {
	case folder == "/" || err != nil && !errors.Is(err, fs.ErrNotExist):
		return files, err
	case err != nil:
		err = withParent(folder, openFolder, func(parent fileSystem) error {
			if _, err := makeFolder(parent, path.Base(folder)); err != nil {
				return err
			}
			return syncFolder(parent, ".")
		})
		if err != nil {
			return nil, err
		}
		return openFolder(folder)
	}
	err = withParent(folder, openFolder, func(parent fileSystem) error { return syncFolder(parent, ".") })
	if err != nil && !isForeign(err) {
		return nil, errors.Join(err, files.Close())
	}
	return files, nil
}

// withParent opens the parent of folder as makeRoot does, and calls do with it.
func withParent(
	folder string, openFolder func(path string) (fileSystem, error), do func(parent fileSystem) error,
) error {
	parent, err := makeRoot(path.Dir(folder), openFolder)
	if err != nil {
		return err
	}
	return errors.Join(do(parent), parent.Close())
}

// isForeign reports whether err means that this process cannot read or sync a folder at all. Such a
// folder cannot be one in which this process has just made a root.
func isForeign(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, errors.ErrUnsupported)
}
