package jobs_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/memory"
)

// ailing is a storage whose calls fail while an error is set.
type ailing struct {
	*memory.Store
	create, open, remove func() error
	opened               atomic.Int64
}

// Create implements storage.Store.
func (a *ailing) Create(ctx context.Context, location string, body []byte) error {
	if a.create != nil {
		if err := a.create(); err != nil {
			return fmt.Errorf("create %s: %w", location, err)
		}
	}
	return a.Store.Create(ctx, location, body)
}

// Open implements storage.Store.
func (a *ailing) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	a.opened.Add(1)
	if a.open != nil {
		if err := a.open(); err != nil {
			return nil, storage.Info{}, fmt.Errorf("open %s: %w", location, err)
		}
	}
	return a.Store.Open(ctx, location)
}

// Delete implements storage.Store.
func (a *ailing) Delete(ctx context.Context, locations ...string) error {
	if a.remove != nil {
		if err := a.remove(); err != nil {
			return fmt.Errorf("delete %d files: %w", len(locations), err)
		}
	}
	return a.Store.Delete(ctx, locations...)
}

// until returns a function that returns err before end, and nil from then on.
func (w *world) until(end time.Time, err error) func() error {
	return func() error {
		if w.clock.Now().Before(end) {
			return err
		}
		return nil
	}
}

// While a storage is unavailable for hours, jobs pause for longer and longer, on all nodes. Once
// the storage is back, they continue within a quarter of an hour.
func TestStorageOutageBlocksNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	back := w.clock.Now().Add(3*time.Hour + 50*time.Minute)
	files := &ailing{Store: w.files, open: w.until(back, storage.ErrUnavailable)}
	nodes := []node{w.newNode(w.store, files), w.newNode(w.store, files), w.newNode(w.store, files)}
	for w.clock.Now().Before(back) {
		for _, n := range nodes {
			must(t, n.jobs.RunOnce(w.ctx))
		}
		if job := w.job(); job.State != registry.StateCollecting {
			t.Fatalf("%s before the storage is back the job is %s: %s", back.Sub(w.clock.Now()), job.State, job.LastError)
		}
		w.clock.Advance(15 * time.Second)
	}
	if tries := files.opened.Load(); tries > 20 {
		t.Errorf("three nodes tried %d times", tries)
	}
	w.clock.Advance(15 * time.Minute)
	must(t, nodes[1].jobs.RunOnce(w.ctx))
	if job := w.job(); job != nil {
		t.Errorf("once the storage is back the job is %+v", job)
	}
	w.judge(w.node, true, "once the storage is back")
}

// A storage that stays unavailable blocks a job after four hours of tries. A retry lets the job
// continue at once.
func TestStorageThatStaysAwayBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	back := w.clock.Now().Add(5 * time.Hour)
	n := w.newNode(w.store, &ailing{Store: w.files, open: w.until(back, storage.ErrUnavailable)})
	for w.clock.Now().Before(back) {
		must(t, n.jobs.RunOnce(w.ctx))
		w.clock.Advance(time.Minute)
	}
	job := w.job()
	if job.State != registry.StateBlocked || !strings.Contains(job.LastError, storage.ErrUnavailable.Error()) {
		t.Fatalf("the job is %s: %s", job.State, job.LastError)
	}
	must(t, n.jobs.Retry(w.ctx, job.ID, jobs.Retrying{}))
	must(t, n.jobs.RunOnce(w.ctx))
	if job := w.job(); job != nil {
		t.Errorf("after a retry the job is %s: %s", job.State, job.LastError)
	}
	w.judge(w.node, true, "after a retry")
}

// Two failures that are hours apart, without tries in between, do not block a job.
func TestFailuresFarApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	away := true
	n := w.newNode(w.store, &ailing{Store: w.files, open: func() error {
		if away {
			return storage.ErrUnavailable
		}
		return nil
	}})
	for range 3 {
		must(t, n.jobs.RunOnce(w.ctx))
		if job := w.job(); job.State != registry.StateCollecting || job.Laters != 1 {
			t.Errorf("the job is %s: %+v", job.State, job.Job)
		}
		w.clock.Advance(5 * time.Hour) // the server was off
	}
	away = false
	must(t, n.jobs.RunOnce(w.ctx))
	w.judge(w.node, true, "in the end")
}

// counted is a store that counts writes.
type counted struct {
	registry.Store
	applies atomic.Int64
}

func (c *counted) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	c.applies.Add(1)
	return c.Store.Apply(ctx, batch)
}

