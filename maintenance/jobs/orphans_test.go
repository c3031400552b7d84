package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/memory"
)

// orphanSettings returns settings that find files older than three days, and delete them ten days
// later.
func orphanSettings() jobs.OrphanSettings {
	s := jobs.DefaultOrphans()
	s.Caller = "ann"
	return s
}

const (
	tableAt = "file:///wh/ns/t"
	young   = tableAt + "/data/young.parquet"
)

// strays puts unreferenced files into the table's location and beside it, and advances the clock
// until they are old. Then it adds a young file.
func (w *world) strays() {
	w.t.Helper()
	w.orphaned = true
	for _, path := range append(orphans(), strangers()...) {
		must(w.t, w.files.Create(w.ctx, path, []byte("stray")))
	}
	w.clock.Advance(4 * 24 * time.Hour)
	must(w.t, w.files.Create(w.ctx, young, []byte("stray")))
}

func orphans() []string {
	return []string{
		tableAt + "/data/o1.parquet", tableAt + "/metadata/o2.avro", tableAt + "/o3.stats",
		tableAt + "/data/o?4.parquet", tableAt + "/data/p=#/o5.parquet",
	}
}

// strangers returns the files that stay.
func strangers() []string {
	return []string{
		tableAt + "/metadata/old.metadata.json", tableAt + "/metadata/v1.gz.metadata.json", tableAt + "/metadata/version-hint.text",
		tableAt + "/data/_temporary/1.parquet", tableAt + "/data/.x.parquet", "file:///wh/ns/t2/a.parquet", "file:///wh/ns/a.parquet",
	}
}

// judgeStrays fails the test unless the other files exist, and the orphans are gone, or exist if
// gone is false.
func (w *world) judgeStrays(gone bool, at string) {
	w.t.Helper()
	for _, path := range orphans() {
		if w.exists(path) == gone {
			w.t.Errorf("%s: the orphan %s is there: %v", at, path, !gone)
		}
	}
	for _, path := range append(strangers(), young) {
		if !w.exists(path) {
			w.t.Errorf("%s: %s is gone", at, path)
		}
	}
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newWorld(t, inMemory, seed, 8)
		w.strays()
		_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
		must(t, err)
		must(t, w.jobs.RunOnce(w.ctx))
		w.judgeStrays(false, "when they are found")
		if job := w.job(); job == nil || job.State != registry.StateWaiting {
			t.Fatalf("the job is %+v", job)
		}
		listed, err := w.jobs.Files(w.ctx, w.job().ID, 0, 100)
		if err != nil || len(listed) < len(orphans()) {
			t.Errorf("%v are listed, %v", listed, err)
		}
		for range 5 {
			w.step() // the table gets further commits
		}
		w.clock.Advance(10*24*time.Hour - time.Hour)
		must(t, w.jobs.RunOnce(w.ctx))
		w.judgeStrays(false, "in quarantine")
		w.clock.Advance(time.Hour)
		must(t, w.jobs.RunOnce(w.ctx))
		w.judgeStrays(true, "in the end")
		w.judge(w.node, false, "in the end")
	}
}

// The metadata file of another table stays, whatever its name is.
func TestOrphansKeepAMetadataFileOfAnotherTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	table, err := w.ann().LoadTable(w.ctx, ident())
	must(t, err)
	for i, name := range []string{"snap.json", "metadata.json.gz"} {
		file := tableAt + "/metadata/" + name
		raw := strings.NewReplacer(
			`"location":"`+tableAt+`"`, fmt.Sprintf(`"location":"file:///wh/ns/other%d"`, i),
			table.Document.UUID(), fmt.Sprintf("9c12d441-03fe-4693-9a96-a0705ddf69c%d", i),
		).Replace(string(table.Document.Raw()))
		must(t, w.files.Create(w.ctx, file, []byte(raw)))
		_, err = w.ann().RegisterTable(w.ctx, identOf(fmt.Sprint("other", i)), catalog.RegisterRequest{MetadataLocation: file})
		must(t, err)
	}
	w.strays()
	_, err = w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.clock.Advance(11 * 24 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeStrays(true, "in the end")
	for i := range 2 {
		_, err := w.ann().LoadTable(w.ctx, identOf(fmt.Sprint("other", i)))
		must(t, err)
	}
}

// An orphan stays if a commit refers to it before its quarantine ends. It also stays if the file
// was written again.
func TestOrphansThatAreNamedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.clock.Advance(time.Second)
	w.commit(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1001,"statistics-path":"` +
		orphans()[0] + `","file-size-in-bytes":5}}`)
	must(t, w.files.Delete(w.ctx, orphans()[1]))
	must(t, w.files.Create(w.ctx, orphans()[1], []byte("again")))
	w.clock.Advance(10 * 24 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	for i, want := range []bool{true, true, false} {
		if got := w.exists(orphans()[i]); got != want {
			t.Errorf("%s is there: %v", orphans()[i], got)
		}
	}
}

