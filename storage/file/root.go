package file

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// makeRoot opens the folder at an absolute path, after making it if it is not there. It is durable
// then, also if whoever made it a moment ago has not synced it.
func makeRoot(folder string, openFolder func(path string) (fileSystem, error)) (fileSystem, error) {
	files, err := openFolder(folder)
	switch {
	case folder == "/" || err != nil && !errors.Is(err, fs.ErrNotExist):
		return files, err
	case err != nil:
		err = above(folder, openFolder, func(parent fileSystem) error { return makeFolder(parent, path.Base(folder)) })
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

// isForeign tells whether err says that a folder cannot be read or synced by this process at all. A
// root was not made in such a folder a moment ago.
func isForeign(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}
