package jobs_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
)

// oneFault gives the k-th call a fault. It counts the calls of the store of records and the storage
// together.
type oneFault struct {
	mu     sync.Mutex // guards the fields below
	k      int        // -1 for no fault
	calls  int
	action int // registrytest and storagetest use the same numbers
	hit    string
	dead   bool
}

func (p *oneFault) next(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return int(storagetest.Die)
	}
	if p.k < 0 {
		return 0
	}
	p.calls++
	if p.calls-1 != p.k {
		return 0
	}
	p.hit = method
	p.dead = p.action == int(storagetest.Die) || p.action == int(storagetest.DieAfter)
	return p.action
}

// disarm ends the faults, and returns which call had one.
func (p *oneFault) disarm() (hit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.k, p.dead = -1, false
	return p.hit
}

// kindOfJob is a kind of job, with the function that begins one.
type kindOfJob struct {
	name  string
	begin func(w *world, n node) error
	wait  time.Duration
}

func kindsOfJobs() []kindOfJob {
	expiry, orphans := settings(3*time.Second), orphanSettings()
	return []kindOfJob{
		{"expire", func(w *world, n node) error {
			_, err := n.jobs.Expire(w.ctx, w.table, expiry, nil)
			return err
		}, expiry.Delay},
		{"orphans", func(w *world, n node) error {
			_, err := n.jobs.FindOrphans(w.ctx, w.table, orphans, nil)
			return err
		}, orphans.Quarantine},
	}
}

// TestCrashEveryCall gives each call of each kind of job a fault: the call fails, loses its answer,
// or is the last one of its process. Then another process continues. All live files exist at any
// time. In the end, all files to be deleted are gone.
func TestCrashEveryCall(t *testing.T) {
	t.Parallel()
	for _, kind := range kindsOfJobs() {
		for _, action := range []storagetest.Action{storagetest.Fail, storagetest.Lose, storagetest.Die, storagetest.DieAfter} {
			for name, open := range map[string]newStore{"memory": inMemory, "pebble": inPebble} {
				if !scale.Every() && (name != "memory" || action != storagetest.Lose && action != storagetest.DieAfter) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%s", kind.name, action, name), func(t *testing.T) {
					t.Parallel()
					for k := 0; ; k++ {
						survived := false
						synctest.Test(t, func(t *testing.T) { survived = crash(t, open, kind, k, int(action)) })
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
	}
}

// crash gives call k of a job a fault. It reports whether the job ended without the fault, because
// it makes fewer calls.
func crash(t *testing.T, open newStore, kind kindOfJob, k, action int) (survived bool) {
	t.Helper()
	w := newWorld(t, open, 5, 6)
	w.strays()
	must(t, w.files.Delete(w.ctx, young)) // it may be old enough when the job is begun again
	plan := &oneFault{k: k, action: action}
	store := registrytest.Faulty(w.store, func(_ int, method string) registrytest.Action {
		return registrytest.Action(plan.next(method))
	})
	files := storagetest.Faulty(w.files, func(_ int, method string) storagetest.Action {
		return storagetest.Action(plan.next(method))
	})
	first := w.newNode(store, files)
	began := kind.begin(w, first) == nil
	at := fmt.Sprintf("call %d", k)
	for range 2 {
		_ = first.jobs.RunOnce(w.ctx)
		w.clock.Advance(kind.wait / 2)
	}
	w.judge(w.node, false, at)
	w.clock.Advance(time.Minute)
	_ = first.jobs.RunOnce(w.ctx)
	hit := plan.disarm()
	at = fmt.Sprintf("call %d (%s)", k, hit)
	w.judge(w.node, false, at)
	// Another process continues. If the job did not begin, it is begun again.
	second := w.newNode(w.store, w.files)
	w.node = second
	if w.job() == nil && (!began || hit != "") {
		_ = kind.begin(w, second) // perhaps nothing is left to do
	}
	for range 4 {
		must(t, second.jobs.RunOnce(w.ctx))
		w.clock.Advance(kind.wait)
		w.judge(second, false, at)
	}
	if job := w.job(); job != nil {
		t.Errorf("%s: the job is left: %s, %s", at, job.State, job.LastError)
	}
	if kind.name == "expire" {
		w.judge(second, true, at)
	}
	must(t, w.files.Create(w.ctx, young, nil))
	w.judgeStrays(kind.name == "orphans", at)
	if hit == "" {
		for _, file := range w.own() {
			if file != "file:///wh/~moorage/owner" {
				t.Errorf("without a fault %s is left", file)
			}
		}
	}
	return hit == ""
}

// inPebble makes a store on a file system in memory.
func inPebble(t testing.TB, random *lockedRandom, clock *clock) registry.Store {
	t.Helper()
	store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: random, Now: clock.Now})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}
