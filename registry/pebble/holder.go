//go:build unix

package pebble

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// lockedBy returns ErrLocked, with the id of the process that has the lock on the file called name.
// It leaves out the ID if the system does not know it, for example if the process is in another
// container. This process must have no lock on the file: closing the file would end that lock.
func lockedBy(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return ErrLocked
	}
	defer file.Close()
	held := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &held)
	if err != nil || held.Type == syscall.F_UNLCK || held.Pid <= 0 {
		return ErrLocked
	}
	return fmt.Errorf("%w, %d", ErrLocked, held.Pid)
}
