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

// makersMax is the weight of all that can make files below a root at a time.
const makersMax = 1 << 30

// openMax is how long New waits for roots to open. A mount that answers at all is much faster.
const openMax = 2 * time.Second

// root is an allowed folder and what is known about the folders in it.
type root struct {
	location storage.Location
	openings *semaphore.Weighted // attempts of all stores that are under way
	openIt   func() (fileSystem, error)
	files    fileSystem // set once, before ready
	ready    atomic.Bool

	// makers orders makers and removers of folders; a leaf. RemoveEmptyFolder holds all of it while
	// it removes a folder. Create and MakeFolder hold 1 to their end. So nobody can remove a folder
	// that they found durable, and make it again, not yet durable, before they are done.
	makers *semaphore.Weighted
	// durable are folders, by name, that were there after a sync of all that lead to them.
	durable folders
	// swept are folders, by name, in which no killed process has left anything.
	swept folders
	// writing holds, by name, a *writing for each file that is being made in this process.
	writing sync.Map

	// openMu guards the fields below; a leaf, never held over a call.
	openMu sync.Mutex
	now    *attempt // that is under way, or has succeeded
	closed bool
}

// attempt is one attempt to open a root.
type attempt struct {
	done chan struct{}
	err  error       // set before done is closed
	late atomic.Bool // somebody has waited for openMax
}

// errOpenings is the failure of an attempt that did not begin.
var errOpenings = fmt.Errorf("%w: %d folders are being opened and do not answer; see whether a mount hangs",
	storage.ErrUnavailable, openingsMax)

// hasFailed reports whether a has ended without success.
func (a *attempt) hasFailed() bool {
	select {
	case <-a.done:
		return a.err != nil
	default:
		return false
	}
}

// begin returns the attempt to open r that is under way, or has succeeded, or begins one.
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
		go r.carryOut(r.now) // one for each root: nobody can end the call, and others that ask join it
	}
	return r.now
}

// carryOut brings an attempt to its end. After one that fails the next caller begins another.
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

// isOpening reports whether the operating system was asked to open r and has not answered.
func (r *root) isOpening() bool {
	r.openMu.Lock()
	defer r.openMu.Unlock()
	return r.now != nil && !r.ready.Load()
}

// await waits until r is open, but not for long, and not at all if somebody has:
// storage.ErrUnavailable if it is not.
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

// probe looks at r.
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

// close gives r up, when it is open.
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

// makeRoot opens the folder at an absolute path, after making it if it is missing. The folder is
// durable then, also if another process made it a moment ago and has not synced it.
func makeRoot(folder string, openFolder func(path string) (fileSystem, error)) (fileSystem, error) {
	files, err := openFolder(folder)
	switch {
	case folder == "/" || err != nil && !errors.Is(err, fs.ErrNotExist):
		return files, err
	case err != nil:
		err = above(folder, openFolder, func(parent fileSystem) error {
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
	err = above(folder, openFolder, func(parent fileSystem) error { return syncFolder(parent, ".") })
	if err != nil && !isForeign(err) {
		return nil, errors.Join(err, files.Close())
	}
	return files, nil
}

// above opens the parent of folder as makeRoot does, and calls do with it.
func above(folder string, openFolder func(path string) (fileSystem, error), do func(parent fileSystem) error) error {
	parent, err := makeRoot(path.Dir(folder), openFolder)
	if err != nil {
		return err
	}
	return errors.Join(do(parent), parent.Close())
}

// isForeign reports whether err says that a folder cannot be read or synced by this process at all.
// A root was not made in such a folder a moment ago.
func isForeign(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, errors.ErrUnsupported)
}
