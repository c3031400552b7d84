package policy_test

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

var must = testkit.Must

// slowStore is a store that calls the function after when a List of all policies has ended, and the
// function before when an Apply with a policy begins.
type slowStore struct {
	registry.Store

	after, before func(ctx context.Context)
}

func (s *slowStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	writesPolicy := slices.ContainsFunc(batch.Writes, func(write registry.Write) bool {
		return write.Key.Table == registry.TableMaintenancePolicy && write.Key.ID != registry.ScopeServer
	})
	if before := s.before; before != nil && writesPolicy {
		s.before = nil
		before(ctx)
	}
	return s.Store.Apply(ctx, batch)
}

func (s *slowStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) (
	[]registry.Record, error) {
	records, err := s.Store.List(ctx, table, prefix, after, limit)
	if s.after != nil && table == registry.TableMaintenancePolicy && prefix == "" {
		s.after(ctx)
	}
	return records, err
}

// newStore returns a store with the warehouse w.
func newStore(t *testing.T) (*slowStore, *catalog.Catalog) {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }
	store := &slowStore{Store: memory.NewWithClock(rand.NewChaCha8([32]byte{1}), now)}
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: now, Random: rand.NewChaCha8([32]byte{2}), Logger: slog.New(slog.DiscardHandler)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(storage.Place) (storage.Store, error) { return memorystorage.New(), nil },
	})
	must(t, err)
	served := made.As(moorage.Anonymous())
	_, err = served.Warehouses().Create(t.Context(), warehouses.Spec{Name: "w", Location: "file:///wh"})
	must(t, err)
	return store, served
}

var enabled = policy.Asked{Type: policy.Compaction, Status: policy.Enabled, By: "ann"}

// TestSlowReload: policies that were read before a change never replace policies that were read
// after it, however slow the first read is.
func TestSlowReload(t *testing.T) {
	t.Parallel()
	store, served := newStore(t)
	kept := policy.New(registrytest.Ledger(store), nil)
	store.after = func(ctx context.Context) {
		store.after = nil
		must(t, kept.Put(ctx, served.Scopes(), moorage.Identifier{Warehouse: "w"}, enabled, nil))
	}
	found, err := kept.Reload(t.Context())
	must(t, err)
	if store.after != nil {
		t.Fatal("no list was slow")
	}
	if !kept.Current().Asks() || !found.Asks() {
		t.Errorf("what is current asks: %t; what the slow one found does: %t", kept.Current().Asks(), found.Asks())
	}
}

// TestClientLeavesAfterChange: this node knows about a change even if its client disconnected right
// after the change.
func TestClientLeavesAfterChange(t *testing.T) {
	t.Parallel()
	store, served := newStore(t)
	told := 0
	kept := policy.New(registrytest.Ledger(store), func() { told++ })
	_, err := kept.Reload(t.Context())
	must(t, err)
	ctx, leave := context.WithCancel(t.Context())
	must(t, kept.Put(ctx, leaving{served.Scopes(), leave}, moorage.Identifier{Warehouse: "w"}, enabled, nil))
	if ctx.Err() == nil || !kept.Current().Asks() || told != 1 {
		t.Errorf("what is current asks: %t; others were told %d times", kept.Current().Asks(), told)
	}
}

// leaving is a Scopes whose client disconnects after each change.
type leaving struct {
	policy.Scopes

	leave func()
}

func (l leaving) Change(ctx context.Context, v gate.Verb, ident moorage.Identifier,
	plan func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error)) error {
	defer l.leave()
	return l.Scopes.Change(ctx, v, ident, plan)
}

// TestReloadFor: the conditions hold until a policy that applies to the warehouse changes, at any
// level, even if there was no policy before.
func TestReloadFor(t *testing.T) {
	t.Parallel()
	for name, ident := range map[string]moorage.Identifier{"server": {}, "warehouse": {Warehouse: "w"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, served := newStore(t)
			kept := policy.New(registrytest.Ledger(store), nil)
			_, unchanged, err := kept.ReloadFor(t.Context(), "w")
			must(t, err)
			holds := func() bool {
				t.Helper()
				_, err := store.Apply(t.Context(), registry.Batch{Conditions: unchanged, Writes: []registry.Write{
					registry.Delete(registry.MonitorKey()),
				}})
				_, failed := registry.FailedCondition(err)
				if !failed {
					must(t, err)
				}
				return !failed
			}
			if len(unchanged) != 2 || !holds() {
				t.Errorf("before a change: %v", unchanged)
			}
			must(t, kept.Put(t.Context(), served.Scopes(), ident, enabled, nil))
			if holds() {
				t.Error("they hold after a change")
			}
		})
	}
	store, _ := newStore(t)
	if _, unchanged, err := policy.New(registrytest.Ledger(store), nil).ReloadFor(t.Context(), "none"); err != nil || unchanged != nil {
		t.Errorf("of no warehouse: %v, %v", unchanged, err)
	}
}

