//go:build linux || darwin

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Claim makes this process the only writer of the audit log at path, until the returned value is
// closed or the process ends. It locks a file whose name is path plus ".lock". That file stays.
// Without the lock, two writers could each rotate the file that the other writes to.
//
// Errors: ErrClaimed if another process has the claim. If the file system has no locks, Claim
// returns no error.
func Claim(path string) (io.Closer, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim the audit log: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %s", ErrClaimed, path)
	}
	return claim{file}, nil
}

// claim is an open lock file. On a file system that has no locks, it is not locked.
type claim struct{ file *os.File }

// Close ends the claim. Closing the file alone is not enough: a forked child that does not run its
// program yet has a copy of the descriptor, which keeps the lock.
func (c claim) Close() error {
	_ = syscall.Flock(int(c.file.Fd()), syscall.LOCK_UN) // fails only if the file system has no locks
	return c.file.Close()
}
