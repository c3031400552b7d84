package catalog

import (
	"cmp"
	"context"
	"math/rand/v2"

	"moorage/maintenance/purge"
	"moorage/recovery"
	"moorage/txlog"
)

// recovery returns one over the parts of c.
func (c *Catalog) recovery() *recovery.Recovery {
	purges, err := purge.New(purgeConfig(c))
	if err != nil {
		panic(err)
	}
	config := recovery.Config{
		Ledger: c.ledger, Locks: c.locks, DeleteSurplus: c.DeleteSurplus, RetryPurge: purges.Retry,
		Now: c.now, Jitter: rand.New(rand.NewPCG(1, 1)), Logger: c.log,
	}
	if c.abortPending {
		config.AbandonedBefore = c.made
	}
	return recovery.New(config)
}

// finishTransaction has a transaction ended, as an operator does that retries it.
func (c *Catalog) finishTransaction(ctx context.Context, entry txlog.Entry) error {
	retried, err := c.recovery().Retry(ctx, entry.ID.String())
	return cmp.Or(err, retried.Reason)
}
