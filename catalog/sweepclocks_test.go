package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/registrytest"
)

// otherBy returns another catalog over store, of a node whose clock is ahead by this much.
func (f *fixture) otherBy(store registry.Store, ahead time.Duration) *Catalog {
	f.t.Helper()
	inner := *f
	inner.config.Now = func() time.Time { return f.clock.Now().Add(ahead) }
	return inner.other(store)
}

// sweepFor has node sweep now, and again and again until just before what it saw now may go.
func (f *fixture) sweepFor(node *Catalog) {
	f.t.Helper()
	const rounds = 6
	for range rounds {
		must(f.t, node.sweepAll(f.ctx))
		f.clock.Advance((seenOldMin - time.Second) / rounds)
	}
	must(f.t, node.sweepAll(f.ctx))
}

// A commit happens on a node whose clock is a week behind, and its answer is lost. Another one sweeps, to which its change looks old, before the
// first one looks for it: it must learn that its commit happened.
func TestSweepLeavesChangeToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	f.create("t")
	node := f.otherBy(losing.Store, 8*24*time.Hour)
	losing.lose(OpCommit, false, func() { f.sweepFor(node) })
	// Of this commit a second try would be refused.
	request := commitRequest(t, `[{"type":"assert-current-schema-id","current-schema-id":0}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`)
	if _, err := f.Commit(f.ctx, ident("t"), request); err != nil {
		t.Errorf("the commit happened, but was answered %v", err)
	}
	if got := f.count(OpCommit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	f.clock.Advance(seenOldMin)
	must(t, node.sweepAll(f.ctx))
	if got := f.count(OpCommit); got != 0 {
		t.Errorf("%d commits are left when they may go, want none", got)
	}
	f.wantClean()
}

// A node whose clock is a week behind fences a create, and makes the table by another try. Another one sweeps, to which the fence looks old. When the table
// is gone again the first try wakes up: it must not bring the table back.
func TestSweepLeavesFenceToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	node := f.otherBy(losing.Store, 8*24*time.Hour)
	losing.lose(OpCreateTable, true, nil)
	f.create("t")
	_, err := f.UnregisterTable(f.ctx, ident("t"))
	must(t, err)
	f.sweepFor(node)
	if _, err := losing.Store.Apply(f.ctx, *losing.kept); !isFailed(err) {
		t.Errorf("the first try, which was fenced, was answered %v", err)
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	f.clock.Advance(seenOldMin)
	must(t, node.sweepAll(f.ctx))
	records, err := f.store.List(f.ctx, registry.TableChange, "", "", 100)
	must(t, err)
	if slices.ContainsFunc(records, func(r registry.Record) bool { return r.State == registry.StateVoid }) {
		t.Error("the fence is left when it may go")
	}
	f.wantClean()
}

func isFailed(err error) bool {
	_, failed := registry.FailedCondition(err)
	return failed
}

// addChanges writes changes with the ids from first to last, as of the clock.
func (f *fixture) addChanges(first, last int) {
	f.t.Helper()
	for n := first; n <= last; n++ {
		_, err := f.store.Apply(f.ctx, registry.Batch{Change: &registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now()}})
		must(f.t, err)
	}
}

func numbered(n int) registry.ID { return registry.ID{0: 0xff, 1: byte(n >> 8), 2: byte(n)} }

// wantChanges fails the test unless the changes of addChanges that are left are those from first to last.
func (f *fixture) wantChanges(first, last int) {
	f.t.Helper()
	var got, want []registry.Key
	records, err := f.store.List(f.ctx, registry.TableChange, "ff", "", registry.ListLimitMax)
	must(f.t, err)
	for _, record := range records {
		got = append(got, record.Key)
	}
	for n := first; n <= last; n++ {
		want = append(want, registry.ChangeKey(numbered(n)))
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("the changes %v are left, want %v", got, want)
	}
}

// Each change is there until a round that comes seenOldMin after the first one of the same node that met it, whatever else that had seen before.
func TestSweepSeesChangesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	node := f.otherBy(f.store, 8*24*time.Hour)
	f.addChanges(1, 3)
	must(t, node.forgetChanges(f.ctx))
	f.clock.Advance(seenOldMin / 2)
	f.addChanges(4, 6)
	must(t, node.forgetChanges(f.ctx))
	f.clock.Advance(seenOldMin / 2)
	f.addChanges(7, 9)
	f.wantChanges(1, 9)
	must(t, node.forgetChanges(f.ctx))
	f.wantChanges(4, 9)
	f.clock.Advance(seenOldMin / 2)
	must(t, node.forgetChanges(f.ctx))
	f.wantChanges(7, 9)
	f.clock.Advance(8 * 24 * time.Hour) // so that what is left is old by all clocks
	f.addChanges(10, 12)
	must(t, f.forgetChanges(f.ctx))
	f.wantChanges(7, 12) // of which this one knows nothing yet
	must(t, node.forgetChanges(f.ctx))
	f.wantChanges(10, 12)
	f.clock.Advance(seenOldMin)
	must(t, f.forgetChanges(f.ctx))
	f.wantChanges(10, 12)
}

// However often the sweep comes round and whatever comes between, what it remembers is bounded, and as much goes as came an hour and a pause before.
func TestSweepRemembersAFewHorizons(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	node := f.otherBy(f.store, 8*24*time.Hour)
	const every = 10 * time.Second
	most, n := 0, 0
	for spent := time.Duration(0); spent <= seenOldMin+2*horizonPause; spent += every {
		n++
		f.addChanges(n, n)
		must(t, node.forgetChanges(f.ctx))
		most = max(most, len(node.sweeps.horizons))
		f.clock.Advance(every)
	}
	if want := int(seenOldMin/horizonPause) + 1; most > want {
		t.Errorf("%d horizons were remembered, want at most %d", most, want)
	}
	f.wantChanges(int(2*horizonPause/every)+2, n)
}

