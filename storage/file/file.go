// Package file keeps files in folders of the operating system. It stays inside its given folders:
// neither ".." nor a link can lead out of them.
//
// # What it promises
//
// When Create returns, the file and every folder that leads to it would survive a power cut. A file
// has its final name only when it is complete. Open and Stat of the same Store find it only when it
// is durable.
//
// # What a killed process leaves
//
// A killed process leaves temporary files next to the files that it was making. After a minute,
// they count as leftovers. The next process that creates or deletes a file in that folder then
// removes them. A Store checks a folder again until the folder has no temporary file that is too
// young to remove.
//
// # What hangs
//
// A call on a mount that hangs does not return, and cannot be ended. Each call of a Store runs in
// its own goroutine. So its caller continues when the context ends or, for a lookup, after at most
// ten seconds. The error is storage.ErrUnavailable. At most 128 calls of a Store are inside the
// operating system. Further callers wait. If no call ends within two seconds, they are refused with
// the same error. Once the caller of a Create has left, the Create takes no step after the one that
// hangs.
//
// # What it needs
//
// It needs a file system with hard links, and an fsync that makes data durable. While a Store is
// open, no other process or Store may remove a folder and make it again under the same name. The
// Store may believe that the new folder is already durable. Only RemoveEmptyFolder of the Store
// itself may remove a folder.
//
// # What it must not know
//
// It does not know the contents of files.
package file

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"moorage/storage"
)

// Store is a storage.Store, storage.Batcher and storage.Folders over the operating system's files.
// It is safe for concurrent use, even by several processes.
type Store struct {
	roots  []*root
	calls  *calls
	now    func() time.Time
	atOnce int // number of files that one CreateAll works on at a time

	// newTemporary builds the names of temporary files from temporary and serial. temporary is
	// random, and so different in each process.
	temporary string
	serial    atomic.Uint64
}

// New returns a store of the files below roots, which are locations of folders. It creates missing
// folders. It returns ErrLocation if a root is not a file location. Links in the path of a root are
// followed. Links below a root must be relative and must not lead out of it. If a root does not
// open within two seconds, because its mount hangs, it is opened in the background. Calls below
// that root wait for it.
func New(roots []string) (*Store, error) { return NewOpener().New(roots) }

// NewExisting is like New, but creates no folders. Below a missing root, lookups and deletions find
// no file, and Create fails. That does not change if the folder is created later.
func NewExisting(roots []string) (*Store, error) { return NewOpener().NewExisting(roots) }

// Opener opens Stores that share a limit on the threads that they hold inside the operating system:
// 2,048 in all, and 16 more for each Store. It is safe for concurrent use.
type Opener struct {
	calls    *semaphore.Weighted // inside the operating system
	openings *semaphore.Weighted // roots that are being opened
}

// openingsMax is the maximum number of roots being opened at a time. Each holds a thread until the
// operating system answers. Without a limit, retries for a root that hangs would hold more and more
// threads.
const openingsMax = 256

// NewOpener returns an Opener.
func NewOpener() *Opener {
	return &Opener{semaphore.NewWeighted(openerCallsMax), semaphore.NewWeighted(openingsMax)}
}

// New is like the function New, but its stores share the limit of o.
func (o *Opener) New(roots []string) (*Store, error) { return o.open(roots, openRoot) }

// NewExisting is like the function NewExisting, but its stores share the limit of o.
func (o *Opener) NewExisting(roots []string) (*Store, error) {
	return o.openAs(roots, func(folder string) (fileSystem, error) {
		files, err := openRoot(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return absentFS{}, nil
		}
		return files, err
	})
}

func (o *Opener) open(roots []string, openFolder func(path string) (fileSystem, error)) (*Store, error) {
	return o.openAs(roots, func(folder string) (fileSystem, error) { return makeRoot(folder, openFolder) })
}

// openAs returns a store of the files below roots. It opens each root with openAsRoot.
func (o *Opener) openAs(roots []string, openAsRoot func(folder string) (fileSystem, error)) (*Store, error) {
	parsed, err := outermost(roots)
	if err != nil {
		return nil, err
	}
	store := &Store{calls: newCalls(o.calls), now: time.Now, atOnce: batchAtOnce, temporary: rand.Text()}
	ctx, cancel := context.WithTimeout(context.Background(), openMax)
	defer cancel()
	var attempts []*attempt
	for _, location := range parsed {
		root := &root{location: location, openings: o.openings, makers: semaphore.NewWeighted(makersMax)}
		root.openIt = func() (fileSystem, error) { return openAsRoot(location.Path) }
		store.roots = append(store.roots, root)
		attempts = append(attempts, root.begin())
	}
	var failures []error
	for i, attempt := range attempts {
		select {
		case <-attempt.done:
		case <-ctx.Done(): // the caller of openAs reports the failure
		}
		if attempt.hasFailed() {
			failures = append(failures, fmt.Errorf("open %s: %w", parsed[i], attempt.err))
		}
	}
	if len(failures) > 0 {
		return nil, errors.Join(append(failures, store.Close())...)
	}
	return store, nil
}

