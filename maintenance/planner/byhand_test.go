package planner_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/clocks"
	"moorage/maintenance/jobs"
	"moorage/maintenance/steer"
	"moorage/registry"
)

// A clock that may be wrong begins no job by hand either. The error says how an operator confirms
// it.
func TestByHandWhileTheClockIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"ahead": 365 * 24 * time.Hour, "behind": -2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory)
			_, history := w.table("t", 1)
			for range 6 {
				w.clock.Advance(time.Second)
				w.commit("t", history.Append("main", 1)...)
			}
			tables := catalog.TablesOf(w.catalog.As(moorage.System("expire")))
			isOwn := func(principal string) bool { return strings.HasPrefix(principal, "system:") }
			doubting, err := jobs.New(jobs.Config{
				Store: w.store, Tables: tables, Now: w.clock.Now, Random: w.random, Alone: true, Doubt: clocks.New(w.store, isOwn).Doubt,
			})
			must(t, err)
			s := &steer.Steering{Ledger: ledger.Over(w.store), Policies: w.policies, Jobs: doubting, Tables: tables}
			expire, orphans := jobs.DefaultSnapshots(), jobs.DefaultOrphans()
			expire.Retention.MaxSnapshotAge = 0
			asked := map[string]steer.ByHand{jobs.KindSnapshots: {Snapshots: &expire}, jobs.KindOrphans: {Orphans: &orphans}}
			w.clock.Advance(wrong)
			for kind, by := range asked {
				_, err := s.Begin(w.ctx, catalog.ScopesOf(w.ann()), ident("t"), by)
				if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.Contains(err.Error(), "moorage maintain resume server") {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if under, _, err := doubting.List(w.ctx, registry.ID{}, "", 0); err != nil || len(under) > 0 || w.snapshots("t") != 6 {
				t.Errorf("jobs %+v, %v; %d snapshots", under, err, w.snapshots("t"))
			}
			must(t, s.Resume(w.ctx, catalog.ScopesOf(w.ann()), moorage.Identifier{}))
			for kind, by := range asked {
				if _, err := s.Begin(w.ctx, catalog.ScopesOf(w.ann()), ident("t"), by); err != nil {
					t.Errorf("%s once the clock is confirmed: %v", kind, err)
				}
			}
		})
	}
}