// A round that fails on its way through many changes has seen those that it came past, and later ones begin behind them and delete no more than them.
func TestSweepFailsOnItsWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reads, failing := 0, 1
	node := f.otherBy(registrytest.Faulty(f.store, func(_ int, method string) registrytest.Action {
		if method != registrytest.MethodChanges {
			return registrytest.Pass
		}
		reads++
		if reads-1 == failing {
			return registrytest.Fail
		}
		return registrytest.Pass
	}), 8*24*time.Hour)
	f.addChanges(1, 5*forgetPage)
	changes := func() int {
		records, err := f.store.List(f.ctx, registry.TableChange, "", "", registry.ListLimitMax)
		must(t, err)
		return len(records)
	}
	before := changes()
	wantReads := func(want int) {
		t.Helper()
		if reads != want {
			t.Errorf("%d pages of changes were read, want %d", reads, want)
		}
		reads, failing = 0, -1
	}
	wantKind(t, node.forgetChanges(f.ctx), moorage.KindUnavailable)
	wantReads(2)
	f.clock.Advance(seenOldMin / 2)
	must(t, node.forgetChanges(f.ctx))
	wantReads(5) // the last one is short
	f.clock.Advance(seenOldMin / 2)
	must(t, node.forgetChanges(f.ctx))
	wantReads(3) // one that is deleted, one that was not seen for long enough, and what there is behind the last one that was seen
	if got, want := changes(), before-forgetPage; got != want {
		t.Errorf("%d changes are left, want %d", got, want)
	}
}

// The times at which things were seen are held against each other by the clock that nobody can set.
func TestSweepKeepsMonotonicTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.Now = time.Now })
	old := time.Now().Add(-8 * 24 * time.Hour)
	tampering{f}.put(registry.ChangeKey(numbered(1)), registry.StateVoid, registry.Change{ID: numbered(1), Time: old})
	_, err := f.store.Apply(f.ctx, registry.Batch{Change: &registry.Change{ID: numbered(2), Time: old}})
	must(t, err)
	must(t, f.forgetChanges(f.ctx))
	var times []time.Time
	for _, horizon := range f.sweeps.horizons {
		times = append(times, horizon.since)
	}
	for _, fence := range f.sweeps.oldFences {
		times = append(times, fence.since)
	}
	if len(times) != 2 {
		t.Fatalf("saw %v, want a horizon and a fence", times)
	}
	for _, since := range times {
		if since == since.Round(0) {
			t.Errorf("%v has no monotonic reading", since)
		}
	}
}

// racingStore calls before, once, when a batch comes that deletes on conditions.
type racingStore struct {
	registry.Store
	before func()
}

func (s *racingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if before := s.before; before != nil && len(batch.Conditions) > 0 && batch.Writes[0].Delete {
		s.before = nil
		before()
	}
	return s.Store.Apply(ctx, batch)
}

// More fences than are remembered go one after the other. One that another node has deleted is not missed, and the change that has come true in
// its place stays, be it that the sweep finds that when it looks or only when it deletes.
func TestSweepOfManyFences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	racing := &racingStore{Store: f.store}
	node := f.otherBy(racing, 8*24*time.Hour)
	const count = forgetPage + 10
	var fences []registry.Write
	for n := range count {
		value, err := registry.Encode(registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now()})
		must(t, err)
		fences = append(fences, registry.Put(registry.ChangeKey(numbered(n)), registry.StateVoid, value))
	}
	for part := range slices.Chunk(fences, 500) {
		tampering{f}.write(part...)
	}
	comesTrue := func(n int) {
		tampering{f}.write(registry.Delete(registry.ChangeKey(numbered(n))))
		_, err := f.store.Apply(f.ctx, registry.Batch{Change: &registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now()}})
		must(t, err)
	}
	wantLeft := func(round string, fences, changes, remembered int) {
		t.Helper()
		left := map[bool]int{}
		records, err := f.store.List(f.ctx, registry.TableChange, "ff", "", registry.ListLimitMax)
		must(t, err)
		for _, record := range records {
			left[record.State == registry.StateVoid]++
		}
		if left[true] != fences || left[false] != changes {
			t.Errorf("%s: %d fences and %d changes are left, want %d and %d", round, left[true], left[false], fences, changes)
		}
		if got := len(node.sweeps.oldFences); got != remembered {
			t.Errorf("%s: %d fences are remembered, want %d", round, got, remembered)
		}
	}
	must(t, node.forgetChanges(f.ctx))
	wantLeft("the first", count, 0, forgetPage)
	f.clock.Advance(seenOldMin)
	comesTrue(7)
	racing.before = func() { comesTrue(8) }
	must(t, node.forgetChanges(f.ctx))
	wantLeft("one in which two nodes meet", count-2, 2, forgetPage)
	must(t, node.forgetChanges(f.ctx))
	wantLeft("the one after", 10, 2, 10)
	f.clock.Advance(seenOldMin / 2)
	must(t, node.forgetChanges(f.ctx))
	wantLeft("one half an hour later", 10, 2, 10)
	node.now = f.clock.Now // somebody sets its clock
	must(t, node.forgetChanges(f.ctx))
	wantLeft("one with the clock set right", 10, 2, 0)
}
