package gate_test

import "moorage/testkit"

var (
	ident           = testkit.Ident
	newLockedRandom = testkit.NewBits
)
