package jobs_test

import (
	"context"
	"strings"
	"testing"

	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/storage"
)

// A job whose process dies repeatedly waits for an operator, even on nodes that start later.
func TestAJobThatKillsItsProcessIsBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	for died := range registry.BegunMax {
		job := w.job()
		if job.Begun != died || job.State != registry.StateCollecting {
			t.Fatalf("after %d deaths the job is %+v", died, job)
		}
		job.Begun++ // as if the process had died of the work
		value, err := registry.Encode(job.Job)
		must(t, err)
		_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{
			registry.Put(registry.JobKey(w.table, jobs.KindOrphans), job.State, value),
		}})
		must(t, err)
	}
	for range 3 {
		must(t, w.newNode(w.store, w.files).jobs.RunOnce(w.ctx))
		if job := w.job(); job.State != registry.StateBlocked || !strings.Contains(job.LastError, "the server ended 5 times") {
			t.Fatalf("the job is %+v, want blocked", job)
		}
	}
	must(t, w.jobs.Retry(w.ctx, w.job().ID, jobs.Retrying{}))
	must(t, w.jobs.RunOnce(w.ctx))
	if job := w.job(); job.State != registry.StateWaiting || job.Begun != 0 {
		t.Errorf("after a retry the job is %+v", job)
	}
}

// A node that stops while it works on a job has not died of it.
func TestAJobWhoseNodeStopsGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.strays()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(t, err)
	for range 2 * registry.BegunMax {
		ctx, stop := context.WithCancel(w.ctx)
		n := w.newNode(w.store, &stopping{w.files, stop})
		_ = n.jobs.RunOnce(ctx)
		stop()
		if job := w.job(); job.State != registry.StateCollecting || job.Begun != 0 {
			t.Fatalf("after a stop the job is %+v", job)
		}
	}
}

// stopping is a storage whose List stops the node.
type stopping struct {
	storage.Store
	stop context.CancelFunc
}

// List implements storage.Lister.
func (s *stopping) List(ctx context.Context, _, _ string, _ int) (storage.Page, error) {
	s.stop()
	return storage.Page{}, ctx.Err()
}