// TestPolicyOfADroppedScope: a scope is dropped while a policy of it is written. No policy stays,
// so a later scope of the same name has none.
func TestPolicyOfADroppedScope(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"a"}
	for name, row := range map[string]struct {
		scope moorage.Identifier
		want  moorage.Kind // of the request for a policy; zero: only conditions are requested
	}{
		"warehouse": {moorage.Identifier{Warehouse: "w"}, moorage.KindNoSuchWarehouse},
		"namespace": {moorage.Identifier{Warehouse: "w", Namespace: ns}, moorage.KindNoSuchWarehouse},
		"table":     {moorage.Identifier{Warehouse: "w", Namespace: ns, Name: "t"}, moorage.KindNoSuchWarehouse},
		"anchor":    {moorage.Identifier{Warehouse: "w"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, served := newStore(t)
			if len(row.scope.Namespace) > 0 {
				_, err := served.CreateNamespace(t.Context(), "w", ns, nil)
				must(t, err)
			}
			if row.scope.Name != "" {
				_, err := served.CreateTable(t.Context(), row.scope, catalog.CreateTableRequest{
					Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"a","type":"int","required":false}]}`),
				})
				must(t, err)
			}
			store.before = func(ctx context.Context) {
				if row.scope.Name != "" {
					must(t, served.DropTable(ctx, row.scope, catalog.DropOptions{}))
				}
				if len(row.scope.Namespace) > 0 {
					must(t, served.DropNamespace(ctx, "w", ns))
				}
				must(t, served.Warehouses().Drop(ctx, "w"))
			}
			kept := policy.New(registrytest.Ledger(store), nil)
			if row.want == 0 {
				_, conditions, err := kept.ReloadFor(t.Context(), "w")
				if must(t, err); len(conditions) > 0 {
					t.Errorf("the warehouse is gone, and has the conditions %v", conditions)
				}
			} else if err := kept.Put(t.Context(), served.Scopes(), row.scope, enabled, nil); moorage.KindOf(err) != row.want {
				t.Errorf("the policy was answered with %v, want %s", err, row.want)
			}
			if store.before != nil {
				t.Fatal("nothing was dropped meanwhile")
			}
			for _, prefix := range []string{"w/", "n/", "t/"} {
				left, err := store.List(t.Context(), registry.TableMaintenancePolicy, prefix, "", registry.ListLimitMax)
				if must(t, err); len(left) > 0 {
					t.Errorf("%s is left", left[0].Key)
				}
			}
		})
	}
}

// TestPolicyOfAnUnregisteredTable: a policy is set right before the Apply that unregisters its
// table. Then it ends with the table.
func TestPolicyOfAnUnregisteredTable(t *testing.T) {
	t.Parallel()
	store, served := newStore(t)
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	_, err := served.CreateNamespace(t.Context(), "w", table.Namespace, nil)
	must(t, err)
	_, err = served.CreateTable(t.Context(), table, catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"a","type":"int","required":false}]}`),
	})
	must(t, err)
	kept := policy.New(registrytest.Ledger(store), nil)
	store.before = func(ctx context.Context) { must(t, kept.Put(ctx, served.Scopes(), table, enabled, nil)) }
	_, err = served.UnregisterTable(t.Context(), table)
	must(t, err)
	left, err := store.List(t.Context(), registry.TableMaintenancePolicy, "t/", "", registry.ListLimitMax)
	if must(t, err); store.before != nil || len(left) > 0 {
		t.Errorf("the policy was set: %t; %d are left", store.before == nil, len(left))
	}
}

