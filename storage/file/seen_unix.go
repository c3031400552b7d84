//go:build unix

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// seenIn tells whether a regular file is called name in folder. A link on the way may lead out of folder: what is there
// is not looked at.
func seenIn(folder *os.File, name string) bool {
	var found unix.Stat_t
	err := unix.Fstatat(int(folder.Fd()), name, &found, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && found.Mode&unix.S_IFMT == unix.S_IFREG
}
