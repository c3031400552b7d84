package jobs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
)

// leftoverSettings find what is older than a week, and delete it ten days later.
func leftoverSettings() jobs.OrphanSettings {
	s := jobs.DefaultLeftovers()
	s.Caller = "ann"
	return s
}

// leftAt are files outside of all tables. They go.
func leftAt() []string {
	return []string{"file:///wh/ns/ctas/data/l1.parquet", "file:///wh/ns/ctas/metadata/l2.avro", "file:///wh/l3.parquet"}
}

// stayAt are files outside of the table that stay, with why.
func stayAt() map[string]string {
	return map[string]string{
		"file:///wh/ns/lost/metadata/00000.metadata.json": "it is a metadata file",
		"file:///wh/ns/lost/data/1.parquet":               "a metadata file is beside it, by which it can be registered",
		"file:///wh/ns/ctas/_temporary/1.parquet":         "a hidden name",
		"file:///wh/raw/added.stats":                      "the table names it",
		"file:///wh/raw/Added.stats":                      "it looks like one that the table names",
		"file:///wh/ns/gone/data/1.parquet":               "it is in a dropped table that can come back",
		"file:///wh/raw/gone.stats":                       "a dropped table names it",
		"file:///elsewhere/1.parquet":                     "it is in no warehouse",
		tableAt + "/data/stray.parquet":                   "it is in a table",
	}
}

func identOf(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
}

const youngLeft = "file:///wh/ns/ctas/data/young.parquet"

