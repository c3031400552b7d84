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
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// unwalkedStore hides the pointers from lists, so that windows are found only by the records of
// drops.
type unwalkedStore struct{ registry.Store }

func (s unwalkedStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == registry.TablePointer {
		return nil, nil
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// For k = 0, 1, 2 …: a fault hits the k-th call of the store between a drop and the end of its
// window. No window ends early. After a restart, each window is ended because of the record of its
// drop, and no record is left.
func TestCrashDropToEnd(t *testing.T) {
	t.Parallel()
	for name, open := range stores.Kinds() {
		if name == "postgres" {
			continue // covered by TestCrashEveryCall
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

// crashDropToEnd applies action to call k, and reports whether there was no such call.
func crashDropToEnd(t *testing.T, open storetest.Open, k int, action registrytest.Action) (survived bool) {
	t.Helper()
	plan := &faults{}
	var raw registry.Store
	var store *registrytest.FaultyStore
	f := catalogkit.New(t, func(c *catalog.Config) {
		raw = catalogkit.ClockedStore{Store: open(t, newLockedRandom(uint64(k))), Now: c.Now}
		store = registrytest.Faulty(raw, plan.plan)
		c.Store = store
	})
	f.Create("t")
	catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
	config := f.Config
	config.Store = raw
	node, err := catalogkit.NewInstance(config)
	must(t, err)
	other := &catalogkit.Fixture{Instance: node, T: t, Ctx: f.Ctx, Clock: f.Clock, Store: raw}
	end := func(store registry.Store) error {
		made, err := retention.New(retention.Config{
			Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: f.Clock.Now, Random: newLockedRandom(2)}), KeyLife: f.KeyLife(),
		})
		must(t, err)
		return made.RunOnce(f.Ctx, retention.Windows)
	}
	count := func(table registry.Table, prefix string) int {
		records, err := raw.List(f.Ctx, table, prefix, "", 100)
		must(t, err)
		return len(records)
	}

	plan.arm(k, action)
	dropErr := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})
	at := fmt.Sprintf("call %d (%s), drop answered %v", k, plan.hit, dropErr)
	f.Clock.Advance(catalogkit.UndropWindow - time.Second)
	must(t, end(raw)) // by a walk over the pointers
	if count(registry.TablePointer, "") != 1 {
		t.Fatalf("%s: the window has ended early", at)
	}
	f.Clock.Advance(2 * time.Second)
	endErr := end(unwalkedStore{store})
	plan.disarm()
	survived = plan.hit == ""
	if survived && (dropErr != nil || endErr != nil) {
		t.Fatalf("drop %v, end %v without a fault", dropErr, endErr)
	}
	store.Release(f.Ctx)

	must(t, end(unwalkedStore{raw}))
	left := count(registry.TablePointer, "")
	_, err = node.LoadTable(f.Ctx, ident("t"))
	switch dropped := moorage.KindOf(err) == moorage.KindNoSuchTable; {
	case !dropped && (err != nil || dropErr == nil):
		t.Errorf("%s: a load answers %v", at, err)
	case dropped == (left == 1):
		t.Errorf("%s: dropped is %t, and %d pointers are left", at, dropped, left)
	}
	if drops := count(registry.TableDue, registry.WindowPrefix()); drops != 0 {
		t.Errorf("%s: %d records of drops are left", at, drops)
	}
	other.WantClean()
	if t.Failed() {
		t.FailNow()
	}
	return survived
}
