package catalog_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/gate"
	"moorage/maintenance/retention"
	"moorage/registry"
)

// otherBy returns another catalog over store, of a node whose clock is ahead by this much.
func (f *fixture) otherBy(store registry.Store, ahead time.Duration) *instance {
	f.t.Helper()
	inner := *f
	inner.config.Now = func() time.Time { return f.clock.Now().Add(ahead) }
	return inner.other(store)
}

// retentionBy returns what a node whose clock is ahead by this much runs over store.
func (f *fixture) retentionBy(store registry.Store, ahead time.Duration) *retention.Retention {
	f.t.Helper()
	config := f.config
	config.Store, config.Now = store, func() time.Time { return f.clock.Now().Add(ahead) }
	return newRetention(f.t, config)
}

// sweepFor has node sweep now, and again and again until just before what it saw now may go.
func (f *fixture) sweepFor(node *retention.Retention) {
	f.t.Helper()
	const rounds = 6
	for range rounds {
		must(f.t, node.RunOnce(f.ctx))
		f.clock.Advance((keptMin - time.Second) / rounds)
	}
	must(f.t, node.RunOnce(f.ctx))
}

// A commit happens on a node whose clock is a week behind, and its answer is lost. Another node
// sweeps for as long as the first one may look for its change, while the store's clock is set ahead
// by a week too. The first node must learn that its commit happened.
func TestSweepLeavesChangeToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	leaping := &leapingStore{Store: losing.Store}
	f.create("t")
	node := f.retentionBy(leaping, 8*24*time.Hour)
	losing.lose(gate.Commit, false, func() {
		must(t, node.RunOnce(f.ctx))
		leaping.leap = 8 * 24 * time.Hour
		f.sweepFor(node)
	})
	// Of this commit a second try would be refused.
	request := commitRequest(t, `[{"type":"assert-current-schema-id","current-schema-id":0}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`)
	if _, err := f.Commit(f.ctx, ident("t"), request); err != nil {
		t.Errorf("the commit happened, but was answered %v", err)
	}
	if got := f.count(gate.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	f.clock.Advance(changeRetention)
	must(t, node.RunOnce(f.ctx))
	if got := f.count(gate.Commit); got != 0 {
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
	node := f.retentionBy(&leapingStore{losing.Store, 8 * 24 * time.Hour}, 0)
	losing.lose(gate.CreateTable, true, nil)
	f.create("t")
	_, err := f.UnregisterTable(f.ctx, ident("t"))
	must(t, err)
	f.sweepFor(node)
	if _, err := losing.Store.Apply(f.ctx, *losing.kept); !isFailed(err) {
		t.Errorf("the first try, which was fenced, was answered %v", err)
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	f.clock.Advance(keptMin)
	must(t, node.RunOnce(f.ctx))
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

// leapingStore is a store whose clock was set ahead, or back, by so much.
type leapingStore struct {
	registry.Store
	leap time.Duration
}

func (s *leapingStore) Time(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Time(ctx)
	return now.Add(s.leap), err
}

// clockedStore is a store that goes by another clock.
type clockedStore struct {
	registry.Store
	now func() time.Time
}

func (s clockedStore) Time(context.Context) (time.Time, error) { return s.now(), nil }
