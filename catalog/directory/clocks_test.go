package directory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// A node with a wrong clock dies while it drops a namespace. Creators measure the age of its mark
// by the store's clock, not by their own.
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
				f := catalogkit.New(t)
				dead := false
				dying := registrytest.Faulty(f.Store, func(int, string) registrytest.Action {
					if dead {
						return registrytest.Die
					}
					return registrytest.Pass
				})
				dropper, creator := f.OtherBy(dying, row.dropper), f.OtherBy(f.Store, row.creator)
				must(t, dropper.MarkDropping(f.Ctx, ns))
				dead = true
				f.Clock.Advance(directory.DroppingStale)
				_, err := creator.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
				catalogkit.WantKind(t, err, moorage.KindUnavailable)
				f.Clock.Advance(time.Second)
				_, err = creator.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
				must(t, err)
				f.WantClean()
			})
		})
	}
}

// A drop marked the namespace while the store's clock was ahead. No request waits until the clock
// has reached that time.
func TestDeadDropFromTheFuture(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	record := catalogkit.Tamper(f).Record(registry.TableNamespace, "/ns", registry.StateLive)
	namespace, err := registry.Decode[registry.Namespace](record)
	must(t, err)
	namespace.Since = f.Clock.Now().Add(time.Hour)
	catalogkit.Tamper(f).Put(record.Key, registry.StateDropping, namespace)
	f.Create("t")
	f.WantClean()
}

// The store's clock determines how long a dropped table can be restored. So a node with a wrong
// date ends no table too early or too late.
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
			f := catalogkit.New(t)
			f.Create("t")
			dropper, sweeper := f.OtherBy(f.Store, row.dropper), f.OtherBy(f.Store, row.sweeper)
			must(t, dropper.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
			f.Clock.Advance(catalogkit.UndropWindow)
			must(t, sweeper.EndWindows(f.Ctx))
			if left := catalogkit.Tamper(f).List(registry.TablePointer); len(left) != 1 {
				t.Errorf("%d pointers within the window, want 1", len(left))
			}
			f.Clock.Advance(time.Second)
			must(t, sweeper.EndWindows(f.Ctx))
			if left := catalogkit.Tamper(f).List(registry.TablePointer); len(left) != 0 {
				t.Errorf("%d pointers behind the window, want none", len(left))
			}
			f.WantClean()
		})
	}
}

// TestClockSetBack commits after the clock went back by an hour.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	before := f.Create("t").Document.LastUpdatedMS()
	f.Clock.Advance(-time.Hour)
	for i := range 2 {
		after, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if after.Document.LastUpdatedMS() < before {
			t.Errorf("last-updated-ms went back from %d to %d", before, after.Document.LastUpdatedMS())
		}
	}
}
