//go:build unix

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// seenIn tells whether a regular file is called name in folder. A link on the way may lead out of folder: what is there
// is not looked at. In a folder that is closed, nothing is seen.
func seenIn(folder *os.File, name string) bool {
	conn, err := folder.SyscallConn()
	if err != nil {
		return false
	}
	var found unix.Stat_t
	// Within Control the descriptor stays that of folder; outside, it is another's as soon as folder is closed.
	failed := conn.Control(func(descriptor uintptr) {
		err = unix.Fstatat(int(descriptor), name, &found, unix.AT_SYMLINK_NOFOLLOW)
	})
	return failed == nil && err == nil && found.Mode&unix.S_IFMT == unix.S_IFREG
}
