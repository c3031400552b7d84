//go:build !unix

package secrets

import (
	"fmt"
	"io/fs"
)

// checkMode cannot check the permissions of a file on this system.
func checkMode(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("secrets: %s is not a file", path)
	}
	return nil
}
