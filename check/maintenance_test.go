package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/registry"
)

// maintain writes consistent maintenance records of the table "t": a job with its file, due
// records, and a lease. It also writes drop records of that table, which is live, and of a table
// that is gone.
func (f *fixture) maintain() (registry.Job, registry.Schedule) {
	f.t.Helper()
	_, pointer := f.pointer()
	now := f.clock.Now()
	job := registry.Job{
		ID: registry.ID{15: 7}, Kind: "snapshots", Pointer: pointer.ID, UUID: pointer.TableUUID, Created: now, Since: now,
		NotBefore: now, Input: &registry.JobFile{Location: "file:///wh/~moorage/jobs/7/input.json"},
	}
	f.must(nil, f.files.Create(f.ctx, job.Input.Location, []byte("{}")))
	f.put(registry.JobKey(pointer.ID, job.Kind), registry.StateWaiting, job)
	schedule := registry.Schedule{Jobs: []registry.KindSchedule{{Kind: "orphans"}, {Kind: "snapshots", Due: now}}}
	f.put(registry.ScheduleKey(pointer.ID), registry.StateNone, schedule)
	f.put(registry.DueKey(pointer.ID, "snapshots", now), registry.StateNone, registry.Due{})
	f.put(registry.DueBlockedKey(pointer.ID, "orphans"), registry.StateNone, registry.Due{Reason: "why"})
	f.put(registry.LeaseKey(pointer.ID), registry.StateNone, registry.Lease{Last: 1})
	f.put(registry.WindowKey(pointer.ID, now), registry.StateNone, registry.Due{})
	f.put(registry.WindowKey(registry.ID{15: 9}, now), registry.StateNone, registry.Due{})
	f.wantClean()
	return job, schedule
}

func TestCheckMaintenance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage func(f *fixture, job registry.Job, schedule registry.Schedule)
		want   string
	}{
		"due without schedule": {func(f *fixture, job registry.Job, schedule registry.Schedule) {
			schedule.Jobs[1].Due = time.Time{}
			f.put(registry.ScheduleKey(job.Pointer), registry.StateNone, schedule)
		}, "is in the due index, but not in the table's schedule"},
		"due twice": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			f.put(registry.DueKey(job.Pointer, "snapshots", job.Created.Add(time.Hour)), registry.StateNone, registry.Due{})
		}, "is in the due index, but not in the table's schedule"},
		"schedule without due": {func(f *fixture, job registry.Job, schedule registry.Schedule) {
			schedule.Jobs[0].Due = job.Created
			f.put(registry.ScheduleKey(job.Pointer), registry.StateNone, schedule)
		}, "so nothing runs it"},
		"schedule of another time": {func(f *fixture, job registry.Job, schedule registry.Schedule) {
			schedule.Jobs[1].Due = job.Created.Add(time.Hour)
			f.put(registry.ScheduleKey(job.Pointer), registry.StateNone, schedule)
		}, "is in the due index, but not in the table's schedule"},
		"file of a job": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			f.must(nil, f.files.Delete(f.ctx, job.Input.Location))
		}, "input.json is missing"},
		"job of a table that is gone": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			job.Pointer = registry.ID{15: 9}
			f.put(registry.JobKey(job.Pointer, job.Kind), registry.StateWaiting, job)
			f.clock.Advance(2 * time.Hour)
		}, "is on a table that is gone"},
		"job of another table": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			f.put(registry.JobKey(registry.ID{15: 9}, job.Kind), registry.StateWaiting, job)
		}, "of another table or kind"},
		"lease on a table that is gone": {func(f *fixture, _ registry.Job, _ registry.Schedule) {
			f.put(registry.LeaseKey(registry.ID{15: 9}), registry.StateNone, registry.Lease{Last: 1})
		}, "a lease on a table that is gone"},
		"job that cannot be read": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			f.write(registry.Put(registry.JobKey(job.Pointer, job.Kind), registry.StateWaiting, []byte("{")))
		}, "job"},
		"drop with a malformed key": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			key := registry.WindowKey(job.Pointer, job.Created)
			f.put(registry.Key{Table: key.Table, ID: key.ID + "0"}, registry.StateNone, registry.Due{})
		}, "is not the key of a drop"},
		"drop that cannot be read": {func(f *fixture, job registry.Job, _ registry.Schedule) {
			f.write(registry.Put(registry.WindowKey(job.Pointer, job.Created), registry.StateNone, []byte("{")))
		}, "window/"},
		"policy that cannot be read": {func(f *fixture, _ registry.Job, _ registry.Schedule) {
			f.write(registry.Put(registry.Key{Table: registry.TableMaintenancePolicy, ID: "server"}, registry.StateNone, []byte("{")))
		}, "server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			job, schedule := f.maintain()
			tt.damage(f, job, schedule)
			report, err := f.Check(f.ctx)
			if err != nil || !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("check: %v %q; want %q", err, report.Problems, tt.want)
			}
			if len(report.Problems) > 1 {
				t.Errorf("one fault is %d problems: %q", len(report.Problems), report.Problems)
			}
		})
	}
}
