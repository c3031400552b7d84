package catalog_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// A node whose clock is off dies while it drops a namespace. Creators wait for its mark by the
// store's clock, not by their own.
func TestDeadDropOfANodeWithAnotherClock(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	for name, row := range map[string]struct{ dropper, creator time.Duration }{
		"the dropper's is ahead":  {dropper: time.Hour},
		"the dropper's is behind": {dropper: -time.Hour},
		"the creator's is ahead":  {creator: time.Hour},
		"the creator's is behind": {creator: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				dead := false
				dying := registrytest.Faulty(f.store, func(int, string) registrytest.Action {
					if dead {
						return registrytest.Die
					}
					return registrytest.Pass
				})
				dropper, creator := f.otherBy(dying, row.dropper), f.otherBy(f.store, row.creator)
				must(t, dropper.markDropping(f.ctx, ns))
				dead = true
				f.clock.Advance(directory.DroppingStale)
				_, err := creator.CreateTable(f.ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
				wantKind(t, err, moorage.KindUnavailable)
				f.clock.Advance(time.Second)
				_, err = creator.CreateTable(f.ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
				must(t, err)
				f.wantClean()
			})
		})
	}
}

// A drop marked the namespace while the store's clock was ahead. No request waits until that time
// has come.
func TestDeadDropFromTheFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	record := tampering{f}.record(registry.TableNamespace, "/ns", registry.StateLive)
	namespace, err := registry.Decode[registry.Namespace](record)
	must(t, err)
	namespace.Since = f.clock.Now().Add(time.Hour)
	tampering{f}.put(record.Key, registry.StateDropping, namespace)
	f.create("t")
	f.wantClean()
}

// The store's clock says how long a dropped table can come back. So a node with another date
// forgets no table too early, and keeps none for longer.
func TestUndropWindowOfNodesWithOtherClocks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ dropper, sweeper time.Duration }{
		"the dropper's is ahead":  {dropper: 365 * 24 * time.Hour},
		"the dropper's is behind": {dropper: -365 * 24 * time.Hour},
		"the sweeper's is ahead":  {sweeper: 365 * 24 * time.Hour},
		"the sweeper's is behind": {sweeper: -365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			dropper, sweeper := f.otherBy(f.store, row.dropper), f.otherBy(f.store, row.sweeper)
			must(t, dropper.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
			f.clock.Advance(undropWindow)
			must(t, sweeper.endWindows(f.ctx))
			if left := (tampering{f}).list(registry.TablePointer); len(left) != 1 {
				t.Errorf("%d pointers within the window, want 1", len(left))
			}
			f.clock.Advance(time.Second)
			must(t, sweeper.endWindows(f.ctx))
			if left := (tampering{f}).list(registry.TablePointer); len(left) != 0 {
				t.Errorf("%d pointers behind the window, want none", len(left))
			}
			f.wantClean()
		})
	}
}

// TestClockSetBack commits after the clock went back by an hour.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.create("t").Document.LastUpdatedMS()
	f.clock.Advance(-time.Hour)
	for i := range 2 {
		after, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if after.Document.LastUpdatedMS() < before {
			t.Errorf("last-updated-ms went back from %d to %d", before, after.Document.LastUpdatedMS())
		}
	}
}
