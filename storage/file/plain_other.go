//go:build !linux

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// plain is a folder that os.Root has reached, each part of whose name was no link before.
type plain struct {
	osFolder
	names *os.File
}

// Plain implements plainFS.
func (r rootFS) Plain(name string) (plainFolder, error) {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		if err := mustBePlain(r.Root, at); err != nil {
			return nil, err
		}
	}
	return openPlain(r.Root, name)
}

// Sub implements plainFolder.
func (p plain) Sub(name string) (plainFolder, error) {
	if err := mustBePlain(p.Root, name); err != nil {
		return nil, err
	}
	return openPlain(p.Root, name)
}

func mustBePlain(root *os.Root, name string) error {
	found, err := root.Lstat(name)
	if err == nil && !found.IsDir() {
		err = fmt.Errorf("%s is no folder: %w", name, fs.ErrNotExist)
	}
	return err
}

func openPlain(root *os.Root, name string) (plainFolder, error) {
	opened, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	names, err := opened.Open(".")
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return plain{osFolder{opened}, names}, nil
}

// ReadDir implements plainFolder.
func (p plain) ReadDir(n int) ([]fs.DirEntry, error) { return p.names.ReadDir(n) }

// Close implements folderFS.
func (p plain) Close() error {
	_ = p.names.Close()
	return p.osFolder.Close()
}
