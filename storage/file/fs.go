package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// fileSystem is one folder and everything below it. This package reaches files only through a
// fileSystem. Names are relative and have slashes; "." is the folder itself. If links in a name
// lead out of the folder, the error is one for which isEscape returns true.
type fileSystem interface {
	folderFS
	Mkdir(name string, mode fs.FileMode) error
	Chtimes(name string, accessed, modified time.Time) error
	Stat(name string) (fs.FileInfo, error)
	// Seen reports whether there is a regular file called name, with one system call. If it returns
	// false, the file may still exist, and the caller must call Stat.
	Seen(name string) bool
	// Folder opens the folder called name, so that the kernel resolves its path only once for
	// several operations.
	Folder(name string) (folderFS, error)
}

// folderFS holds the operations of a fileSystem in one folder. In a folder opened with Folder,
// names have one part.
type folderFS interface {
	OpenFile(name string, flag int, mode fs.FileMode) (handle, error)
	Link(from, to string) error
	Remove(name string) error
	Lstat(name string) (fs.FileInfo, error)
	// Sync makes the names in the folder durable.
	Sync() error
	Close() error
}

// handle is an open file or folder.
type handle interface {
	io.ReadWriteCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	// Readdirnames returns up to n more names in the folder, in no particular order. It returns
	// io.EOF if there are no more.
	Readdirnames(n int) ([]string, error)
	Sync() error
}

// osFolder is a folder of the operating system.
type osFolder struct{ *os.Root }

// OpenFile implements folderFS.
func (f osFolder) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	file, err := f.Root.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Sync implements folderFS.
func (f osFolder) Sync() error {
	folder, err := f.Root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// rootFS is a folder of the operating system, and everything below it.
type rootFS struct {
	osFolder
	folder *os.File // the same folder
}

func openRoot(path string) (fileSystem, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	folder, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return rootFS{osFolder{root}, folder}, nil
}

// Close implements fileSystem.
func (r rootFS) Close() error { return errors.Join(r.folder.Close(), r.Root.Close()) }

// Seen implements fileSystem. Each load of a table calls Seen. So it makes only one system call,
// while os.Root would make one for each folder in the path.
func (r rootFS) Seen(name string) bool { return seenIn(r.folder, name) }

// Folder implements fileSystem. It tries one system call first, and os.Root if that fails. os.Root
// then reports the reason for the failure.
func (r rootFS) Folder(name string) (folderFS, error) {
	if folder, ok := folderIn(r.folder, name); ok {
		return folder, nil
	}
	return r.rootedFolder(name)
}

// rootedFolder implements Folder with os.Root.
func (r rootFS) rootedFolder(name string) (folderFS, error) {
	root, err := r.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

// absentFS is the fileSystem of a missing folder.
type absentFS struct{}

func (absentFS) OpenFile(string, int, fs.FileMode) (handle, error) { return nil, fs.ErrNotExist }
func (absentFS) Folder(string) (folderFS, error)                   { return nil, fs.ErrNotExist }
func (absentFS) Mkdir(string, fs.FileMode) error                   { return fs.ErrNotExist }
func (absentFS) Link(string, string) error                         { return fs.ErrNotExist }
func (absentFS) Remove(string) error                               { return fs.ErrNotExist }
func (absentFS) Chtimes(string, time.Time, time.Time) error        { return fs.ErrNotExist }
func (absentFS) Stat(string) (fs.FileInfo, error)                  { return nil, fs.ErrNotExist }
func (absentFS) Seen(string) bool                                  { return false }
func (absentFS) Sync() error                                       { return fs.ErrNotExist }
func (absentFS) Lstat(string) (fs.FileInfo, error)                 { return nil, fs.ErrNotExist }
func (absentFS) Close() error                                      { return nil }

// isEscape reports whether err means that a name led out of the folder. The os package does not
// export that error, so isEscape compares the text. TestLinks fails if the text ever changes.
func isEscape(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err.Error() == escapeText
	case errors.As(err, &link):
		return link.Err.Error() == escapeText
	}
	return false
}

const escapeText = "path escapes from parent"
