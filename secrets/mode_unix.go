//go:build unix

package secrets

import (
	"fmt"
	"io/fs"
	"syscall"
)

const (
	ownFileMode = 0o600
	// rootFileMode is for files that belong to root. A process of another user can read them
	// through its group. Kubernetes mounts secrets this way.
	rootFileMode = 0o640
)

// checkMode returns an error if a user other than the owner can read the file. If root owns the
// file, its group may read it too.
func checkMode(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("secrets: %s is not a file", path)
	}
	allowed := fs.FileMode(ownFileMode)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
		allowed = rootFileMode
	}
	if mode := info.Mode().Perm(); mode&^allowed != 0 {
		return fmt.Errorf("secrets: others can read %s, whose mode is %04o: run chmod 600 %s", path, mode, path)
	}
	return nil
}
