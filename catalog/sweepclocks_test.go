package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
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
		f.clock.Advance((keptMin - time.Second) / rounds)
	}
	must(f.t, node.sweepAll(f.ctx))
}

// A commit happens on a node whose clock is a week behind, and its answer is lost. Another node
// sweeps for as long as the first one may look for its change, while the store's clock is set ahead
// by a week too. The first node must learn that its commit happened.
func TestSweepLeavesChangeToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	leaping := &leapingStore{Store: losing.Store}
	f.create("t")
	node := f.otherBy(leaping, 8*24*time.Hour)
	losing.lose(OpCommit, false, func() {
		must(t, node.sweepAll(f.ctx))
		leaping.leap = 8 * 24 * time.Hour
		f.sweepFor(node)
	})
	// Of this commit a second try would be refused.
	request := commitRequest(t, `[{"type":"assert-current-schema-id","current-schema-id":0}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`)
	if _, err := f.Commit(f.ctx, ident("t"), request); err != nil {
		t.Errorf("the commit happened, but was answered %v", err)
	}
	if got := f.count(OpCommit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	f.clock.Advance(f.changeRetention)
	must(t, node.sweepAll(f.ctx))
	if got := f.count(OpCommit); got != 0 {
		t.Errorf("%d commits are left when they may go, want none", got)
	}
	f.wantClean()
}

// A node whose clock is a week behind fences a create, and makes the table by another try. Another
// node sweeps, to which the fence looks old. When the table is gone again the first try wakes up.
// It must not bring the table back.
func TestSweepLeavesFenceToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	node := f.other(&leapingStore{losing.Store, 8 * 24 * time.Hour})
	losing.lose(OpCreateTable, true, nil)
	f.create("t")
	_, err := f.UnregisterTable(f.ctx, ident("t"))
	must(t, err)
	f.sweepFor(node)
	if _, err := losing.Store.Apply(f.ctx, *losing.kept); !isFailed(err) {
		t.Errorf("the first try, which was fenced, was answered %v", err)
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	f.clock.Advance(keptMin)
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

// wantChanges fails the test unless the changes of addChanges that are left are those from first to
// last.
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

// There are more fences than are remembered, and they go one after the other. The sweep does not
// miss one that another node has deleted. A change that has come true in its place stays. That
// holds if the sweep finds it when it looks, and also if only when it deletes.
func TestSweepOfManyFences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	racing := &racingStore{Store: f.store}
	node := f.other(racing)
	const count = forgetPage + 10
	var fences []registry.Write
	for n := range count {
		value, err := registry.Encode(registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now().Add(-8 * 24 * time.Hour)})
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
	f.clock.Advance(keptMin)
	comesTrue(7)
	racing.before = func() { comesTrue(8) }
	must(t, node.forgetChanges(f.ctx))
	wantLeft("one in which two nodes meet", count-2, 2, forgetPage)
	must(t, node.forgetChanges(f.ctx))
	wantLeft("the one after", 10, 2, 10)
	f.clock.Advance(keptMin / 2)
	must(t, node.forgetChanges(f.ctx))
	wantLeft("one half an hour later", 10, 2, 10)
}

// A fence whose writer's clock was a year ahead goes when this process has seen it for as long as
// fences are kept.
func TestSweepOfFenceFromTheFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := registry.ChangeKey(numbered(1))
	tampering{f}.put(key, registry.StateVoid, registry.Change{ID: numbered(1), Time: f.clock.Now().Add(365 * 24 * time.Hour)})
	wantThere := func(want bool) {
		t.Helper()
		must(t, f.forgetChanges(f.ctx))
		records, err := f.store.Get(f.ctx, key)
		if err != nil || records[0].Exists() != want {
			t.Errorf("the fence is there: %t, want %t; %v", records[0].Exists(), want, err)
		}
	}
	wantThere(true)
	f.clock.Advance(f.changeRetention)
	wantThere(true)
	f.clock.Advance(time.Second)
	wantThere(false)
}

// What this process measures it measures with a clock that nobody can set.
func TestSweepKeepsMonotonicTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.Now = time.Now })
	tampering{f}.put(registry.ChangeKey(numbered(1)), registry.StateVoid, registry.Change{ID: numbered(1), Time: time.Now().Add(-8 * 24 * time.Hour)})
	must(t, f.forgetChanges(f.ctx))
	times := []time.Time{f.made, f.sweeps.marked}
	for _, fence := range f.sweeps.oldFences {
		times = append(times, fence.since)
	}
	if len(times) != 3 {
		t.Fatalf("measures since %v, want three times", times)
	}
	for _, since := range times {
		if since == since.Round(0) {
			t.Errorf("%v has no monotonic reading", since)
		}
	}
}
