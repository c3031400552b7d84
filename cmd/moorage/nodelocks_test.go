package main

import (
	"log/slog"
	"testing"

	"moorage/internal/cli"
	"moorage/locks"
)

// The locks of a store for a single process are in that process. TestPostgres tests the locks of a
// database.
func TestLocksOfOneProcess(t *testing.T) {
	t.Parallel()
	for _, store := range []string{cli.StoreMemory, t.TempDir()} {
		opened, err := openLocks(t.Context(), cli.Config{Store: store}, newMetrics(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := opened.Manager.(*locks.Local); !ok {
			t.Errorf("store %s: got locks of type %T, want *locks.Local", store, opened.Manager)
		}
		if err := opened.close(); err != nil {
			t.Error(err)
		}
	}
}
