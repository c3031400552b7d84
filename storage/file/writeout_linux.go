package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteout asks the kernel to begin writing the content of a file, and does not wait. Later
// syncs of several files then have less to write. The call is only a hint: if it fails, the sync
// writes everything.
func startWriteout(content handle) {
	file, ok := content.(*os.File)
	if !ok {
		return
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(descriptor uintptr) {
		_ = unix.SyncFileRange(int(descriptor), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	})
}
