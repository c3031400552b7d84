package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

const (
	// leftoverAge is the age at which a temporary file of another Store counts as a leftover. No
	// request lasts that long. A mistake costs little, because a writer whose temporary file is
	// gone starts again.
	leftoverAge = time.Minute
	// namesAtOnce is the maximum number of a folder's names that are in memory at a time.
	namesAtOnce = 1024
)

// The prefix and suffix of a temporary name. Between them are 26 random letters and digits, a
// hyphen, and a number. Each process draws the letters and digits once.
const (
	temporaryPrefix = "moorage-"
	temporarySuffix = ".tmp"
)

func (s *Store) newTemporary() string {
	return fmt.Sprintf("%s%s-%d%s", temporaryPrefix, s.temporary, s.serial.Add(1), temporarySuffix)
}

// isForeignTemporary reports whether name is a temporary name of another Store.
func (s *Store) isForeignTemporary(name string) bool {
	rest, hasPrefix := strings.CutPrefix(name, temporaryPrefix)
	rest, hasSuffix := strings.CutSuffix(rest, temporarySuffix)
	drawn, number, _ := strings.Cut(rest, "-")
	return hasPrefix && hasSuffix && len(drawn) == len(s.temporary) && drawn != s.temporary &&
		number != "" && strings.Trim(number, "0123456789") == ""
}

// sweep removes the temporary files of killed processes from folder, which is called name. It
// checks each folder once. Files that are too young may belong to live processes; if there are any,
// it checks the folder again later.
func (s *Store) sweep(root *root, name string, folder folderFS) error {
	if root.swept.has(name) {
		return nil
	}
	found, err := s.foreignTemporaries(folder)
	if err != nil {
		return err
	}
	isSwept := true
	for _, temporary := range found {
		removed, err := s.removeLeftover(folder, temporary)
		if err != nil {
			return err
		}
		isSwept = isSwept && removed
	}
	if isSwept {
		root.swept.add(name)
	}
	return nil
}

// foreignTemporaries returns the temporary names of other stores in folder.
func (s *Store) foreignTemporaries(folder folderFS) ([]string, error) {
	opened, err := folder.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	var found []string
	for err == nil {
		var names []string
		names, err = opened.Readdirnames(namesAtOnce)
		for _, name := range names {
			if s.isForeignTemporary(name) {
				found = append(found, name)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, errors.Join(err, opened.Close())
}

// removeLeftover removes the temporary file called name from folder. It returns false if the file
// is too young. If it cannot remove the file, the file stays.
func (s *Store) removeLeftover(folder folderFS, name string) (bool, error) {
	found, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// A file with a time in the future was made while a clock was wrong. With Abs, it counts as a
	// leftover.
	if s.now().Sub(found.ModTime()).Abs() < leftoverAge {
		return false, nil
	}
	if found.Mode().IsRegular() {
		_ = folder.Remove(name) // harmless if it stays
	}
	return true, nil
}

// sweepAround sweeps the folders of the files at locations. It is optional, so it reports no
// errors.
func (s *Store) sweepAround(ctx context.Context, locations []string) {
	type place struct {
		root   *root
		folder string
	}
	looked := make(map[place]bool)
	for _, location := range locations {
		root, name, err := s.locate(ctx, location)
		at := place{root, path.Dir(name)}
		if err != nil || looked[at] || root.swept.has(at.folder) {
			continue
		}
		looked[at] = true
		if folder, err := root.files.Folder(at.folder); err == nil {
			_ = s.sweep(root, at.folder, folder)
			_ = folder.Close()
		}
	}
}
