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

// nothing is a mutation that succeeds without an effect, and with an empty reply.
func nothing(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
	_, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{})
	return catalogkit.Reply{}, err
}

// refusal returns a mutation that is refused for the reason why, before it reads anything.
func refusal(why error) func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
	return func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.Refuse(ctx, gate.DropTable, ident("t"), why)
	}
}

var ident = testkit.Ident
