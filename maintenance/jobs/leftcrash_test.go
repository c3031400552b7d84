package jobs_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"moorage/maintenance/jobs"
	"moorage/registry/registrytest"
	"moorage/storage/storagetest"
)

// TestCrashLeftovers is TestCrashEveryCall for the job of a warehouse.
func TestCrashLeftovers(t *testing.T) {
	t.Parallel()
	actions := []storagetest.Action{storagetest.DieAfter}
	if *every {
		actions = append(actions, storagetest.Lose, storagetest.Fail, storagetest.Die)
	}
	for _, action := range actions {
		t.Run(fmt.Sprint(action), func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				survived := false
				synctest.Test(t, func(t *testing.T) { survived = crashLeftovers(t, k, int(action)) })
				if survived || t.Failed() {
					if k < 15 {
						t.Errorf("only %d calls were met", k)
					}
					return
				}
			}
		})
	}
}

// crashLeftovers lets one call of a job meet a fault. It reports whether no call did.
func crashLeftovers(t *testing.T, k, action int) (survived bool) {
	t.Helper()
	w := newWorld(t, inMemory, 5, 4)
	w.leave()
	must(t, w.files.Delete(w.ctx, youngLeft)) // it may have grown old when the job is begun again
	plan := &oneFault{k: k, action: action}
	first := w.newNode(registrytest.Faulty(w.store, func(_ int, method string) registrytest.Action {
		return registrytest.Action(plan.next(method))
	}), storagetest.Faulty(w.files, func(_ int, method string) storagetest.Action {
		return storagetest.Action(plan.next(method))
	}))
	_, err := jobs.FindLeftovers(w.ctx, first.jobs, "w", leftoverSettings())
	for range 3 {
		_ = first.jobs.RunOnce(w.ctx)
		w.clock.Advance(5*24*time.Hour + time.Minute)
	}
	hit := plan.disarm()
	at := fmt.Sprintf("call %d (%s)", k, hit)
	w.node = w.newNode(w.store, w.files)
	if w.job() == nil && (err != nil || hit != "") {
		_, _ = jobs.FindLeftovers(w.ctx, w.jobs, "w", leftoverSettings()) // nothing may be left to do
	}
	for range 4 {
		must(t, w.jobs.RunOnce(w.ctx))
		w.clock.Advance(10 * 24 * time.Hour)
	}
	if job := w.job(); job != nil {
		t.Errorf("%s: the job is left: %s, %s", at, job.State, job.LastError)
	}
	must(t, w.files.Create(w.ctx, youngLeft, nil))
	w.judgeLeft(true, at)
	w.judge(w.node, false, at)
	return hit == ""
}
