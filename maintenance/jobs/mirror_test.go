package jobs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/maintenance/jobs"
)

// mirror makes the table of w a mirror: it has the same files as a table of another catalog.
func (w *world) mirror() {
	w.t.Helper()
	left, err := w.ann().UnregisterTable(w.ctx, ident())
	must(w.t, err)
	must(w.t, w.ann().Mirrors().Put(w.ctx, access.Table, ident(), "https://old", left.MetadataLocation))
	w.table, err = w.ann().Tables().Find(w.ctx, ident())
	must(w.t, err)
}

// tableFiles returns how many files are at the location of the table.
func (w *world) tableFiles() int {
	w.t.Helper()
	page, err := w.files.List(w.ctx, tableAt, "", 10_000)
	must(w.t, err)
	return len(page.Files)
}

// TestMirrorsAreNotMaintained: no job begins on a mirror, whatever the delays are, and no job
// deletes a file of it. The source may still need every file.
func TestMirrorsAreNotMaintained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 12)
	w.strays()
	w.mirror()
	before := w.tableFiles()
	now := settings(0)
	now.Delay = 0
	_, expired := w.jobs.Expire(w.ctx, w.table, now, nil)
	_, found := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	_, trimmed := w.jobs.TrimFormer(w.ctx, w.table, nil)
	for name, err := range map[string]error{"expiry": expired, "orphans": found, "former files": trimmed} {
		held, ok := errors.AsType[*jobs.HeldError](err)
		if !ok || !strings.Contains(held.Why, "a mirror of https://old") {
			t.Errorf("%s: %v", name, err)
		}
	}
	plan, err := w.jobs.PlanSnapshots(w.ctx, w.table, now)
	must(t, err)
	if !strings.Contains(plan.Held, "a mirror of https://old") {
		t.Errorf("the plan is %+v", plan)
	}
	_, _, err = w.ann().Tables().Maintain(w.ctx, w.table, catalog.MaintenanceEdit{Verb: gate.Expire})
	if moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("a maintenance commit: %v", err)
	}
	for range 3 {
		w.clock.Advance(30 * 24 * time.Hour)
		must(t, w.jobs.RunOnce(w.ctx))
	}
	if now := w.tableFiles(); now != before {
		t.Errorf("there were %d files, and there are %d", before, now)
	}
}

// TestMirrorEndsRunningJobs: a job waits for its time while its table is dropped and comes back as
// a mirror. The job then deletes nothing.
func TestMirrorEndsRunningJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 12)
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	table, err := w.ann().LoadTable(w.ctx, ident())
	must(t, err)
	must(t, w.ann().DropTable(w.ctx, ident(), catalog.DropOptions{}))
	must(t, w.ann().Mirrors().Put(w.ctx, access.Table, ident(), "https://old", table.MetadataLocation))
	w.clock.Advance(11 * 24 * time.Hour)
	for range 3 {
		must(t, w.jobs.RunOnce(w.ctx))
	}
	w.judgeStrays(false, "in a mirror")
}
