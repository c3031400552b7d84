package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// unwalkedStore hides the pointers from lists, so that windows end by the records of drops alone.
type unwalkedStore struct{ registry.Store }

func (s unwalkedStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == registry.TablePointer {
		return nil, nil
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// For k = 0, 1, 2 …: a fault meets the k-th call of the store from a drop to the end of its window.
// No window ends before its time. After a restart each ends by the record of its drop, and no
// record is left.
func TestCrashDropToEnd(t *testing.T) {
	t.Parallel()
	for name, open := range anyStores() {
		if name == "postgres" {
			continue // TestCrashEveryCall has its drops and its ends
		}
		for action, does := range map[string]registrytest.Action{
			"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
			"die": registrytest.Die, "die after": registrytest.DieAfter,
		} {
			t.Run(name+"/"+action, func(t *testing.T) {
				t.Parallel()
				for k := 0; !crashDropToEnd(t, open, k, does); k++ {
				}
			})
		}
	}
}

// crashDropToEnd does action to call k, and reports whether there was no such call.
func crashDropToEnd(t *testing.T, open func(testing.TB, *lockedRandom) registry.Store, k int, action registrytest.Action) (survived bool) {
	t.Helper()
	plan := &faults{}
	var raw registry.Store
	var store *registrytest.FaultyStore
	f := newFixture(t, func(c *catalog.Config) {
		raw = clockedStore{open(t, newLockedRandom(uint64(k))), c.Now}
		store = registrytest.Faulty(raw, plan.plan)
		c.Store = store
	})
	f.create("t")
	catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
	config := f.config
	config.Store = raw
	node, err := newInstance(config)
	must(t, err)
	other := &fixture{instance: node, t: t, ctx: f.ctx, clock: f.clock, store: raw}
	end := func(store registry.Store) error {
		made, err := retention.New(retention.Config{
			Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: f.clock.Now, Random: newLockedRandom(2)}), KeyLife: f.keyLife(),
		})
		must(t, err)
		return made.RunOnce(f.ctx, retention.Windows)
	}
	count := func(table registry.Table, prefix string) int {
		records, err := raw.List(f.ctx, table, prefix, "", 100)
		must(t, err)
		return len(records)
	}

	plan.arm(k, action)
	dropErr := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{})
	at := fmt.Sprintf("call %d (%s), drop answered %v", k, plan.hit, dropErr)
	f.clock.Advance(undropWindow - time.Second)
	must(t, end(raw)) // with a walk
	if count(registry.TablePointer, "") != 1 {
		t.Fatalf("%s: the window has ended early", at)
	}
	f.clock.Advance(2 * time.Second)
	endErr := end(unwalkedStore{store})
	plan.disarm()
	survived = plan.hit == ""
	if survived && (dropErr != nil || endErr != nil) {
		t.Fatalf("drop %v, end %v without a fault", dropErr, endErr)
	}
	store.Release(f.ctx)

	must(t, end(unwalkedStore{raw}))
	left := count(registry.TablePointer, "")
	_, err = node.LoadTable(f.ctx, ident("t"))
	switch dropped := moorage.KindOf(err) == moorage.KindNoSuchTable; {
	case !dropped && (err != nil || dropErr == nil):
		t.Errorf("%s: a load answers %v", at, err)
	case dropped == (left == 1):
		t.Errorf("%s: dropped is %t, and %d pointers are left", at, dropped, left)
	}
	if drops := count(registry.TableDue, registry.WindowPrefix()); drops != 0 {
		t.Errorf("%s: %d records of drops are left", at, drops)
	}
	other.wantClean()
	if t.Failed() {
		t.FailNow()
	}
	return survived
}
