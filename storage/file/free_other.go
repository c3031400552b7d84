//go:build !linux && !darwin

package file

import "errors"

// FreeBytes is not supported on this system.
func FreeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
