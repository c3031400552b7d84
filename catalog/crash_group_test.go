package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
)

const (
	// groupCrashMembers is the number of commits that share the version.
	groupCrashMembers = 3
	// groupCrashCallsMin is the minimum number of port calls for a version.
	groupCrashCallsMin = 2
)

// groupCrash is three commits that wait behind another commit, and then share a version. A fault
// hits the k-th port call after the commit in front has been applied.
type groupCrash struct {
	*catalogkit.Fixture
	count *catalogkit.CallCount
	plan  *faults
	store *registrytest.FaultyStore
	files *catalogkit.FileCount
	clean catalog.Config // without the faults
	keyed bool
	// If appends is true, all are appends to the first version, so two of them are rebased.
	appends bool
}

// Three commits share a version: an append and two others, or three appends to the previous
// version. For k = 0, 1, 2 …: their k-th port call fails, or succeeds but its answer is lost, or
// takes effect only later. Or the process dies before or after the call, or no call is answered any
// more. If a member was answered with success, other nodes see it at once, after late writes, and
// after recovery. If it was refused, they do not. With keys, each request is sent to another node
// twice more. It succeeds, and its answer is the same if the first answer was certain.
func TestCrashGroup(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]groupFault{
		"fail": {registrytest.Fail, false}, "lose": {registrytest.Lose, false}, "delay": {registrytest.Delay, false},
		"die": {registrytest.Die, false}, "die after": {registrytest.DieAfter, false},
		"lose, then silence": {registrytest.Lose, true}, "delay, then silence": {registrytest.Delay, true},
	} {
		for i := range 4 {
			keyed, appends := i%2 == 1, i >= 2
			t.Run(fmt.Sprintf("%s, keyed %t, appends %t", name, keyed, appends), func(t *testing.T) {
				t.Parallel()
				for k := 0; ; k++ {
					hit := false
					synctest.Test(t, func(t *testing.T) { hit = newGroupCrash(t, k, fault, keyed, appends).run() })
					if t.Failed() {
						return
					}
					if !hit {
						if k < groupCrashCallsMin {
							t.Fatalf("only %d calls were seen", k)
						}
						return
					}
				}
			})
		}
	}
}

// groupFault is the fate of a call. If silence is true, each later call fails, until the members
// are answered.
type groupFault struct {
	action registrytest.Action
	silent bool
}

func newGroupCrash(t *testing.T, k int, fault groupFault, keyed, appends bool) *groupCrash {
	t.Helper()
	w := &groupCrash{
		count: &catalogkit.CallCount{}, plan: &faults{silent: fault.silent}, files: &catalogkit.FileCount{There: map[string]bool{}},
		keyed: keyed, appends: appends,
	}
	w.Fixture = catalogkit.New(t, catalogkit.CountFiles(w.files), func(c *catalog.Config) {
		raw := catalogkit.ClockedStore{Store: memoryregistry.New(newLockedRandom(uint64(k))), Now: c.Now}
		w.clean = *c
		w.clean.Store = raw
		w.store = registrytest.Faulty(raw, w.plan.plan)
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return storagetest.Faulty(inner, w.plan.storagePlan) })
		c.Store = &frontStore{Store: w.store, then: func() { w.plan.arm(k, fault.action) }}
	}, w.count.Onto)
	createVersion(w.Fixture, "t", 2)
	return w
}

// frontStore calls its hook once, when the commit in front has been applied.
type frontStore struct {
	registry.Store
	then func()

	once sync.Once
}

func (s *frontStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := s.Store.Apply(ctx, batch)
	if batch.Change != nil && batch.Change.Operation == string(gate.Commit) {
		s.once.Do(s.then)
	}
	return etags, err
}

// requests returns the requests of the members.
func (w *groupCrash) requests() [groupCrashMembers]catalog.CommitRequest {
	seen := w.Load("t")
	if w.appends {
		e := newEngine(w.Fixture, 2)
		return [...]catalog.CommitRequest{
			e.write(e.draft(seen, 1, "a")), e.write(e.draft(seen, 2, "b")), e.write(e.draft(seen, 3, "c")),
		}
	}
	return [...]catalog.CommitRequest{
		catalogkit.AppendSnapshot(w.T, seen, 1, 0, 1), catalogkit.SetProperty(w.T, "p1", "yes"), catalogkit.SetProperty(w.T, "p2", "yes"),
	}
}

// send sends the request of member i to a node.
func (w *groupCrash) send(ctx context.Context, node *catalogkit.Instance, i int, request catalog.CommitRequest) (*catalog.Table, error) {
	if !w.keyed {
		return node.For(moorage.Anonymous(), nil, nil).Commit(ctx, ident("t"), request)
	}
	key := catalogkit.KeyOf("k")
	key.ID = fmt.Sprintf("01926f3a-7b1c-7def-8123-%012d", i)
	return node.For(moorage.Anonymous(), &key, nil).Commit(ctx, ident("t"), request)
}

