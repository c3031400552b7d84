package purge_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"moorage/internal/hostiletest"
	"moorage/manifest"
	"moorage/registry"
)

var longFlag = flag.Bool("long", false, "lists of four million names and manifests of four million files, not of as many as show the bounds")

// A list of a few megabytes that unpacks to millions of manifests blocks its purge, after a few
// attempts that take little memory. Nothing is deleted, and a worker that starts again leaves it
// blocked.
func TestAListOfMillionsOfManifestsBlocksItsPurge(t *testing.T) {
	manifests := manifest.ListedMax + 1
	if *longFlag {
		manifests = 4_000_000
	}
	peak := hostiletest.Peak(t, func(t *testing.T) func() {
		in := newDropped(t, func(old *purged) {
			old.listed(old.file(purgedTable+"/metadata/snap.avro", hostiletest.List(t, manifests, func(i int) string {
				return fmt.Sprintf("%s/metadata/%09d-m0.avro", purgedTable, i)
			})))
		})
		return func() { blocks(t, in, "over 262144 manifests") }
	})
	t.Logf("%d manifests take %d bytes above idle", manifests, peak)
	if peak > hostiletest.AboveIdleMax {
		t.Errorf("%d manifests take %d bytes above idle, want at most %d", manifests, peak, hostiletest.AboveIdleMax)
	}
}

// blocks fails the test unless the purge ends blocked for the reason, and stays so.
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

// A manifest of a million files, each with thousands of numbers that nobody asks for, is read a
// part at a time.
func TestAManifestOfMillionsOfFilesIsPurgedInLittleMemory(t *testing.T) {
	files := 300_000
	if *longFlag {
		files = 4_000_000
	}
	peak := hostiletest.Peak(t, func(t *testing.T) func() {
		in := newDropped(t, func(old *purged) {
			at := purgedTable + "/metadata/m.avro"
			old.file(at, hostiletest.Manifest(t, files, 0, func(i int) string {
				return fmt.Sprintf("%s/data/%09d.parquet", purgedTable, i)
			}))
			old.file(purgedTable+"/metadata/wide.avro", hostiletest.Manifest(t, 3, 6<<20, func(i int) string {
				return fmt.Sprintf("%s/data/wide-%09d.parquet", purgedTable, i)
			}))
			old.listed(old.file(purgedTable+"/metadata/snap.avro", hostiletest.List(t, 2, func(i int) string {
				return purgedTable + "/metadata/" + []string{"m.avro", "wide.avro"}[i]
			})))
		})
		return func() { in.purge() }
	})
	t.Logf("%d files take %d bytes above idle", files, peak)
	if peak > hostiletest.AboveIdleMax {
		t.Errorf("%d files take %d bytes above idle, want at most %d", files, peak, hostiletest.AboveIdleMax)
	}
}

// A purge whose process dies again and again is left to an operator, also by the processes that
// start after that. One whose process ends in order is not.
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
		value.Begun++ // as a process leaves it that dies of the work
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
