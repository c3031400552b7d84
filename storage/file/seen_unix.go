//go:build unix

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// seenIn reports whether folder has a regular file name. If a link on the way may lead out of
// folder, seenIn does not follow it. In a closed folder it sees nothing.
func seenIn(folder *os.File, name string) bool {
	conn, err := folder.SyscallConn()
	if err != nil {
		return false
	}
	var found unix.Stat_t
	// Inside Control the descriptor still belongs to folder. Outside, another file may have it as
	// soon as folder is closed.
	failed := conn.Control(func(descriptor uintptr) {
		err = unix.Fstatat(int(descriptor), name, &found, unix.AT_SYMLINK_NOFOLLOW)
	})
	return failed == nil && err == nil && found.Mode&unix.S_IFMT == unix.S_IFREG
}
