package locktest

import "moorage/locks"

// Modes returns every mode of a lock, in the order of the matrix in package locks.
func Modes() []locks.Mode { return []locks.Mode{locks.RA, locks.R, locks.WA, locks.W} }
