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
	"moorage/testkit/catalogkit"
)

// retentionBy returns the retention of a node over store whose clock is ahead by the given
// duration.
func retentionBy(f *catalogkit.Fixture, store registry.Store, ahead time.Duration) *retention.Retention {
	f.T.Helper()
	config := f.Config
	config.Store, config.Now = store, func() time.Time { return f.Clock.Now().Add(ahead) }
	return catalogkit.NewRetention(f.T, config)
}

// sweepFor makes node sweep now, and then repeatedly until just before the records seen by the
// first sweep may be deleted.
func sweepFor(f *catalogkit.Fixture, node *retention.Retention) {
	f.T.Helper()
	const rounds = 6
	for range rounds {
		must(f.T, node.RunOnce(f.Ctx))
		f.Clock.Advance((catalogkit.KeptMin - time.Second) / rounds)
	}
	must(f.T, node.RunOnce(f.Ctx))
}

// A commit happens on a node whose clock is a week slow, and the answer of the store is lost.
// Another node sweeps for as long as the first node may look for its change. In the meantime, the
// store's clock is set ahead by a week. The first node must still find out that its commit
// happened.
func TestSweepLeavesChangeToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	leaping := &leapingStore{Store: losing.Store}
	f.Create("t")
	node := retentionBy(f, leaping, 8*24*time.Hour)
	losing.lose(gate.Commit, false, func() {
		must(t, node.RunOnce(f.Ctx))
		leaping.leap = 8 * 24 * time.Hour
		sweepFor(f, node)
	})
	// A second try of this commit would be refused.
	request := catalogkit.CommitRequest(t, `[{"type":"assert-current-schema-id","current-schema-id":0}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`)
	if _, err := f.Commit(f.Ctx, ident("t"), request); err != nil {
		t.Errorf("the commit happened, but was answered %v", err)
	}
	if got := count(f, gate.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	f.Clock.Advance(catalogkit.ChangeRetention)
	must(t, node.RunOnce(f.Ctx))
	if got := count(f, gate.Commit); got != 0 {
		t.Errorf("%d commits are left when they may go, want none", got)
	}
	f.WantClean()
}

// A node whose clock is a week slow fences a create, and creates the table with another try. To
// another node, which sweeps, the fence looks old. After the table was dropped, the first try
// continues. It must not create the table once more.
func TestSweepLeavesFenceToItsWriter(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	node := retentionBy(f, &leapingStore{losing.Store, 8 * 24 * time.Hour}, 0)
	losing.lose(gate.CreateTable, true, nil)
	f.Create("t")
	_, err := f.UnregisterTable(f.Ctx, ident("t"))
	must(t, err)
	sweepFor(f, node)
	if _, err := losing.Store.Apply(f.Ctx, *losing.kept); !isFailed(err) {
		t.Errorf("the first try, which was fenced, was answered %v", err)
	}
	catalogkit.WantKind(t, f.TableExists(f.Ctx, ident("t")), moorage.KindNoSuchTable)
	f.Clock.Advance(catalogkit.KeptMin)
	must(t, node.RunOnce(f.Ctx))
	records, err := f.Store.List(f.Ctx, registry.TableChange, "", "", 100)
	must(t, err)
	if slices.ContainsFunc(records, func(r registry.Record) bool { return r.State == registry.StateVoid }) {
		t.Error("the fence is left when it may go")
	}
	f.WantClean()
}

func isFailed(err error) bool {
	_, failed := registry.FailedCondition(err)
	return failed
}

// leapingStore is a store whose clock was set ahead or back by a duration.
type leapingStore struct {
	registry.Store
	leap time.Duration
}

func (s *leapingStore) Time(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Time(ctx)
	return now.Add(s.leap), err
}
