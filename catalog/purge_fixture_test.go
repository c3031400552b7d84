package catalog_test

import (
	"context"
	"testing"

	"moorage/ledger"
	"moorage/maintenance/purge"
	"moorage/testkit/registrytest"
)

// purgeConfig is what the purges of a node are made from.
func purgeConfig(c *instance) purge.Config {
	return purge.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: c.config.Store, Alone: c.config.AbortPending, Now: c.config.Now, Random: newLockedRandom(2), Logger: c.config.Logger}), Tables: c.Documents()}
}

func newPurger(t testing.TB, c *instance) *purge.Worker {
	t.Helper()
	worker, err := purge.New(purgeConfig(c))
	must(t, err)
	return worker
}

func purgeOnce(ctx context.Context, config purge.Config) error {
	worker, err := purge.New(config)
	if err != nil {
		return err
	}
	return worker.RunOnce(ctx)
}

// purgeAll carries out the purges that are due, by a worker of its own.
func (n *instance) purgeAll(ctx context.Context) error { return purgeOnce(ctx, purgeConfig(n)) }

// purgeAll carries out the purges that are due, by the worker of the fixture if it has one.
func (f *fixture) purgeAll(ctx context.Context) error {
	if f.purges == nil {
		return f.instance.purgeAll(ctx)
	}
	return f.purges.RunOnce(ctx)
}
