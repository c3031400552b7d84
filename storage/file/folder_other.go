//go:build !linux

package file

import "os"

// folderIn opens nothing: os.Root has to.
func folderIn(*os.File, string) (folderFS, bool) { return nil, false }
