package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"syscall"

	"moorage/storage"
)

// Permissions before the umask: who shares files with engines of another user sets that.
const (
	fileMode   fs.FileMode = 0o666
	folderMode fs.FileMode = 0o777
)

// Create writes a new file.
//
// The body is written and synced under a temporary name, which ends in ".tmp", in the file's own folder, and
// then linked to the final one: link(2) refuses a name that is taken, and a file that
// a crash cut short never has its final name. Then the folder is synced. A crash
// can leave the temporary file.
func (s *Store) Create(ctx context.Context, location string, body []byte) error {
	root, name, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	mine, err := root.startWriting(ctx, name)
	if err != nil {
		return fmt.Errorf("create %s: %w", location, err)
	}
	defer root.endWriting(name, mine)
	_, err = root.files.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		mine.hidden.Store(true)
		folder := path.Dir(name)
		err = root.inFolder(folder, func() error { return s.createIn(ctx, root.files, folder, name, body) })
		if err == nil {
			return nil
		}
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return root.taken(location, name)
	case isEscape(err), isImpossible(err):
		return translate(location, err)
	}
	return fmt.Errorf("create %s: %w", location, err)
}

// isImpossible tells whether err says that nothing can have such a name: a part of it is too long, or is a file.
func isImpossible(err error) bool {
	return errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ENOTDIR)
}

// writing is a file that is being made.
type writing struct {
	done chan struct{} // closed when it is made, or not
	// hidden is set if the file was not there before. Then it is not there for readers until it is
	// done: it may have its name already and still be lost in a power cut.
	hidden atomic.Bool
}

// startWriting waits until nobody else in this process makes the file called name.
func (r *root) startWriting(ctx context.Context, name string) (*writing, error) {
	mine := &writing{done: make(chan struct{})}
	for {
		other, busy := r.writing.LoadOrStore(name, mine)
		if !busy {
			return mine, nil
		}
		select {
		case <-other.(*writing).done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *root) endWriting(name string, w *writing) {
	r.writing.Delete(name)
	close(w.done)
}

func (r *root) isHidden(name string) bool {
	w, ok := r.writing.Load(name)
	return ok && w.(*writing).hidden.Load()
}

// taken says why a file could not have its name.
func (r *root) taken(location, name string) error {
	if _, err := r.files.Stat(name); isEscape(err) {
		return translate(location, err)
	}
	return fmt.Errorf("%w: %s", storage.ErrExists, location)
}

// createIn makes the file called name in folder, which is there and durable.
func (s *Store) createIn(ctx context.Context, files fileSystem, folder, name string, body []byte) error {
	temporary := path.Join(folder, fmt.Sprintf("moorage-%s-%d.tmp", s.temporary, s.serial.Add(1)))
	err := writeFile(files, temporary, body)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = files.Link(temporary, name)
	}
	// The temporary name is useless now, and harmless if it stays.
	_ = files.Remove(temporary)
	if err != nil {
		return err
	}
	err = syncFolder(files, folder)
	if err != nil {
		// Nobody was told of the file or could read it: if it can be undone, it was never there.
		_ = files.Remove(name)
	}
	return err
}

// writeFile makes a file that is durable but for its name.
func writeFile(files fileSystem, name string, body []byte) error {
	file, err := files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