// The quarantine begins when the orphans are found, however long the job waited before that.
func TestQuarantineBeginsWhenOrphansAreFound(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]struct {
		begin func(w *world, id registry.ID) error
		end   func(w *world, id registry.ID) error
	}{
		"paused": {
			func(w *world, id registry.ID) error { return w.jobs.Pause(w.ctx, id, "to look", "ann") },
			func(w *world, id registry.ID) error { return w.jobs.Resume(w.ctx, id) },
		},
		"blocked": {
			func(w *world, id registry.ID) error { return w.jobs.Quarantine(w.ctx, id, "to look", "ann") },
			func(w *world, id registry.ID) error { return w.jobs.Retry(w.ctx, id, jobs.Retrying{}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			w.strays()
			must(t, w.files.Delete(w.ctx, young)) // it would be old enough by then
			began, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
			must(t, err)
			must(t, rest.begin(w, began.Job))
			w.clock.Advance(11 * 24 * time.Hour)
			must(t, w.jobs.RunOnce(w.ctx))
			must(t, rest.end(w, began.Job))
			must(t, w.jobs.RunOnce(w.ctx))
			w.clock.Advance(10*24*time.Hour - time.Second)
			must(t, w.jobs.RunOnce(w.ctx))
			must(t, w.files.Create(w.ctx, young, nil))
			w.judgeStrays(false, "a second before the end of the quarantine")
			w.clock.Advance(time.Second)
			must(t, w.jobs.RunOnce(w.ctx))
			w.judgeStrays(true, "after the quarantine")
		})
	}
}

// listStrays makes orphans, lets a job list them, and lets the quarantine end.
func (w *world) listStrays() []jobs.Listed {
	w.t.Helper()
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(w.t, err)
	must(w.t, w.jobs.RunOnce(w.ctx))
	listed, err := w.jobs.Files(w.ctx, w.job().ID, 0, 100)
	must(w.t, err)
	w.clock.Advance(10 * 24 * time.Hour)
	return listed
}

// statted is a storage that calls a function before each Stat.
type statted struct {
	*memory.Store
	file   string
	before func()
}

// Stat implements storage.Store.
func (s statted) Stat(ctx context.Context, location string) (storage.Info, error) {
	if location == s.file {
		s.before()
	}
	return s.Store.Stat(ctx, location)
}

// An orphan stays if a commit refers to it while other files of its batch are compared with the
// list.
func TestOrphanThatIsNamedWithinABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	listed := w.listStrays()
	first, last := listed[0].Path, listed[len(listed)-1].Path
	w.continueJob(jobs.KindOrphans, statted{w.files, last, func() {
		w.clock.Advance(time.Second)
		w.commit(w.history.AddAgain("main", first)...)
	}})
	if !w.exists(first) || w.exists(last) {
		t.Errorf("the file that was named is there: %t; the last: %t", w.exists(first), w.exists(last))
	}
}

// slowly is a storage in which Delete deletes one file, calls after, and then waits until its
// context ends. It deletes a job's own files as usual, because that deletion has no time limit.
type slowly struct {
	*memory.Store
	after func()
}

// Delete implements storage.Store.
func (s slowly) Delete(ctx context.Context, locations ...string) error {
	if strings.Contains(locations[0], "/~moorage/") {
		return s.Store.Delete(ctx, locations...)
	}
	if err := s.Store.Delete(ctx, locations[0]); err != nil || len(locations) == 1 {
		return err
	}
	s.after()
	<-ctx.Done()
	return ctx.Err()
}

// An orphan stays if a commit refers to it while the storage is slow to delete other files of its
// batch. A check permits deletions only for a limited time, and then the job checks again.
func TestOrphanThatIsNamedDuringASlowDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inMemory, 1, 3)
		listed := w.listStrays()
		last := listed[len(listed)-1].Path
		var once sync.Once
		n := w.newNode(w.store, slowly{w.files, func() {
			once.Do(func() {
				w.clock.Advance(time.Second)
				w.commit(w.history.AddAgain("main", last)...)
			})
		}})
		must(t, n.jobs.RunOnce(w.ctx))
		for _, file := range listed {
			if got := w.exists(file.Path); got != (file.Path == last) {
				t.Errorf("%s is there: %t", file.Path, got)
			}
		}
		if job := w.job(); job != nil {
			t.Errorf("the job is %s: %s", job.State, job.LastError)
		}
	})
}

