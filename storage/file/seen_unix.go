//go:build unix

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// seenIn reports whether folder has a regular file called name. It does not follow a link that may
// lead out of folder. If folder is closed, it returns false.
func seenIn(folder *os.File, name string) bool {
	conn, err := folder.SyscallConn()
	if err != nil {
		return false
	}
	var found unix.Stat_t
	// Inside Control the descriptor still belongs to folder. Outside, the kernel may give it to
	// another file as soon as folder is closed.
	failed := conn.Control(func(descriptor uintptr) {
		err = unix.Fstatat(int(descriptor), name, &found, unix.AT_SYMLINK_NOFOLLOW)
	})
	return failed == nil && err == nil && found.Mode&unix.S_IFMT == unix.S_IFREG
}
