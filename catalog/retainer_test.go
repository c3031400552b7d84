package catalog

import (
	"cmp"
	"context"
	"testing"
	"time"

	"moorage/maintenance/retention"
)

// Defaults and bounds of package retention.
const (
	undropWindow    = 7 * 24 * time.Hour
	changeRetention = 7 * 24 * time.Hour
	keptMin         = 20 * time.Minute
)

// newRetention returns what a node with this configuration runs.
func newRetention(t testing.TB, config Config) *retention.Retention {
	t.Helper()
	life := ChangeRetentionMin(cmp.Or(config.IdempotencyLifetime, 30*time.Minute))
	made, err := retention.New(retention.Config{
		Store: config.Store, KeyLife: life, Alone: config.AbortPending, Now: config.Now, Random: newLockedRandom(2),
	})
	must(t, err)
	return made
}

// runRetention runs a round of jobs of c, as a process does that has just begun.
func (c *Catalog) runRetention(ctx context.Context, jobs ...retention.Job) error {
	made, err := retention.New(retention.Config{
		Store: c.store, KeyLife: ChangeRetentionMin(c.keyLifetime), Now: c.now, Random: newLockedRandom(2),
	})
	if err != nil {
		return err
	}
	return made.RunOnce(ctx, jobs...)
}

func (c *Catalog) endWindows(ctx context.Context) error {
	return c.runRetention(ctx, retention.Windows)
}

func (c *Catalog) sweepFolders(ctx context.Context) error {
	return c.runRetention(ctx, retention.Folders)
}

// sweepAll runs a round of each job of the fixture's node.
func (f *fixture) sweepAll(ctx context.Context) error { return f.retention.RunOnce(ctx) }