// A suspicious result needs an operator.
func TestOrphansThatNeedAnOperator(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(w *world)
		change  func(*jobs.OrphanSettings)
		why     string
	}{
		"most files": {func(w *world) {
			for i := range 120 {
				must(w.t, w.files.Create(w.ctx, storage.Join(tableAt, "data", strings.Repeat("x", i+1)), make([]byte, 1000)))
			}
			w.clock.Advance(4 * 24 * time.Hour)
		}, func(s *jobs.OrphanSettings) { s.Confirmed = true }, "confirm that this is right"},
		"another authority": {func(w *world) {
			w.commit(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1001,"statistics-path":"` +
				`s3://b/wh/ns/t/data/o1.parquet","file-size-in-bytes":5}}`)
			w.strays()
		}, func(s *jobs.OrphanSettings) { s.EqualAuthorities = true }, "differs from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			tt.prepare(w)
			s := orphanSettings()
			_, err := w.jobs.FindOrphans(w.ctx, w.table, s, nil)
			must(t, err)
			for range 6 {
				must(t, w.jobs.RunOnce(w.ctx))
			}
			job := w.job()
			if job.State != registry.StateBlocked || !strings.Contains(job.LastError, tt.why) {
				t.Errorf("the job is %s: %s", job.State, job.LastError)
			}
			must(t, w.jobs.Cancel(w.ctx, job.ID, "ann"))
			tt.change(&s)
			_, err = w.jobs.FindOrphans(w.ctx, w.table, s, nil)
			must(t, err)
			must(t, w.jobs.RunOnce(w.ctx))
			if job := w.job(); job == nil || job.State != registry.StateWaiting {
				t.Errorf("once it is confirmed the job is %+v", job)
			}
		})
	}
}

// A confirmed retry lets one job continue although its share of orphans is too large. The
// confirmation does not apply to the next job.
func TestConfirmedRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	for i := range 120 {
		must(t, w.files.Create(w.ctx, storage.Join(tableAt, "data", strings.Repeat("x", i+1)), make([]byte, 1000)))
	}
	w.clock.Advance(4 * 24 * time.Hour)
	for _, word := range []string{"the first job", "the next one"} {
		_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
		must(t, err)
		for range 6 {
			must(t, w.jobs.RunOnce(w.ctx))
		}
		job := w.job()
		if job.State != registry.StateBlocked || !strings.Contains(job.LastError, "job retry ID --confirm") {
			t.Fatalf("%s is %s: %s", word, job.State, job.LastError)
		}
		must(t, w.jobs.Retry(w.ctx, job.ID, jobs.Retrying{}))
		for range 6 {
			must(t, w.jobs.RunOnce(w.ctx))
		}
		if job := w.job(); job.State != registry.StateBlocked {
			t.Errorf("%s is %s after a retry without a word", word, job.State)
		}
		must(t, w.jobs.Retry(w.ctx, job.ID, jobs.Retrying{Confirmed: true}))
		must(t, w.jobs.RunOnce(w.ctx))
		if job := w.job(); job.State != registry.StateWaiting || len(job.Lists) == 0 {
			t.Errorf("%s is %s after a confirmed retry: %s", word, job.State, job.LastError)
		}
		must(t, w.jobs.Cancel(w.ctx, job.ID, "ann"))
	}
	_, err := w.jobs.Expire(w.ctx, w.table, settings(0), nil)
	must(t, err)
	id := w.job().ID
	must(t, w.jobs.Quarantine(w.ctx, id, "to look", "ann"))
	if err := w.jobs.Retry(w.ctx, id, jobs.Retrying{Confirmed: true}); moorage.KindOf(err) != moorage.KindIllegalArgument {
		t.Errorf("an expiry was confirmed: %v", err)
	}
}

