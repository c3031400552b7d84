//go:build linux || darwin

package file

import "syscall"

// FreeBytes returns the number of bytes that users may still write to the disk of folder.
func FreeBytes(folder string) (uint64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), nil
}
