package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
	"moorage/testkit/storetest"
)

// Over PostgreSQL, the test makes only some calls fail: one of the first calls, and then one in
// each stride.
const (
	crashOnceFirst  = 8
	crashOnceStride = 30
)

// For k = 0, 1, 2 …: a fault hits the k-th port call of each mutation with a key, as in
// TestCrashEveryCall. Then the same request is sent to another node with the same key: at once,
// after late writes have arrived, and once more. All of these get the same answer. If the first
// request got an answer, they get that one. The request has taken effect exactly once, or not at
// all if it was refused.
//
// In a second pass, another client has made the same change before, without a key. So most requests
// are refused or have nothing to change.
func TestCrashKeyedEveryCall(t *testing.T) {
	t.Parallel()
	actions := []registrytest.Action{registrytest.Fail, registrytest.Lose, registrytest.Delay, registrytest.Die, registrytest.DieAfter}
	chance := newLockedRandom(catalogkit.NewSeed(t)).Rand()
	for storeName, open := range stores.Kinds() {
		for n, m := range keyedMutations(t, "") {
			for _, before := range []bool{false, true} {
				todo, stride := actions, scale.Stride(storeName, crashOnceStride)
				if storeName == "postgres" && stride > 1 {
					drawn := chance.IntN(len(actions))
					todo = actions[drawn : drawn+1]
				}
				for _, action := range todo {
					first := chance.IntN(min(stride, crashOnceFirst))
					t.Run(fmt.Sprintf("%s/%s/made before %t/%d", storeName, m.operation, before, action), func(t *testing.T) {
						t.Parallel()
						for k := first; ; k += stride {
							w := newKeyedCrash(t, open, n, before, k, action)
							w.run()
							if w.plan.hit == "" {
								if k < 1 {
									t.Fatal("no call was seen")
								}
								return
							}
						}
					})
				}
			}
		}
	}
}

// keyedCrash is one mutation with a key. A fault hits its k-th port call. It also has the store and
// the storage without the faults.
type keyedCrash struct {
	*catalogkit.Fixture
	mutation
	before bool // the same change was already made
	plan   *faults
	store  *registrytest.FaultyStore
	node   catalog.Config
	count  int // how many times the operation had happened
}

func newKeyedCrash(t *testing.T, open storetest.Open, n int, before bool, k int, action registrytest.Action) *keyedCrash {
	t.Helper()
	w := &keyedCrash{plan: &faults{}, before: before}
	var raw registry.Store
	var rawStorage func(storage.Place) (storage.Store, error)
	var unregistered string
	operation := keyedMutations(t, "")[n].operation
	w.Fixture, unregistered = newCrashFixture(t, operation, func(c *catalog.Config) {
		raw, rawStorage = catalogkit.ClockedStore{Store: open(t, newLockedRandom(uint64(k))), Now: c.Now}, c.OpenStorage
		w.store = registrytest.Faulty(raw, w.plan.plan)
		c.Store = w.store
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return storagetest.Faulty(inner, w.plan.storagePlan) })
	})
	w.mutation = keyedMutations(t, unregistered)[n]
	if before {
		if _, err := w.mutation.run(w.Ctx, w.Instance); err != nil {
			t.Fatal(err)
		}
	}
	catalog.SetSettleTimeout(w.Catalog, 20*time.Millisecond)
	w.node = w.Config
	w.node.Store, w.node.OpenStorage = raw, rawStorage
	w.count = count(w.Fixture, w.operation)
	w.plan.arm(k, action)
	return w
}

// send sends the mutation with its key.
func (w *keyedCrash) send(c *catalogkit.Instance) (string, error) {
	outcome, err := c.Once(w.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return w.mutation.run(ctx, c) })
	return catalogkit.AnswerText(outcome, err), err
}

func (w *keyedCrash) run() {
	w.T.Helper()
	given, err := w.send(w.Instance)
	w.plan.disarm()
	at := fmt.Sprintf("call %d (%s): answered %.200s", w.plan.k, w.plan.hit, given)
	answered := err == nil || !w.plan.dead && moorage.KindOf(err).Final()
	if w.plan.hit == "" && !answered {
		w.T.Fatalf("%s without a fault", at)
	}
	w.Clock.Advance(max(directory.DroppingStale, purge.AssignmentLife) + time.Second) // so a dead drop is undone
	var node *catalogkit.Instance
	for _, moment := range []string{"at once", "after late writes", "once more"} {
		if moment == "after late writes" {
			w.store.Release(w.Ctx)
		}
		if node, err = catalogkit.NewInstance(w.node); err != nil {
			w.T.Fatal(err)
		}
		again, err := w.send(node)
		switch {
		case err != nil && !moorage.KindOf(err).Final():
			w.T.Fatalf("%s, and %s %v", at, moment, err)
		case answered && again != given:
			w.T.Fatalf("%s, and %s %.200s", at, moment, again)
		}
		given, answered = again, true
		w.wantEffect(node, at+", and "+moment, err)
	}
	w.Clock.Advance(commit.TransactionDeadline + time.Second)
	recovered := &catalogkit.Fixture{Instance: node, T: w.T, Ctx: w.Ctx, Clock: w.Clock}
	if err := node.Recovery().RunOnce(w.Ctx); err != nil {
		w.T.Fatal(err)
	}
	recoverAll(recovered)
	recovered.WantClean()
	if w.T.Failed() {
		w.T.Fatalf("%s: see above", at)
	}
}

// wantEffect fails the test unless the mutation has taken effect as often as its answers imply.
func (w *keyedCrash) wantEffect(node *catalogkit.Instance, at string, err error) {
	w.T.Helper()
	setters := []gate.Verb{gate.PutLabels, gate.Undrop, gate.PurgeDropped, gate.Protect}
	want, setsTheSame := 1, w.before && slices.Contains(setters, w.operation)
	if err != nil || setsTheSame || w.operation == opNothing {
		want = 0
	}
	if got := count((&catalogkit.Fixture{Instance: node, T: w.T, Ctx: w.Ctx}), w.operation) - w.count; got != want {
		w.T.Fatalf("%s: it happened %d times, want %d", at, got, want)
	}
	if err == nil && !w.happened(w.Ctx, node) {
		w.T.Fatalf("%s: it did not happen", at)
	}
}
