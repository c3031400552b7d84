package catalog

import (
	"context"
	"testing"

	"moorage/maintenance/purge"
)

// purgeConfig is what the purges of a node are made from.
func purgeConfig(c *Catalog) purge.Config {
	return purge.Config{Store: c.store, Tables: c, Alone: c.abortPending, Now: c.now, Random: newLockedRandom(2), Logger: c.log}
}

func newPurger(t testing.TB, c *Catalog) *purge.Worker {
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
func (c *Catalog) purgeAll(ctx context.Context) error { return purgeOnce(ctx, purgeConfig(c)) }

// purgeAll carries out the purges that are due, by the worker of the fixture if it has one.
func (f *fixture) purgeAll(ctx context.Context) error {
	if f.purges == nil {
		return f.Catalog.purgeAll(ctx)
	}
	return f.purges.RunOnce(ctx)
}
