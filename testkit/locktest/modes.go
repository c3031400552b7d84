package locktest

import "moorage/locks"

// Modes returns every mode of locks, in the order of the matrix of locks.
func Modes() []locks.Mode { return []locks.Mode{locks.RA, locks.R, locks.WA, locks.W} }