// names makes a table name a file as statistics.
func (w *world) names(name, path string) {
	w.t.Helper()
	checked, err := jsontext.Check([]byte(`[{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1001,"statistics-path":"` +
		path + `","file-size-in-bytes":5}}]`))
	must(w.t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(w.t, err)
	_, err = w.catalog.As(moorage.Anonymous()).Commit(w.ctx, identOf(name), catalog.CommitRequest{Updates: decoded})
	must(w.t, err)
}

// leave makes the files, a dropped table and another one beside it, and lets all grow old.
func (w *world) leave() {
	w.t.Helper()
	w.orphaned = true
	ann := w.catalog.As(moorage.Anonymous())
	w.names("t", "file:///wh/raw/added.stats")
	_, err := ann.CreateTable(w.ctx, identOf("gone"), catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(w.t, err)
	w.names("gone", "file:///wh/raw/gone.stats")
	for _, path := range leftAt() {
		must(w.t, w.files.Create(w.ctx, path, []byte("left")))
	}
	for path := range stayAt() {
		must(w.t, w.files.Create(w.ctx, path, []byte("stays")))
	}
	w.clock.Advance(8 * 24 * time.Hour)
	must(w.t, ann.DropTable(w.ctx, identOf("gone"), catalog.DropOptions{}))
	must(w.t, w.files.Create(w.ctx, youngLeft, []byte("young")))
}

// judgeLeft fails the test unless the leftovers are gone, or there, and all others are there.
func (w *world) judgeLeft(gone bool, at string) {
	w.t.Helper()
	for _, path := range leftAt() {
		if w.exists(path) == gone {
			w.t.Errorf("%s: %s is there: %v", at, path, !gone)
		}
	}
	for path, why := range stayAt() {
		if !w.exists(path) {
			w.t.Errorf("%s: %s is gone, but %s", at, path, why)
		}
	}
	if !w.exists(youngLeft) {
		w.t.Errorf("%s: a young file is gone", at)
	}
}

// What is left outside of all tables is found, stays in quarantine, and goes. A dry run finds the
// same, and changes nothing.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 6)
	w.leave()
	run, err := jobs.DryRunLeftovers(w.ctx, w.jobs, "w", leftoverSettings(), 2)
	if err != nil || run.Files != 3 || len(run.Sample) != 2 || run.Blocked != "" || len(w.own()) > 0 || run.Cost.Manifests == 0 {
		t.Errorf("the dry run: %+v, %v, and files %q", run, err, w.own())
	}
	began, err := jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings())
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeLeft(false, "when they are found")
	job := w.job()
	if job == nil || job.State != registry.StateWaiting || job.ID != began.Job || job.Table.Warehouse != "w" {
		t.Fatalf("the job is %+v", job)
	}
	if listed, err := w.jobs.Files(w.ctx, job.ID, 0, 100); err != nil || len(listed) != 3 {
		t.Errorf("%v are listed, %v", listed, err)
	}
	if _, err := jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings()); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("a second job: %v", err)
	}
	w.clock.Advance(10*24*time.Hour - time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeLeft(false, "in quarantine")
	w.clock.Advance(time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeLeft(true, "in the end")
	w.judge(w.node, false, "in the end")
	runs, err := w.jobs.Runs(w.ctx, job.Pointer, 10)
	if err != nil || len(runs) != 1 || runs[0].Outcome != jobs.OutcomeDone || runs[0].Totals.Files != 3 || runs[0].Totals.Bytes != 12 {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
}

// What a table names, or lives in, before the quarantine is over, stays.
func TestLeftoversThatAreWantedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.leave()
	_, err := jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings())
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.names("t", leftAt()[2])
	_, err = w.catalog.As(moorage.Anonymous()).CreateTable(w.ctx, identOf("ctas"), catalog.CreateTableRequest{
		Location: "file:///wh/ns/ctas", Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(t, err)
	w.clock.Advance(10 * 24 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeLeft(false, "once they are wanted")
	if job := w.job(); job != nil {
		t.Errorf("the job is left: %+v", job)
	}
}

// What looks as if the job were wrong needs an operator, and nothing goes.
func TestLeftoversThatNeedAnOperator(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(w *world)
		why     string
	}{
		"another store has the warehouse": {func(w *world) {
			must(w.t, w.files.Create(w.ctx, "file:///wh/~moorage/owner", []byte("another")))
		}, "another"},
		"another store has one in it": {func(w *world) {
			must(w.t, w.files.Create(w.ctx, "file:///wh/lake/~moorage/owner", []byte("another")))
		}, "file:///wh/lake/~moorage/owner"},
		"a manifest of any table is missing": {func(w *world) {
			for path := range w.history.Reach(w.present(w.node)) {
				if strings.HasSuffix(path, ".avro") {
					must(w.t, w.files.Delete(w.ctx, path))
					return
				}
			}
		}, "cannot read"},
		"most files": {func(w *world) {
			for i := range 120 {
				must(w.t, w.files.Create(w.ctx, "file:///wh/"+strings.Repeat("x", i+1), make([]byte, 1000)))
			}
			w.clock.Advance(8 * 24 * time.Hour)
		}, "confirm that this is right"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			w.leave()
			tt.prepare(w)
			must(t, w.files.Delete(w.ctx, youngLeft))
			run, err := jobs.DryRunLeftovers(w.ctx, w.jobs, "w", leftoverSettings(), 0)
			if err != nil || !strings.Contains(run.Blocked, tt.why) {
				t.Errorf("the dry run: %+v, %v", run, err)
			}
			_, err = jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings())
			blocked, refused := errors.AsType[*jobs.BlockedError](err)
			for range 6 {
				must(t, w.jobs.RunOnce(w.ctx))
				w.clock.Advance(10 * 24 * time.Hour)
			}
			if job := w.job(); refused && (job != nil || !strings.Contains(blocked.Why, tt.why)) ||
				!refused && (job == nil || job.State != registry.StateBlocked || !strings.Contains(job.LastError, tt.why)) {
				t.Errorf("FindLeftovers = %v, and the job is %+v", err, job)
			}
			must(t, w.files.Create(w.ctx, youngLeft, nil))
			w.judgeLeft(false, name)
		})
	}
}

// A job on a warehouse that is gone, or paused, deletes nothing; a file of a day is no leftover.
func TestLeftoversAreCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.leave()
	young := leftoverSettings()
	young.OlderThan = 24 * time.Hour
	if _, err := jobs.FindLeftovers(w.ctx, w.jobs, "w", young); moorage.KindOf(err) != moorage.KindIllegalArgument {
		t.Errorf("files of a day: %v", err)
	}
	if _, err := jobs.FindLeftovers(w.ctx, w.jobs, "none", leftoverSettings()); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("no such warehouse: %v", err)
	}
	_, err := jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings())
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	value, err := registry.Encode(registry.Pauses{Pauses: []registry.Pause{{Scope: "w/1", Ident: moorage.Identifier{Warehouse: "w"}}}})
	must(t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
	must(t, err)
	w.clock.Advance(10 * 24 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeLeft(false, "while it is paused")
	must(t, w.jobs.Cancel(w.ctx, w.job().ID, "ann"))
	w.judgeLeft(false, "once it is cancelled")
	if left := w.own(); len(left) != 1 {
		t.Errorf("the job has left %q", left)
	}
}
