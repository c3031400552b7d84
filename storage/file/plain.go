package file

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// rootedPlain is a folder opened with os.Root, after a check that no part of its name was a link.
type rootedPlain struct {
	osFolder
	names *os.File
}

// rootedPlain implements Plain with os.Root.
func (r rootFS) rootedPlain(name string) (plainFolder, error) {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		if err := mustBePlain(r.Root, at); err != nil {
			return nil, err
		}
	}
	return openRootedPlain(r.Root, name)
}

// Sub implements plainFolder.
func (p rootedPlain) Sub(name string) (plainFolder, error) {
	if err := mustBePlain(p.Root, name); err != nil {
		return nil, err
	}
	return openRootedPlain(p.Root, name)
}

func mustBePlain(root *os.Root, name string) error {
	found, err := root.Lstat(name)
	if err == nil && !found.IsDir() {
		err = fmt.Errorf("%s is no folder: %w", name, fs.ErrNotExist)
	}
	return err
}

func openRootedPlain(root *os.Root, name string) (plainFolder, error) {
	opened, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	names, err := opened.Open(".")
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return rootedPlain{osFolder{opened}, names}, nil
}

// ReadDir implements plainFolder.
func (p rootedPlain) ReadDir(n int) ([]fs.DirEntry, error) { return p.names.ReadDir(n) }

// Close implements folderFS.
func (p rootedPlain) Close() error {
	_ = p.names.Close()
	return p.osFolder.Close()
}
