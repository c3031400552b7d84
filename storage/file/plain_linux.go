package file

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// heldPlain is a folder that openat2(2) has opened without following a link.
type heldPlain struct{ heldFolder }

// Plain implements plainFS.
func (r rootFS) Plain(name string) (plainFolder, error) {
	folder, err := openPlain(r.folder, name, 0)
	if errors.Is(err, unix.ENOSYS) { // an old kernel
		return r.rootedPlain(name)
	}
	return folder, err
}

// Sub implements plainFolder.
func (p heldPlain) Sub(name string) (plainFolder, error) {
	return openPlain(p.File, name, unix.RESOLVE_NO_XDEV)
}

func openPlain(folder *os.File, name string, resolve uint64) (plainFolder, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | resolve,
	}
	conn, err := folder.SyscallConn()
	if err != nil {
		return nil, err
	}
	opened := -1
	failed := conn.Control(func(descriptor uintptr) { // as in seenIn
		err = retryInterrupted(func() (err error) {
			opened, err = unix.Openat2(int(descriptor), name, &how)
			return err
		})
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	return heldPlain{heldFolder{os.NewFile(uintptr(opened), name)}}, nil
}
