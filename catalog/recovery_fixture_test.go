package catalog_test

import (
	"cmp"
	"context"
	"math/rand/v2"

	"moorage/maintenance/purge"
	"moorage/recovery"
	"moorage/txlog"
)

// recovery returns one over the parts of n.
func (n *instance) recovery() *recovery.Recovery {
	purges, err := purge.New(purgeConfig(n))
	if err != nil {
		panic(err)
	}
	config := recovery.Config{
		Deps: n.config.Deps, Locks: n.config.Locks, DeleteSurplus: n.DeleteSurplus, RetryPurge: purges.Retry, Jitter: rand.New(rand.NewPCG(1, 1)),
	}
	if n.config.AbortPending {
		config.AbandonedBefore = n.made
	}
	return recovery.New(config)
}

// finishTransaction has a transaction ended, as an operator does that retries it.
func (n *instance) finishTransaction(ctx context.Context, entry txlog.Entry) error {
	retried, err := n.recovery().Retry(ctx, entry.ID.String())
	return cmp.Or(err, retried.Reason)
}
