package due_test

import (
	"crypto/rand"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

var (
	table = registry.ID{0xab, 1}
	start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
)

// rules returns rules for snapshots and orphans.
func rules(settings policy.Settings) policy.Rules {
	return policy.Effective([]policy.Policy{{Jobs: map[policy.Type]policy.Job{
		policy.SnapshotManagement:      {Status: policy.Enabled, Settings: settings},
		policy.UnreferencedFileRemoval: {Status: policy.Enabled},
	}}}, nil)
}

func facts(snapshots int64, first time.Time) policy.Facts {
	return policy.Facts{Known: true, Snapshots: snapshots, First: first, Files: -1}
}

// apply applies a change, and returns the schedule after it.
func apply(t *testing.T, l *ledger.Ledger, change due.Change) due.Schedule {
	t.Helper()
	_, err := l.Step(t.Context(), registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	must(t, err)
	schedules, err := due.ReadSchedules(t.Context(), l, table)
	must(t, err)
	return schedules[0]
}

// wantAgreed fails the test unless the due index has exactly the times of schedule.
func wantAgreed(t *testing.T, l *ledger.Ledger, schedule due.Schedule, want int) {
	t.Helper()
	wanted := map[registry.Key]bool{}
	for _, job := range schedule.Value.Jobs {
		if !job.Due.IsZero() {
			wanted[registry.DueKey(table, job.Kind, job.Due)] = true
		}
	}
	records, err := l.List(t.Context(), registry.TableDue, registry.DuePrefix(registry.DueShard(table)), "", 100)
	must(t, err)
	for _, record := range records {
		if !wanted[record.Key] {
			t.Errorf("%s is in the index, and no schedule says so", record.Key)
		}
	}
	if len(records) != len(wanted) || len(wanted) != want {
		t.Errorf("there are %d times, the schedule has %d, want %d", len(records), len(wanted), want)
	}
}

// The schedule and the index agree after each change: made due, due earlier, run, blocked,
// unblocked, gone.
func TestScheduleAndIndexAgree(t *testing.T) {
	t.Parallel()
	l := registrytest.Ledger(memory.New(rand.Reader))
	schedules, err := due.ReadSchedules(t.Context(), l, table)
	must(t, err)
	schedule := schedules[0]
	sight := due.Observation{Facts: facts(40, start), Rules: rules(nil), Mode: due.ModeEvent}
	after, changed := due.Evaluate(schedule.Value, sight, start)
	if !changed {
		t.Fatal("a table with many snapshots is not due")
	}
	late := start.AddDate(1, 0, 0)
	if overdue, _ := due.Evaluate(schedule.Value, sight, late); !overdue.Job("snapshots").Due.Equal(late) {
		t.Errorf("a table that was due long ago is due at %s, want now: the index was read up to then", overdue.Job("snapshots").Due)
	}
	change, err := schedule.Move(after)
	must(t, err)
	schedule = apply(t, l, change)
	wantAgreed(t, l, schedule, 2)

	if _, changed = due.Evaluate(schedule.Value, sight, start.Add(time.Minute)); changed {
		t.Error("the next commit writes, though its time stands")
	}
	sight.Rules = rules(policy.Settings{policy.MaxSnapshotAgeHours: "1"})
	after, changed = due.Evaluate(schedule.Value, sight, start)
	if !changed || !after.Job("snapshots").Due.Equal(start.Add(time.Minute)) {
		t.Errorf("another rule: due %s, want a look in a minute", after.Job("snapshots").Due)
	}
	sight.Exact = true
	after, _ = due.Evaluate(schedule.Value, sight, start)
	if !after.Job("snapshots").Due.Equal(start.Add(time.Hour)) {
		t.Errorf("another rule, exactly: due %s, want when the first is old", after.Job("snapshots").Due)
	}
	change, err = schedule.Move(after)
	must(t, err)
	schedule = apply(t, l, change)
	wantAgreed(t, l, schedule, 2)

	change, err = schedule.Block(schedule.Value.Job("snapshots"), "broken", "", start)
	must(t, err)
	schedule = apply(t, l, change)
	wantAgreed(t, l, schedule, 1)
	if after, changed = due.Evaluate(schedule.Value, sight, start); changed {
		t.Errorf("a blocked kind is due again: %+v", after)
	}
	blockers, err := l.Get(t.Context(), registry.DueBlockedKey(table, "snapshots"))
	must(t, err)
	change, err = schedule.Unblock("snapshots", start, blockers[0])
	must(t, err)
	schedule = apply(t, l, change)
	wantAgreed(t, l, schedule, 2)
	if records, err := l.Get(t.Context(), registry.DueBlockedKey(table, "snapshots")); err != nil || records[0].Exists() {
		t.Errorf("the blocker is left: %v, %v", records, err)
	}
	apply(t, l, schedule.End())
	wantAgreed(t, l, due.Schedule{}, 0)
}

// Two writers of one schedule cannot both win.
func TestMoveRequiresTheCareAsItWasRead(t *testing.T) {
	t.Parallel()
	l := registrytest.Ledger(memory.New(rand.Reader))
	first := due.Schedule{Pointer: table}
	for _, want := range []bool{true, false} {
		change, err := first.Move(registry.Schedule{Jobs: []registry.KindSchedule{{Kind: "snapshots", Due: start}}})
		must(t, err)
		_, err = l.Step(t.Context(), registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
		if (err == nil) != want {
			t.Errorf("an Apply returned %v, want success: %t", err, want)
		}
	}
}
