package purge_test

import (
	"strings"
	"testing"

	"moorage/registry"
)

// blocks fails the test unless the purge becomes blocked for the reason, and stays blocked.
func blocks(t *testing.T, in *dropped, reason string) {
	t.Helper()
	before := in.old.left()
	for range 3 {
		must(t, in.purgeAll(in.ctx))
	}
	records := in.list(registry.TableTask)
	if len(records) != 1 || records[0].State != registry.StateBlocked {
		t.Fatalf("the tasks are %v, want one that is blocked; the log: %s", records, in.logs)
	}
	task, err := registry.DecodeTask(records[0])
	must(t, err)
	if !strings.Contains(task.LastError, reason) || task.Attempts != 3 || task.Begun != 0 {
		t.Errorf("the task is %+v, want %q after 3 attempts", task, reason)
	}
	must(t, in.other(in.store).purgeAll(in.ctx)) // the next process tries it once
	if records := in.list(registry.TableTask); len(records) != 1 || records[0].State != registry.StateBlocked {
		t.Errorf("after a restart the tasks are %v", records)
	}
	if left := in.old.left(); len(left) != len(before) {
		t.Errorf("%d files are left of %d", len(left), len(before))
	}
}

// A purge whose process dies repeatedly is left to an operator, even by processes that start later.
// That does not happen if the processes end normally.
func TestAPurgeThatKillsItsProcessIsBlocked(t *testing.T) {
	t.Parallel()
	in := newDropped(t, twoSnapshots)
	task := func() (registry.Record, registry.Task) {
		records := in.list(registry.TableTask)
		if len(records) != 1 {
			t.Fatalf("there are %d tasks", len(records))
		}
		task, err := registry.DecodeTask(records[0])
		must(t, err)
		return records[0], task
	}
	for died := range registry.BegunMax {
		record, value := task()
		if value.Begun != died || record.State == registry.StateBlocked {
			t.Fatalf("after %d deaths the task is %+v in state %v", died, value, record.State)
		}
		value.Begun++ // as if the process had died of the work
		in.put(record.Key, record.State, value)
	}
	for range 3 {
		must(t, in.other(in.store).purgeAll(in.ctx))
		record, value := task()
		if record.State != registry.StateBlocked || value.Attempts != 1 || !strings.Contains(value.LastError, "the server ended 5 times") {
			t.Fatalf("the task is %+v in state %v, want blocked after the first look", value, record.State)
		}
	}
	in.wantLeft(all()...)
	_, value := task()
	must(t, in.worker.Retry(in.ctx, value.ID))
	in.purge()
	in.wantLeft()
}
