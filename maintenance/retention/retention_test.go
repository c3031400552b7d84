package retention_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
)

// endlessStore is a store with an endless number of pointers and changes. It counts the requested
// ones.
type endlessStore struct {
	registry.Store
	read map[registry.Table]int
	from map[registry.Table][]string
}

func (s *endlessStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table != registry.TablePointer {
		return s.Store.List(ctx, table, prefix, after, limit)
	}
	return s.page(table, after, limit), nil
}

func (s *endlessStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table != registry.TableChange {
		return s.Store.ListKeys(ctx, table, prefix, after, limit)
	}
	return s.page(table, after, limit), nil
}

func (s *endlessStore) page(table registry.Table, after string, limit int) []registry.Record {
	s.from[table] = append(s.from[table], after)
	records := make([]registry.Record, limit)
	for i := range records {
		s.read[table]++
		key := registry.Key{Table: table, ID: fmt.Sprintf("%032x", s.read[table])}
		records[i] = registry.Record{Key: key, ETag: registry.ETag{1}, State: registry.StateLive}
	}
	return records
}

// A round reads a bounded part of the store, and the next round continues after that part.
func TestSweepReadsAPart(t *testing.T) {
	t.Parallel()
	endless := &endlessStore{read: map[registry.Table]int{}, from: map[registry.Table][]string{}}
	f := newFixture(t, func(c *retention.Config) {
		endless.Store = c.Store
		c.Store = endless
	})
	const records = retention.ScanPages * ledger.ScanPage
	for round := 1; round <= 2; round++ {
		if err := f.RunOnce(f.ctx); err != nil {
			t.Fatal(err)
		}
		for _, table := range []registry.Table{registry.TablePointer, registry.TableChange} {
			if got, want := endless.read[table], round*records; got != want {
				t.Errorf("round %d has read %d records of %s, want %d", round, got, table, want)
			}
		}
	}
	for table, from := range endless.from {
		if got, want := from[retention.ScanPages], fmt.Sprintf("%032x", records); got != want {
			t.Errorf("the second round reads %s from %q, want %q", table, got, want)
		}
	}
}

// Changes must be kept for as long as keys are honoured.
func TestKeysNeedChanges(t *testing.T) {
	t.Parallel()
	config := newFixture(t).config
	for _, row := range []struct {
		retention, life time.Duration
		refused         bool
	}{
		{0, keyLife, false},
		{0, 30 * 24 * time.Hour, false},
		{time.Hour, time.Hour, false},
		{time.Hour, time.Hour + 5*time.Minute, true},
		{time.Minute, keyLife, true},
	} {
		config.ChangeRetention, config.KeyLife = row.retention, row.life
		if _, err := retention.New(config); (err != nil) != row.refused {
			t.Errorf("changes for %s, keys for %s: %v", row.retention, row.life, err)
		}
	}
}