// TestList: scopes with their own policies are listed in pages, ordered by name. Records without a
// policy are left out.
func TestList(t *testing.T) {
	t.Parallel()
	store, served := newStore(t)
	_, err := served.Warehouses().Create(t.Context(), warehouses.Spec{Name: "v", Location: "file:///other"})
	must(t, err)
	kept := policy.New(registrytest.Ledger(store), nil)
	want := make(map[string]bool) // the names of the scopes
	for _, ident := range []moorage.Identifier{{Warehouse: "w"}, {}, {Warehouse: "v"}} {
		must(t, kept.Put(t.Context(), served.Scopes(), ident, enabled, nil))
		scope, err := served.Scopes().Find(t.Context(), gate.LoadMaintenancePolicy, ident)
		must(t, err)
		want[scope.Name] = true
	}
	list := func(limit int) (names []string) {
		for page := (moorage.Page{Limit: limit}); ; {
			scopes, next, err := kept.List(t.Context(), page)
			must(t, err)
			if limit > 0 && len(scopes) > limit {
				t.Errorf("a page of %d scopes has %d", limit, len(scopes))
			}
			for _, each := range scopes {
				said := each.Said[policy.Compaction]
				if len(each.Said) != 1 || said.Status != policy.Enabled || said.By != "ann" {
					t.Errorf("%s has %+v", each.Scope, each.Said)
				}
				names = append(names, each.Scope)
			}
			if page.After = next; next == "" {
				return names
			}
		}
	}
	for limit := range 5 {
		if got := list(limit); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("in pages of %d: %q, want %v in order", limit, got, want)
		}
	}
	must(t, kept.Delete(t.Context(), served.Scopes(), moorage.Identifier{}, policy.Compaction, nil))
	delete(want, registry.ScopeServer)
	if got := list(1); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("without that of the server: %q, want %v", got, want)
	}
}

// TestNoDeletions: a table is refused where a policy enables a deletion, whatever level has it and
// whether this process has read it. What permits a table fails once such a policy is there.
func TestNoDeletions(t *testing.T) {
	t.Parallel()
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	put := func(kept *policy.Policies, served *catalog.Catalog, scope moorage.Identifier, of policy.Type, status policy.Status) {
		t.Helper()
		must(t, kept.Put(t.Context(), served.Scopes(), scope, policy.Asked{Type: of, Status: status}, nil))
	}
	for name, scope := range map[string]moorage.Identifier{
		"server": {}, "warehouse": {Warehouse: "w"}, "namespace": {Warehouse: "w", Namespace: moorage.Namespace{"a"}},
	} {
		store, served := newStore(t)
		_, err := served.CreateNamespace(t.Context(), "w", moorage.Namespace{"a"}, nil)
		must(t, err)
		// here is the node that registers, and there the one that changes policies.
		here, there := policy.New(registrytest.Ledger(store), nil), policy.New(registrytest.Ledger(store), nil)
		put(there, served, scope, policy.Compaction, policy.Enabled)
		requires := here.NoDeletions(table)
		conditions, err := requires(t.Context(), registry.ID{})
		must(t, err)
		holds := func() bool {
			t.Helper()
			_, err := store.Apply(t.Context(), registry.Batch{Conditions: conditions, Writes: []registry.Write{
				registry.Delete(registry.MonitorKey()),
			}})
			_, failed := registry.FailedCondition(err)
			if !failed {
				must(t, err)
			}
			return !failed
		}
		if !holds() {
			t.Errorf("%s: the conditions fail though nothing changed", name)
		}
		for _, of := range []policy.Type{policy.SnapshotManagement, policy.UnreferencedFileRemoval} {
			put(there, served, scope, of, policy.Enabled)
			if holds() {
				t.Errorf("%s: the conditions hold although %s is on", name, of)
			}
			_, err = requires(t.Context(), registry.ID{})
			if said := moorage.MessageOf(err); moorage.KindOf(err) != moorage.KindAlreadyExists || !strings.Contains(said, string(of.Kind())) {
				t.Errorf("%s: with %s on, the answer is %v", name, of, err)
			}
			put(there, served, scope, of, policy.Disabled)
			if conditions, err = requires(t.Context(), registry.ID{}); err != nil || !holds() {
				t.Errorf("%s: with %s off again: %v", name, of, err)
			}
		}
	}
}
