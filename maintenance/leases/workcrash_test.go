package leases_test

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/ledger"
	"moorage/maintenance/leases"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
)

// inPebble makes a store on a file system in memory.
func inPebble(w *world) registry.Store {
	store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: crand.Reader, Now: w.time})
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, store.Close()) })
	return store
}

// inPostgres makes a store in an empty schema.
func inPostgres(w *world) registry.Store {
	dsn, set, err := stores.Database.SchemaWithClock(w.ctx, w.time())
	must(w.t, err)
	w.moved = set
	_, err = postgres.Migrate(w.ctx, dsn)
	must(w.t, err)
	store, err := postgres.Open(w.ctx, dsn+"&pool_max_conns=4", postgres.Options{AcquireTimeout: time.Minute})
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, store.Close()) })
	return store
}

// crashStride is the distance between two calls that get a fault over PostgreSQL, in the short form
// of the test.
const crashStride = 3

// TestCrashEveryCall: in turn, each call of the store fails, loses its answer, comes late, or is
// the last call of a node. A piece of work still has only one holder at a time. An acknowledged end
// stands. Otherwise the work is done again.
func TestCrashEveryCall(t *testing.T) {
	t.Parallel()
	stores := map[string]func(*world) registry.Store{"memory": inMemory, "pebble": inPebble, "postgres": inPostgres}
	actions := map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
		"die": registrytest.Die, "die after": registrytest.DieAfter,
	}
	for store, open := range stores {
		for name, action := range actions {
			if store == "postgres" && action != registrytest.DieAfter && !scale.Every() {
				continue
			}
			stride := scale.Stride(store, crashStride)
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				k := int(action) % stride
				for crashOnce(t, open, k, action) {
					k += stride
				}
				if k < 10 {
					t.Errorf("a piece of work takes %d calls: that is not all of it", k)
				}
			})
		}
	}
}

// crashOnce gives call k of a node a fault. It reports whether there was such a call.
func crashOnce(t *testing.T, open func(*world) registry.Store, k int, action registrytest.Action) bool {
	w := newWorldOver(t, 1, open)
	faulty := registrytest.Faulty(w.store, registrytest.Nth(k, action))
	records := registrytest.LedgerDeps(ledger.Config{Store: faulty, Now: w.time, Random: rand.NewChaCha8([32]byte{4})}).Ledger
	ended := w.doWork(w.over(records))
	w.wantOneHolder(fmt.Sprint("call ", k))
	faulty.Release(w.ctx)
	w.wantOneHolder(fmt.Sprint("call ", k, ", late"))
	for range 10 {
		w.advance(2 * time.Minute)
		claimed, found, err := w.Assign(w.ctx, bob, workRequest())
		must(t, err)
		if !found {
			continue
		}
		if ended {
			t.Fatalf("call %d: work that was ended is handed out again", k)
		}
		w.wantOneHolder(fmt.Sprint("call ", k, ", again"))
		must(t, w.Finish(w.ctx, bob, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}))
	}
	if job := w.schedule(w.tables[0]).Value.Job(kind); job.Outcome != leases.OutcomeDone || !job.Due.IsZero() {
		t.Errorf("call %d: in the end its schedule is %+v", k, job)
	}
	for _, table := range []registry.Table{registry.TableJob, registry.TableDue} {
		if left, err := w.store.List(w.ctx, table, "", "", 10); err != nil || len(left) > 0 {
			t.Errorf("call %d: %v is left, %v", k, left, err)
		}
	}
	if held, _, err := w.leases.List(w.ctx, leases.Filter{}, "", 10); err != nil || len(held) > 0 {
		t.Errorf("call %d: leases %v, %v", k, held, err)
	}
	return faulty.Calls() > k
}

// doWork gets and does a piece of work through node. Like some programs, it gives up at the first
// error. It reports whether the end was acknowledged.
func (w *world) doWork(node *leases.Work) bool {
	claimed, found, err := node.Assign(w.ctx, ann, workRequest())
	if err != nil || !found {
		return false
	}
	if _, err := node.Progress(w.ctx, ann, claimed.Job); err != nil {
		return false
	}
	return node.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}) == nil
}

// wantOneHolder fails the test if the table is both due and assigned, or has more than one holder.
func (w *world) wantOneHolder(at string) {
	w.t.Helper()
	jobs, err := w.store.List(w.ctx, registry.TableJob, "", "", 10)
	must(w.t, err)
	due, err := w.store.List(w.ctx, registry.TableDue, "", "", 10)
	must(w.t, err)
	held, _, err := w.leases.List(w.ctx, leases.Filter{}, "", 10)
	must(w.t, err)
	if len(jobs)+len(due) > 1 || len(held) != len(jobs) {
		w.t.Errorf("%s: %d jobs, %d times that are due, %d leases", at, len(jobs), len(due), len(held))
	}
}
