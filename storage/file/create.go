package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

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
	folder := path.Dir(name)
	err = root.inFolder(folder, func() error { return s.createIn(ctx, root.files, folder, name, body) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return root.taken(location, name)
	case isEscape(err):
		return translate(location, err)
	}
	return fmt.Errorf("create %s: %w", location, err)
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
	return syncFolder(files, folder)
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
