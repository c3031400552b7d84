package commit_test

import "moorage/testkit"

var (
	ident           = testkit.Ident
	must            = testkit.Must
	newLockedRandom = testkit.NewBits
)