// outermost parses locations, and leaves out each one that lies within another.
func outermost(locations []string) ([]storage.Location, error) {
	var roots []storage.Location
	for _, location := range locations {
		parsed, err := storage.Parse(location)
		if err != nil {
			return nil, err
		}
		if parsed.Scheme != storage.SchemeFile {
			return nil, fmt.Errorf("%w: %q: not a file location", storage.ErrLocation, location)
		}
		roots = append(roots, parsed)
	}
	slices.SortFunc(roots, func(a, b storage.Location) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	var outer []storage.Location
	for _, candidate := range roots {
		if !slices.ContainsFunc(outer, func(o storage.Location) bool { return o.Contains(candidate) }) {
			outer = append(outer, candidate)
		}
	}
	return outer, nil
}

// Close closes the roots. Open files stay open; every later call fails. If closing a root hangs,
// the root is closed when the mount answers again.
func (s *Store) Close() error {
	s.calls.lookers.close()
	var failures []error
	for _, root := range s.roots {
		failures = append(failures, root.close(s.calls))
	}
	return errors.Join(failures...)
}

// Busy reports whether any calls of s are inside the operating system, for example because they
// hang.
func (s *Store) Busy() bool {
	return s.calls.inside.Load() > 0 || slices.ContainsFunc(s.roots, (*root).isOpening)
}

// Probe implements storage.Prober by reading each root. It returns when ctx ends.
func (s *Store) Probe(ctx context.Context) error {
	failures := make([]error, len(s.roots))
	var looks sync.WaitGroup
	for i, root := range s.roots {
		looks.Go(func() { failures[i] = root.probe(ctx, s.calls) })
	}
	looks.Wait()
	return errors.Join(failures...)
}

// Open returns the content of a file. Reading the content fails once ctx has ended.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	var found storage.Info
	looking, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	content, err := ask(looking, s.calls, aLook(), func() (*body, error) {
		content, info, err := root.open(location, name)
		if err != nil {
			return nil, err
		}
		found = info
		return newBody(content, info.Bytes), nil
	}, func(late *body) {
		if late.content != nil {
			_ = late.content.Close()
		}
	})
	if err != nil {
		return nil, storage.Info{}, atLocation(location, err)
	}
	content.countAs(ctx, s.calls)
	return content, found, nil
}

// open opens the regular file called name.
func (r *root) open(location, name string) (handle, storage.Info, error) {
	if r.isHidden(name) {
		return nil, storage.Info{}, notFile(location)
	}
	// Without O_NONBLOCK, opening a named pipe would wait for a writer.
	file, err := r.files.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, storage.Info{}, translate(location, err)
	}
	found, err := file.Stat()
	if err != nil || !found.Mode().IsRegular() || r.isHidden(name) { // hidden meanwhile
		if err == nil {
			err = notFile(location)
		}
		return nil, storage.Info{}, errors.Join(translate(location, err), file.Close())
	}
	return file, info(found), nil
}

// ReadRange returns a part of a file.
func (s *Store) ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	part, err := ask(looking, s.calls, aLook(), func() ([]byte, error) {
		content, found, err := root.open(location, name)
		if err != nil {
			return nil, err
		}
		defer content.Close()
		if offset > found.Bytes || length > found.Bytes-offset {
			return nil, io.ErrUnexpectedEOF
		}
		part := make([]byte, length)
		_, err = io.ReadFull(io.NewSectionReader(content, offset, length), part)
		return part, err
	}, nil)
	if err != nil {
		return nil, atLocation(location, err)
	}
	return part, nil
}

// Stat describes a file.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return storage.Info{}, err
	}
	looking, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	found, err := ask(looking, s.calls, aLook(), func() (storage.Info, error) { return root.stat(location, name) }, nil)
	return found, atLocation(location, err)
}

// stat describes the regular file called name.
func (r *root) stat(location, name string) (storage.Info, error) {
	if r.isHidden(name) {
		return storage.Info{}, notFile(location)
	}
	found, err := r.files.Stat(name)
	if err != nil {
		return storage.Info{}, translate(location, err)
	}
	if !found.Mode().IsRegular() || r.isHidden(name) { // hidden meanwhile
		return storage.Info{}, notFile(location)
	}
	return info(found), nil
}