// A job whose scope is paused reads no file and writes no record. It continues when the pause ends.
// The same is true of a job while the pauses cannot be read.
func TestPausedScopeCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	w.due()
	files, store := &ailing{Store: w.files}, &counted{Store: w.store}
	n := w.newNode(store, files)
	pause := func(pauses ...registry.Pause) {
		t.Helper()
		value, err := registry.Encode(registry.Pauses{Pauses: pauses})
		must(t, err)
		_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
		must(t, err)
	}
	pause(registry.Pause{Scope: registry.ScopeServer})
	for range 5 {
		must(t, n.jobs.RunOnce(w.ctx))
		w.clock.Advance(time.Hour)
	}
	_, err := w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, []byte("{"))}})
	must(t, err)
	must(t, n.jobs.RunOnce(w.ctx))
	if opened, applies := files.opened.Load(), store.applies.Load(); opened+applies > 0 {
		t.Errorf("a paused job opened %d files and wrote %d times", opened, applies)
	}
	if job := w.job(); job.State != registry.StateWaiting || job.Laters+job.Tries > 0 {
		t.Errorf("the job is %s: %+v", job.State, job.Job)
	}
	pause()
	must(t, n.jobs.RunOnce(w.ctx))
	w.judge(w.node, true, "when the pause has ended")
}

// A storage that asks for fewer requests fails no job, however long that lasts.
func TestSlowDownIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	w.due()
	end := w.clock.Now().Add(24 * time.Hour)
	asked := 0
	slow := w.until(end, storage.ErrSlowDown)
	n := w.newNode(w.store, &ailing{Store: w.files, remove: func() error { asked++; return slow() }})
	for w.clock.Now().Before(end) {
		must(t, n.jobs.RunOnce(w.ctx))
		must(t, n.jobs.RunOnce(w.ctx))
		w.clock.Advance(time.Minute)
	}
	if job := w.job(); job.State != registry.StateDeleting || job.Tries+job.Laters != 0 || job.LastError == "" {
		t.Errorf("the job is %s: %+v", job.State, job.Job)
	}
	if asked != 24*60 {
		t.Errorf("the storage was asked %d times in a day, not once a minute", asked)
	}
	for range 2 { // with a day of such answers in between
		slow = func() error { return storage.ErrUnavailable }
		must(t, n.jobs.RunOnce(w.ctx))
		if job := w.job(); job.State != registry.StateDeleting || job.Laters != 1 {
			t.Errorf("a failure after slowing down: the job is %s: %+v", job.State, job.Job)
		}
		slow = func() error { return storage.ErrSlowDown }
		for end := w.clock.Now().Add(5 * time.Hour); w.clock.Now().Before(end); w.clock.Advance(2 * time.Minute) {
			must(t, n.jobs.RunOnce(w.ctx))
		}
	}
	slow = func() error { return nil }
	must(t, n.jobs.RunOnce(w.ctx))
	w.judge(w.node, true, "once the storage takes requests")
}

// Failures are not in a row if the job makes progress between them. Its progress survives the
// failures.
func TestProgressEndsARowOfFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.orphaned = true
	const batches = 3
	stray := func(i int) string { return fmt.Sprintf("%s/data/stray-%05d.parquet", tableAt, i) }
	for i := range batches * 1000 {
		must(t, w.files.Create(w.ctx, stray(i), nil))
	}
	w.clock.Advance(4 * 24 * time.Hour)
	s := orphanSettings()
	s.Confirmed = true
	_, err := w.jobs.FindOrphans(w.ctx, w.table, s, nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	w.clock.Advance(10 * 24 * time.Hour)
	calls, removed := 0, 0
	n := w.newNode(w.store, &ailing{Store: w.files, remove: func() error {
		if calls++; calls%2 == 0 { // each batch except the first fails once
			return storage.ErrUnavailable
		}
		removed++
		return nil
	}})
	for tries := 0; removed < batches; tries++ {
		if tries > batches {
			t.Fatalf("%d of %d batches are gone after %d tries", removed, batches, tries)
		}
		must(t, n.jobs.RunOnce(w.ctx))
		if job := w.job(); job != nil && (job.State != registry.StateDeleting || job.Laters != 1 || job.Totals.Files != int64(removed)*1000) {
			t.Fatalf("after %d batches the job is %s: %+v", removed, job.State, job.Job)
		}
		w.clock.Advance(20 * time.Minute)
	}
	must(t, n.jobs.RunOnce(w.ctx))
	if job := w.job(); job != nil || w.exists(stray(0)) || w.exists(stray(batches*1000-1)) {
		t.Errorf("in the end the job is %+v", job)
	}
	runs, err := w.jobs.Runs(w.ctx, w.table, 1)
	if err != nil || len(runs) != 1 || runs[0].Outcome != jobs.OutcomeDone || runs[0].Totals.Files != batches*1000 {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
}

// If the storage is unavailable when orphans must be found, the failure counts as temporary.
func TestOrphansOfStorageThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	n := w.newNode(w.store, &ailing{Store: w.files, create: func() error { return storage.ErrUnavailable }})
	_, err := n.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	if kind := moorage.KindOf(err); kind != moorage.KindUnavailable {
		t.Errorf("FindOrphans = %v, of kind %v", err, kind)
	}
}
