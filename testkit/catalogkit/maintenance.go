package catalogkit

import (
	"cmp"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/maintenance/purge"
	"moorage/maintenance/retention"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

// PurgeConfig returns the configuration of a node's purge worker.
func PurgeConfig(c *Instance) purge.Config {
	return purge.Config{Tables: c.Documents(), Deps: registrytest.LedgerDeps(ledger.Config{
		Store: c.Config.Store, Alone: c.Config.AbortPending, Now: c.Config.Now, Random: testkit.NewBits(2),
		Logger: c.Config.Logger,
	})}
}

// NewPurger returns the purge worker of a node.
func NewPurger(t testing.TB, c *Instance) *purge.Worker {
	t.Helper()
	worker, err := purge.New(PurgeConfig(c))
	testkit.Must(t, err)
	return worker
}

// PurgeOnce carries out all due purges, with a new worker.
func PurgeOnce(ctx context.Context, config purge.Config) error {
	worker, err := purge.New(config)
	if err != nil {
		return err
	}
	return worker.RunOnce(ctx)
}

// PurgeAll carries out all due purges, with a new worker.
func (n *Instance) PurgeAll(ctx context.Context) error { return PurgeOnce(ctx, PurgeConfig(n)) }

// PurgeAll carries out all due purges, with the fixture's worker if it has one.
func (f *Fixture) PurgeAll(ctx context.Context) error {
	if f.Purges == nil {
		return f.Instance.PurgeAll(ctx)
	}
	return f.Purges.RunOnce(ctx)
}

// Recovery returns a recovery over the parts of n.
func (n *Instance) Recovery() *recovery.Recovery {
	purges, err := purge.New(PurgeConfig(n))
	if err != nil {
		panic(err)
	}
	config := recovery.Config{
		Deps: n.Config.Deps, Locks: n.Config.Locks, DeleteSurplus: n.DeleteSurplus, RetryPurge: purges.Retry,
		Jitter: rand.New(rand.NewPCG(1, 1)),
	}
	if n.Config.AbortPending {
		config.AbandonedBefore = n.made
	}
	return recovery.New(config)
}

// Defaults and bounds of package retention.
const (
	UndropWindow    = 7 * 24 * time.Hour
	ChangeRetention = 7 * 24 * time.Hour
	KeptMin         = 20 * time.Minute
)

// NewRetention returns the Retention of a node with this configuration.
func NewRetention(t testing.TB, config catalog.Config) *retention.Retention {
	t.Helper()
	life := catalog.ChangeRetentionMin(cmp.Or(config.IdempotencyLifetime, 30*time.Minute))
	made, err := retention.New(retention.Config{KeyLife: life, Deps: registrytest.LedgerDeps(ledger.Config{
		Store: config.Store, Alone: config.AbortPending, Now: config.Now, Random: testkit.NewBits(2),
	})})
	testkit.Must(t, err)
	return made
}

// runRetention runs a round of jobs of n, as a process that has just started.
func (n *Instance) runRetention(ctx context.Context, jobs ...retention.Job) error {
	made, err := retention.New(retention.Config{
		KeyLife: n.KeyLife(), UndropWindow: n.Config.UndropWindow,
		Deps: registrytest.LedgerDeps(ledger.Config{
			Store: n.Config.Store, Now: n.Config.Now, Random: testkit.NewBits(2),
		}),
	})
	if err != nil {
		return err
	}
	return made.RunOnce(ctx, jobs...)
}

// EndWindows ends the undrop windows that are over.
func (n *Instance) EndWindows(ctx context.Context) error {
	return n.runRetention(ctx, retention.Windows)
}

// ClearTombstones removes all tombstones, as an operator may.
func (f *Fixture) ClearTombstones() {
	f.T.Helper()
	testkit.Must(f.T, f.Ledger.Scan(f.Ctx, registry.TableTombstone, "", "", func(record registry.Record) (bool, error) {
		_, err := claims.New(f.Ledger).Clear(f.Ctx, []string{"file:///", "s3://bucket"}, record.Key.ID)
		return true, err
	}))
}

// SweepFolders runs a round of the job that sweeps folders.
func (n *Instance) SweepFolders(ctx context.Context) error {
	return n.runRetention(ctx, retention.Folders)
}

// SweepAll runs a round of each job of the fixture's node.
func (f *Fixture) SweepAll(ctx context.Context) error { return f.retention.RunOnce(ctx) }
