package catalog_test

import (
	"context"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
)

type clock = testkit.Clock

var newClock = testkit.NewClock

type lockedRandom = testkit.Bits

var newLockedRandom = testkit.NewBits

// nothing is a mutation that succeeds without an effect, and has nothing to answer.
func nothing(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
	_, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{})
	return catalogkit.Reply{}, err
}

// refusal is a mutation that is refused for this reason, before it looks at anything.
func refusal(why error) func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
	return func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.Refuse(ctx, gate.DropTable, ident("t"), why)
	}
}

var ident = testkit.Ident
