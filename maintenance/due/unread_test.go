package due_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// TestUnreadableSchedule: an unreadable schedule does not keep other tables from becoming due,
// either by changes or by walks. A log line names the table. An unreadable walk is also logged.
func TestUnreadableSchedule(t *testing.T) { overStores(t, testUnreadableCare) }

func testUnreadableCare(t *testing.T, w *world) {
	spoiled, bad := w.table("spoiled", 1)
	w.table("empty", 2)
	id, history := w.table("t", 3)
	w.put(warehouse, policy.SnapshotManagement, nil)
	var log bytes.Buffer
	made, err := due.NewMonitor(due.MonitorConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Alone: true, Now: w.clock.Now, Random: w.random, Logger: slog.New(slog.NewTextHandler(&log, nil))}), Tables: w.ann().Tables(), Policies: w.policies,
	})
	must(t, err)
	spoil := func(key registry.Key) {
		t.Helper()
		_, err := w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{
			registry.Put(key, registry.StateNone, []byte("{")),
		}})
		must(t, err)
	}
	spoil(registry.ScheduleKey(spoiled))
	spoil(registry.WalkKey("name/w.none"))
	for range 30 {
		w.commit("spoiled", bad.Append("main", 1)...)
		w.commit("t", history.Append("main", 1)...)
	}
	must(t, made.RunOnce(w.ctx))
	if w.schedule(id).Job("snapshots").Due.IsZero() {
		t.Error("the other table is not due")
	}
	if said := log.String(); !strings.Contains(said, "table="+spoiled.String()) || !strings.Contains(said, "a walk cannot be read") {
		t.Errorf("the log says %q", said)
	}
	w.forgetDue(id)
	for range 40 { // the daily check begins at a random place
		if made.Stats().Missed > 0 {
			break
		}
		w.clock.Advance(25 * time.Hour)
		must(t, made.RunOnce(w.ctx))
	}
	if stats := made.Stats(); w.schedule(id).Job("snapshots").Due.IsZero() || stats.Missed != 1 {
		t.Errorf("days later the other table is not due: %+v", stats)
	}
}
