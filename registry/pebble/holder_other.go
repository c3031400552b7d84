//go:build !unix

package pebble

// lockedBy returns ErrLocked.
func lockedBy(string) error { return ErrLocked }