// If snapshots expire while a job reads them, no operator is needed. If a list is missing although
// the table does not change, an operator is needed.
func TestOrphansOfTableThatMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 0)
	for range 12 {
		w.clock.Advance(time.Second)
		w.commit(w.history.Append("main", 1)...)
	}
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	oldest := 0
	for range 8 { // more than the failures that block a job
		var once sync.Once
		w.continueJob(jobs.KindOrphans, hooked{w.files, listsOfSnapshots, func(string) {
			once.Do(func() { // as if an engine expired a snapshot
				expired := w.history.Snapshots[oldest]
				oldest++
				w.commit(fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d]}`, expired.ID))
				must(t, w.files.Delete(w.ctx, expired.List))
			})
		}})
		if job := w.job(); job.State != registry.StateCollecting || !strings.Contains(job.LastError, "The table changed while it was read") {
			t.Fatalf("the job is %s: %s", job.State, job.LastError)
		}
	}
	w.clock.Advance(15 * time.Minute) // the job pauses
	must(t, w.jobs.RunOnce(w.ctx))
	if job := w.job(); job.State != registry.StateWaiting || job.Tries != 0 || job.Laters != 0 {
		t.Errorf("once the table stands still the job is %+v", job)
	}
	must(t, w.jobs.Cancel(w.ctx, w.job().ID, "ann"))
	_, err = w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	must(t, w.files.Delete(w.ctx, w.history.Snapshots[oldest].List))
	for range 5 {
		must(t, w.jobs.RunOnce(w.ctx))
	}
	if job := w.job(); job.State != registry.StateBlocked || !strings.Contains(job.LastError, "cannot read") {
		t.Errorf("a list is missing, and the job is %s: %s", job.State, job.LastError)
	}
}

// Two stores use one folder. The second one may not search for orphans there.
func TestOrphansOfTwoStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	must(t, w.files.Create(w.ctx, "file:///wh/~moorage/owner", []byte("0123456789abcdef0123456789abcdef\n")))
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	if blocked, ok := errors.AsType[*jobs.BlockedError](err); !ok || !strings.Contains(blocked.Why, "0123456789abcdef0123456789abcdef") {
		t.Errorf("FindOrphans = %v", err)
	}
	if w.job() != nil {
		t.Error("there is a job")
	}
	if _, err := w.jobs.FindOrphans(w.ctx, w.table, jobs.OrphanSettings{OlderThan: time.Hour}, nil); err == nil {
		t.Error("files of an hour may be orphans")
	}
}

// A store that adopts a folder removes orphans there. The former owner does not any more, not even
// in a job that it has begun.
func TestAdoptOrphans(t *testing.T) {
	t.Parallel()
	const other = "0123456789abcdef0123456789abcdef"
	w := newWorld(t, inMemory, 1, 3)
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	if was, err := w.jobs.Adopt(w.ctx, "w"); err != nil || was != "" {
		t.Errorf("to adopt one's own folder: %q, %v", was, err)
	}
	const owner = "file:///wh/~moorage/owner"
	must(t, w.files.Delete(w.ctx, owner))
	must(t, w.files.Create(w.ctx, owner, []byte(other)))
	w.clock.Advance(10 * 24 * time.Hour)
	for range 6 {
		must(t, w.jobs.RunOnce(w.ctx))
	}
	w.judgeStrays(false, "while another store has the folder")
	job := w.job()
	if job == nil || job.State != registry.StateBlocked || !strings.Contains(job.LastError, other) {
		t.Fatalf("the job is %+v", job)
	}
	if was, err := w.jobs.Adopt(w.ctx, "w"); err != nil || was != other {
		t.Errorf("Adopt = %q, %v", was, err)
	}
	must(t, w.jobs.Retry(w.ctx, job.ID, jobs.Retrying{}))
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeStrays(true, "once it is adopted")
}

// TestAdoptedFiles: files that are older than the table's claim stay and are counted, until an
// operator declares that they belong to the table. The declaration is refused while another table
// has metadata there.
func TestAdoptedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.strays()
	doctor(w, registry.LocationKey(tableAt), func(c *registry.LocationClaim) { c.Since = w.clock.Now() }) // younger than they
	s := orphanSettings()
	s.Quarantine = 0
	_, err := w.jobs.FindOrphans(w.ctx, w.table, s, nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeStrays(false, "without a word")
	runs, err := w.jobs.Runs(w.ctx, w.table, 1)
	if err != nil || len(runs) != 1 || len(runs[0].Totals.Kept) == 0 || runs[0].Totals.Kept[0].Reason != "from before the table lived there" {
		t.Fatalf("the runs are %+v (%v)", runs, err)
	}
	s.Adopt = true
	const foreign = tableAt + "/metadata/00001-9c12d441-03fe-4693-9a96-a0705ddf69c2.metadata.json"
	must(t, w.files.Create(w.ctx, foreign, []byte(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c2"}`)))
	if _, err := w.jobs.FindOrphans(w.ctx, w.table, s, nil); err == nil || !strings.Contains(err.Error(), "another table, 9c12d441") {
		t.Errorf("beside another table's metadata: %v", err)
	}
	must(t, w.files.Delete(w.ctx, foreign))
	_, err = w.jobs.FindOrphans(w.ctx, w.table, s, nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.judgeStrays(true, "once they are adopted")
	s.Adopt = false
	_, err = w.jobs.FindOrphans(w.ctx, w.table, s, nil) // the declaration was stored
	must(t, err)
}
