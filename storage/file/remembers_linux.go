package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// resolveCached is RESOLVE_CACHED of openat2(2), since Linux 5.12: the open fails with EAGAIN
// unless all that it needs is in the kernel's memory.
const resolveCached = 0x20

// remembersIn reports whether the kernel has in memory that a regular file is called name in
// folder. It asks no disk and no server, and so returns at once also on a mount that hangs.
func remembersIn(folder *os.File, name string) bool {
	conn, err := folder.SyscallConn()
	if err != nil {
		return false
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | resolveCached,
	}
	opened := -1
	failed := conn.Control(func(descriptor uintptr) { // as in seenIn
		opened, err = unix.Openat2(int(descriptor), name, &how)
	})
	if failed != nil || err != nil {
		return false
	}
	defer unix.Close(opened) // it stands for a name, and has nothing to write
	var found unix.Statx_t
	err = unix.Statx(opened, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &found)
	return err == nil && found.Mode&unix.S_IFMT == unix.S_IFREG
}
