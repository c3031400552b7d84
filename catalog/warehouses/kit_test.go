package warehouses_test

import "moorage/testkit"

var (
	must            = testkit.Must
	newLockedRandom = testkit.NewBits
)