// MayBeGone implements storage.Local. If the answer takes longer than a second, MayBeGone returns
// false, because the file may exist.
func (s *Store) MayBeGone(location string) bool {
	root, name, err := s.rootOf(location)
	if err != nil {
		return true
	}
	if !root.isOpen() {
		return false
	}
	seen, answered := s.calls.glance(root, name)
	return answered && !seen
}

// Delete removes files, and the checksum files that Hadoop keeps next to its files. It leaves
// anything that is not a file, such as a folder. A power cut may bring removed files back. Delete
// also tries to remove the temporary files that killed processes have left next to the files. If
// ctx ends, the current file may still be removed, but no other.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	var failures []error
	var reached []string
	for _, location := range locations {
		if _, _, err := s.locate(ctx, location); err != nil {
			failures = append(failures, err)
			continue
		}
		reached = append(reached, location)
	}
	if len(reached) > 0 {
		_, err := ask(ctx, s.calls, aWrite(1, 0), func() (struct{}, error) {
			return struct{}{},
				s.removeAll(ctx, reached)
		}, nil)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// removeAll deletes the files at locations. Their roots must be open.
func (s *Store) removeAll(ctx context.Context, locations []string) error {
	var failures []error
	for _, location := range locations {
		if err := s.remove(ctx, location); err != nil {
			failures = append(failures, err)
		}
	}
	if ctx.Err() == nil {
		s.sweepAround(ctx, locations)
	}
	return errors.Join(failures...)
}

// remove deletes the file at location. It removes a link itself, not the link's target.
func (s *Store) remove(ctx context.Context, location string) error {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	found, err := root.files.Stat(name)
	if err != nil || !found.Mode().IsRegular() {
		return ignoreMissing(translate(location, err))
	}
	// Remove the checksum first. Once the file is gone, a repeated Delete would not look for its
	// checksum.
	for _, each := range []string{checksumOf(name), name} {
		if err := ctx.Err(); err != nil { // a caller that has left may have reported that the file stays
			return err
		}
		if err := ignoreMissing(translate(location, root.files.Remove(each))); err != nil {
			return err
		}
	}
	return nil
}

// checksumOf returns the name of the file in which Hadoop's local file system keeps the checksum of
// the file called name.
func checksumOf(name string) string { return path.Join(path.Dir(name), "."+path.Base(name)+".crc") }

func ignoreMissing(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// locate returns the root that contains location, and location's name in it. It waits until the
// root is open.
func (s *Store) locate(ctx context.Context, location string) (*root, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", location, err)
	}
	root, name, err := s.rootOf(location)
	if err == nil {
		err = atLocation(location, root.await(ctx))
	}
	return root, name, err
}

// rootOf returns the root that contains location, and location's name in it.
func (s *Store) rootOf(location string) (*root, string, error) {
	parsed, err := storage.ParseFile(location)
	if err != nil {
		return nil, "", err
	}
	for _, root := range s.roots {
		if root.location.Contains(parsed) {
			name := strings.TrimPrefix(strings.TrimPrefix(parsed.Path, root.location.Path), "/")
			return root, cmp.Or(name, "."), nil
		}
	}
	return nil, "", fmt.Errorf("%w: %s", storage.ErrOutside, location)
}

// translate converts errors of the operating system to errors of package storage.
func translate(location string, err error) error {
	switch {
	case err == nil:
		return nil
	case isEscape(err):
		return fmt.Errorf("%w: %s: %w", storage.ErrOutside, location, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %s: %w", storage.ErrNotFound, location, err)
	}
	return fmt.Errorf("%s: %w", location, err)
}

// atLocation adds the location to err if the operating system did not answer. Other errors already
// contain the location.
func atLocation(location string, err error) error {
	if errors.Is(err, storage.ErrUnavailable) {
		return fmt.Errorf("%s: %w", location, err)
	}
	return err
}

func notFile(location string) error {
	return fmt.Errorf("%w: %s is not a regular file", storage.ErrNotFound, location)
}

func info(found fs.FileInfo) storage.Info {
	return storage.Info{Bytes: found.Size(), Modified: found.ModTime()}
}

var (
	_ storage.Store   = (*Store)(nil)
	_ storage.Batcher = (*Store)(nil)
	_ storage.Folders = (*Store)(nil)
	_ storage.Local   = (*Store)(nil)
	_ storage.Prober  = (*Store)(nil)
)
