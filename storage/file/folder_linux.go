package file

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// heldFolder is an open folder in which each operation costs one system call. os.Root would, for
// each operation, open a file and check whether the file can be polled.
type heldFolder struct{ *os.File }

// folderIn opens the folder called name in folder or below it. Like os.Root, openat2(2) with
// RESOLVE_BENEATH follows no link that leads out. It needs one system call, while os.Root needs
// three for each part of the name. ok is false if the call fails for any reason.
//
// Each file needs a new call of folderIn. A cached folder would have to be compared with the folder
// that has its name at the time, which costs as much. It would also prevent the operator from
// unmounting the file system.
func folderIn(folder *os.File, name string) (held folderFS, ok bool) {
	conn, err := folder.SyscallConn()
	if err != nil {
		return nil, false
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH}
	opened := -1
	failed := conn.Control(func(descriptor uintptr) { // as in seenIn
		err = retryInterrupted(func() (err error) {
			opened, err = unix.Openat2(int(descriptor), name, &how)
			return err
		})
	})
	if failed != nil || err != nil {
		return nil, false
	}
	return heldFolder{os.NewFile(uintptr(opened), name)}, true
}

// retryInterrupted repeats call while a signal interrupts it.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// OpenFile implements folderFS. It does not follow links.
func (f heldFolder) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	opened, err := f.open(name, flag, mode)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (f heldFolder) open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	var opened int
	err := retryInterrupted(func() (err error) {
		opened, err = unix.Openat(int(f.Fd()), name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode.Perm()))
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	return os.NewFile(uintptr(opened), name), nil
}

// Link implements folderFS.
func (f heldFolder) Link(from, to string) error {
	err := retryInterrupted(func() error { return unix.Linkat(int(f.Fd()), from, int(f.Fd()), to, 0) })
	if err != nil {
		return &os.LinkError{Op: "linkat", Old: from, New: to, Err: err}
	}
	return nil
}

// Remove implements folderFS. It removes only files.
func (f heldFolder) Remove(name string) error {
	if err := retryInterrupted(func() error { return unix.Unlinkat(int(f.Fd()), name, 0) }); err != nil {
		return &fs.PathError{Op: "unlinkat", Path: name, Err: err}
	}
	return nil
}

// Lstat implements folderFS. A missing file costs one system call.
func (f heldFolder) Lstat(name string) (fs.FileInfo, error) {
	opened, err := f.open(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	found, err := opened.Stat()
	return found, errors.Join(err, opened.Close())
}
