package documents_test

import "moorage/testkit"

var (
	ident = testkit.Ident
	must  = testkit.Must
)
