package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteout tells the kernel to begin writing what a file holds, without waiting, so that syncs of several files that follow find the most
// of it done. It is a hint: what fails of it, a sync repeats.
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
