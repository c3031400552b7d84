package catalog_test

import (
	"cmp"
	"context"

	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// finishTransaction ends a transaction, like a retry by an operator.
func finishTransaction(n *catalogkit.Instance, ctx context.Context, entry txlog.Entry) error {
	retried, err := n.Recovery().Retry(ctx, entry.ID.String())
	return cmp.Or(err, retried.Reason)
}
