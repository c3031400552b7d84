//go:build !linux

package file

// Plain implements plainFS.
func (r rootFS) Plain(name string) (plainFolder, error) { return r.rootedPlain(name) }
