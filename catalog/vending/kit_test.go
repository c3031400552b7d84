package vending_test

import "moorage/testkit"

var (
	ident           = testkit.Ident
	must            = testkit.Must
	newClock        = testkit.NewClock
	newLockedRandom = testkit.NewBits
)
