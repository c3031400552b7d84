package catalog_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// Defaults and bounds of package retention.
const (
	undropWindow    = 7 * 24 * time.Hour
	changeRetention = 7 * 24 * time.Hour
	keptMin         = 20 * time.Minute
)

// newRetention returns what a node with this configuration runs.
func newRetention(t testing.TB, config catalog.Config) *retention.Retention {
	t.Helper()
	life := catalog.ChangeRetentionMin(cmp.Or(config.IdempotencyLifetime, 30*time.Minute))
	made, err := retention.New(retention.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: config.Store, Alone: config.AbortPending, Now: config.Now, Random: newLockedRandom(2)}), KeyLife: life,
	})
	must(t, err)
	return made
}

// runRetention runs a round of jobs of n, as a process does that has just begun.
func (n *instance) runRetention(ctx context.Context, jobs ...retention.Job) error {
	made, err := retention.New(retention.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: n.config.Store, Now: n.config.Now, Random: newLockedRandom(2)}), KeyLife: n.keyLife(),
	})
	if err != nil {
		return err
	}
	return made.RunOnce(ctx, jobs...)
}

func (n *instance) endWindows(ctx context.Context) error {
	return n.runRetention(ctx, retention.Windows)
}

// clearTombstones removes all tombstones, as an operator may.
func (f *fixture) clearTombstones() {
	f.t.Helper()
	must(f.t, f.ledger.Scan(f.ctx, registry.TableTombstone, "", "", func(record registry.Record) (bool, error) {
		_, err := claims.New(f.ledger).Clear(f.ctx, []string{"file:///", "s3://bucket"}, record.Key.ID)
		return true, err
	}))
}

func (n *instance) sweepFolders(ctx context.Context) error {
	return n.runRetention(ctx, retention.Folders)
}

// sweepAll runs a round of each job of the fixture's node.
func (f *fixture) sweepAll(ctx context.Context) error { return f.retention.RunOnce(ctx) }