// run reports whether there was a k-th call.
func (w *groupCrash) run() (hit bool) {
	w.T.Helper()
	requests := w.requests()
	members := make([]catalogkit.Member, groupCrashMembers)
	for i, request := range requests {
		members[i] = func(ctx context.Context, _ catalog.Verbs) (*catalog.Table, error) {
			return w.send(ctx, w.Instance, i, request)
		}
	}
	answers := catalogkit.Together(w.Fixture, w.count, nil, members...)
	w.plan.disarm()
	at := fmt.Sprintf("call %d (%s)", w.plan.k, w.plan.hit)
	node, err := catalogkit.NewInstance(w.clean)
	must(w.T, err)
	other := &catalogkit.Fixture{Instance: node, T: w.T, Ctx: w.Ctx, Clock: w.Clock, Store: w.clean.Store}
	if w.plan.hit == "" {
		w.wantOneVersion(answers)
	}
	w.wantAnswered(other, answers, at+", at once")
	w.store.Release(w.Ctx)
	w.wantAnswered(other, answers, at+", after late writes")
	if w.keyed {
		for i, request := range requests {
			w.repeat(node, i, request, &answers[i], at)
		}
	}
	w.Clock.Advance(commit.TransactionDeadline + time.Second)
	must(w.T, node.Recovery().RunOnce(w.Ctx))
	w.wantAnswered(other, answers, at+", after recovery")
	if _, err := node.Commit(w.Ctx, ident("t"), catalogkit.SetProperty(w.T, "next", "yes")); err != nil {
		w.T.Errorf("%s: the next commit: %v", at, err)
	}
	other.WantClean()
	return w.plan.hit != ""
}

// wantOneVersion fails the test unless all answers have the same version.
func (w *groupCrash) wantOneVersion(answers []catalogkit.GroupAnswer) {
	w.T.Helper()
	for i, a := range answers {
		if a.Err != nil || a.Table.MetadataLocation != answers[0].Table.MetadataLocation {
			w.T.Errorf("without a fault member %d is answered %v, %v", i, a.Table, a.Err)
		}
	}
}

// wantAnswered fails the test unless node shows the effects that the answers report.
func (w *groupCrash) wantAnswered(node *catalogkit.Fixture, answers []catalogkit.GroupAnswer, at string) {
	w.T.Helper()
	table := node.Load("t")
	var seen [groupCrashMembers]bool
	seen[0] = table.Document.HasSnapshot(1)
	for i := 1; i < groupCrashMembers; i++ {
		if _, seen[i] = table.Document.Property(fmt.Sprintf("p%d", i)); w.appends {
			seen[i] = table.Document.HasSnapshot(int64(i + 1))
		}
	}
	if w.appends {
		w.wantRows(table, at)
	}
	for i, a := range answers {
		refused := a.Err != nil && moorage.KindOf(a.Err) != moorage.KindCommitUnknown && !w.plan.dead
		switch {
		case a.Err == nil && !seen[i]:
			w.T.Errorf("%s: member %d was answered success, and is not there", at, i)
		case refused && seen[i]:
			w.T.Errorf("%s: member %d was answered %v, and is there", at, i, a.Err)
		}
	}
}

// wantRows fails the test unless each snapshot of the table has its manifest list, with all rows
// exactly once.
func (w *groupCrash) wantRows(table *catalog.Table, at string) {
	w.T.Helper()
	e := newEngine(w.Fixture, 2)
	chain := snapshotChain(w.T, table.Document)
	for _, id := range chain {
		e.listOf(table.Document, id)
	}
	if rows := e.rowsOf(table.Document); rows != int64(10*len(chain)) {
		w.T.Errorf("%s: %d snapshots have %d rows", at, len(chain), rows)
	}
}

// repeat sends the request of a member to another node twice more, with the same key. Both answers
// must be the same. If the first attempt's answer was certain, they must equal it. repeat sets
// answer to the new answer.
func (w *groupCrash) repeat(node *catalogkit.Instance, i int, request catalog.CommitRequest, answer *catalogkit.GroupAnswer, at string) {
	w.T.Helper()
	known := answer.Err == nil || !w.plan.dead && moorage.KindOf(answer.Err).Final()
	for range 2 {
		var again catalogkit.GroupAnswer
		again.Table, again.Err = w.send(w.Ctx, node, i, request)
		if again.Err != nil && !moorage.KindOf(again.Err).Final() {
			w.T.Errorf("%s: member %d is answered %v by a node without faults", at, i, again.Err)
			return
		}
		if was, is := w.text(*answer), w.text(again); known && was != is {
			w.T.Errorf("%s: member %d is answered %.200s, and then %.200s", at, i, was, is)
		}
		*answer, known = again, true
	}
	// If a read for a rebase fails, the append is refused as if it could not be rebased.
	if answer.Err != nil && !(w.appends && moorage.KindOf(answer.Err) == moorage.KindCommitFailed) {
		w.T.Errorf("%s: member %d, which nothing hinders, is refused: %v", at, i, answer.Err)
	}
}

// text returns everything that a client can see of an answer.
func (w *groupCrash) text(a catalogkit.GroupAnswer) string {
	return catalogkit.AnswerText(catalogkit.Reply{Table: a.Table}, a.Err)
}
