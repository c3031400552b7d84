//go:build !linux

package file

import "os"

// folderIn opens nothing, so the caller uses os.Root.
func folderIn(*os.File, string) (folderFS, bool) { return nil, false }
