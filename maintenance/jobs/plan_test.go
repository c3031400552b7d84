package jobs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/maintenance/jobs"
	"moorage/registry"
)

// everything returns all records and files of w.
func (w *world) everything() (all []string) {
	w.t.Helper()
	for _, table := range registry.Tables() {
		records, err := w.store.List(w.ctx, table, "", "", 10_000)
		must(w.t, err)
		for _, record := range records {
			all = append(all, record.Key.String()+"="+string(record.Value))
		}
	}
	page, err := w.files.List(w.ctx, "file:///wh", "", 10_000)
	must(w.t, err)
	for _, file := range page.Files {
		all = append(all, file.Location)
	}
	return all
}

// paths returns the paths of files in order, without duplicates.
func paths(files []jobs.Listed) []string {
	all := map[string]bool{}
	for _, file := range files {
		all[file.Path] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// A dry run reports the files that the job lists afterwards, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(6) {
		w := newWorld(t, inMemory, seed, 10)
		w.strays()
		for _, kind := range []string{jobs.KindSnapshots, jobs.KindOrphans} {
			before := w.everything()
			var run jobs.DryRun
			var err error
			if kind == jobs.KindSnapshots {
				run, err = jobs.DryRunSnapshots(w.ctx, w.jobs, w.table, settings(3*time.Second), 1000)
			} else {
				run, err = jobs.DryRunOrphans(w.ctx, w.jobs, w.table, orphanSettings(), 1000)
			}
			must(t, err)
			if after := w.everything(); !slices.Equal(before, after) {
				t.Fatalf("seed %d: a dry run of %s changed something", seed, kind)
			}
			if kind == jobs.KindSnapshots {
				_, err = w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
			} else {
				_, err = w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
			}
			must(t, err)
			must(t, w.jobs.RunOnce(w.ctx))
			var want []string
			all, _, err := w.jobs.List(w.ctx, w.table, "", 0)
			must(t, err)
			for _, job := range all {
				if job.Kind == kind {
					listed, err := w.jobs.Files(w.ctx, job.ID, 0, 10_000)
					must(t, err)
					want = paths(listed)
				}
			}
			if got := paths(run.Sample); !slices.Equal(got, want) || run.Files != int64(len(want)) {
				t.Errorf("seed %d: %s would delete %d, %q, and lists %q", seed, kind, run.Files, got, want)
			}
			found += len(want)
		}
	}
	if found < 50 {
		t.Errorf("only %d files were found: the histories are too short", found)
	}
}

// A dry run reports the same reason for stopping as the job.
func TestDryRunOfAJobThatWouldStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 6)
	w.strays()
	young := orphanSettings()
	young.OlderThan = time.Hour
	if _, err := jobs.DryRunOrphans(w.ctx, w.jobs, w.table, young, 1); moorage.KindOf(err) != moorage.KindIllegalArgument {
		t.Errorf("orphans of an hour: %v", err)
	}
	must(t, w.files.Create(w.ctx, "file:///wh/~moorage/owner", []byte("another\n")))
	run, err := jobs.DryRunOrphans(w.ctx, w.jobs, w.table, orphanSettings(), 1)
	if err != nil || run.Blocked == "" {
		t.Errorf("in the folder of another store: %+v, %v", run, err)
	}
	must(t, w.files.Delete(w.ctx, "file:///wh/~moorage/owner"))
	live := w.history.Reach(w.present(w.node))
	for _, path := range w.history.Files {
		if live[path] && strings.Contains(path, "snap-") {
			must(t, w.files.Delete(w.ctx, path))
			break
		}
	}
	if run, err = jobs.DryRunOrphans(w.ctx, w.jobs, w.table, orphanSettings(), 1); err != nil || run.Blocked == "" {
		t.Errorf("of a table with a list that is gone: %+v, %v", run, err)
	}
	w.commit(`{"action":"set-properties","updates":{"gc.enabled":"false"}}`)
	if run, err = jobs.DryRunOrphans(w.ctx, w.jobs, w.table, orphanSettings(), 1); err != nil || run.Held == "" {
		t.Errorf("of a table that says no: %+v, %v", run, err)
	}
}

// A paused job does nothing until it is resumed, even if its time has come.
func TestPauseOfAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 8)
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	id := w.job().ID
	must(t, w.jobs.Pause(w.ctx, id, "to look", "ann"))
	if err := w.jobs.Pause(w.ctx, id, "to look", "ann"); moorage.KindOf(err) != moorage.KindCommitFailed {
		t.Errorf("paused twice: %v", err)
	}
	must(t, w.jobs.RunOnce(w.ctx))
	if job := w.job(); job.State != registry.StateCollecting || job.PausedWhy != "paused by ann: to look" {
		t.Errorf("a paused job went on: %+v", job)
	}
	must(t, w.jobs.Resume(w.ctx, id))
	if err := w.jobs.Resume(w.ctx, id); moorage.KindOf(err) != moorage.KindCommitFailed {
		t.Errorf("resumed twice: %v", err)
	}
	must(t, w.jobs.RunOnce(w.ctx))
	must(t, w.jobs.Pause(w.ctx, id, "to look", "ann"))
	w.clock.Advance(2 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	must(t, w.jobs.Step(w.ctx, registry.JobKey(w.table, jobs.KindSnapshots)))
	if gone := w.judge(w.node, false, "paused"); gone > 0 || w.job().State != registry.StateWaiting {
		t.Errorf("a paused job deleted %d files: %+v", gone, w.job())
	}
	must(t, w.jobs.Resume(w.ctx, id))
	must(t, w.jobs.RunOnce(w.ctx))
	w.judge(w.node, true, "in the end")
}
