package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
	"moorage/testkit/storetest"
)

// mutation is an operation. The tests make each of its port calls fail in turn.
type mutation struct {
	operation gate.Verb // of the change that makes it take effect
	// c is an *Instance unless the request has a key.
	run      func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)
	happened func(ctx context.Context, c *catalogkit.Instance) bool
}

// mutations returns every mutation of the catalog. They run on a fixture with the table "t", the
// view "v", the empty namespace "empty" and the empty warehouse "spare". The fixture also has files
// of an unregistered table and of one view.
func mutations(t testing.TB, unregistered string) []mutation {
	ns, empty := moorage.Namespace{"ns"}, moorage.Namespace{"empty"}
	exists := func(name string) func(context.Context, *catalogkit.Instance) bool {
		return func(ctx context.Context, c *catalogkit.Instance) bool { return c.TableExists(ctx, ident(name)) == nil }
	}
	missing := func(name string) func(context.Context, *catalogkit.Instance) bool {
		return func(ctx context.Context, c *catalogkit.Instance) bool { return c.TableExists(ctx, ident(name)) != nil }
	}
	return append(viewMutations(t), []mutation{
		{gate.CreateWarehouse, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			_, err := c.(*catalogkit.Instance).Warehouses().Create(ctx, warehouses.Spec{Name: "new", Location: "file:///new"})
			return catalogkit.Reply{}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			_, err := c.LoadWarehouse(ctx, "new")
			return err == nil
		}},
		{gate.DropWarehouse, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.(*catalogkit.Instance).Warehouses().Drop(ctx, "spare")
		},
			func(ctx context.Context, c *catalogkit.Instance) bool {
				_, err := c.LoadWarehouse(ctx, "spare")
				return err != nil
			}},
		{gate.CreateNamespace, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			properties, err := c.CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"new", "inner"}, map[string]string{"a": "b"})
			return catalogkit.Reply{Properties: properties}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"new", "inner"})
			return err == nil
		}},
		{gate.DropNamespace, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropNamespace(ctx, catalogkit.Warehouse, empty)
		},
			func(ctx context.Context, c *catalogkit.Instance) bool {
				_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, empty)
				return err != nil
			}},
		{gate.UpdateProperties, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			changed, err := c.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"a": "b"}, Removals: []string{"c"}})
			return catalogkit.Reply{Changed: &changed}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			properties, err := c.LoadNamespace(ctx, catalogkit.Warehouse, ns)
			return err == nil && properties["a"] == "b"
		}},
		{gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return catalogkit.Reply{Table: table}, err
		}, exists("new")},
		{gate.CommitCreate, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("new"), catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))
			return catalogkit.Reply{Table: table}, err
		}, exists("new")},
		{gate.Commit, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
			return catalogkit.Reply{Table: table}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			table, err := c.LoadTable(ctx, ident("t"))
			if err != nil {
				return false
			}
			_, set := table.Document.Property("mine")
			return set
		}},
		{gate.PutLabels, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			_, err := labelsOf(c).Put(ctx, access.Table, ident("t"), teamLabels("billing"), nil)
			return catalogkit.Reply{}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			table, err := c.LoadTable(ctx, ident("t"))
			return err == nil && string(table.Labels.Text) == `{"object-labels":{"team":"billing"}}`
		}},
		{gate.Rename, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.RenameTable(ctx, ident("t"), ident("new"))
		},
			func(ctx context.Context, c *catalogkit.Instance) bool {
				return exists("new")(ctx, c) && missing("t")(ctx, c)
			}},
		{gate.Register, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.RegisterTable(ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: unregistered})
			return catalogkit.Reply{Table: table}, err
		}, exists("new")},
		{gate.RegisterOver, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.RegisterTable(ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: unregistered, Overwrite: true})
			return catalogkit.Reply{Table: table}, err
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			table, err := c.LoadTable(ctx, ident("t"))
			return err == nil && table.MetadataLocation == unregistered
		}},
		{gate.Unregister, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.UnregisterTable(ctx, ident("t"))
			return catalogkit.Reply{Table: table}, err
		}, missing("t")},
		{gate.DropTable, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{Purge: true})
		}, missing("t")},
		{gate.Undrop, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			_, err := droppedOf(c).Undrop(ctx, called("t"))
			return catalogkit.Reply{}, err
		}, exists("t")},
		{gate.PurgeDropped, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, droppedOf(c).Purge(ctx, called("t").DroppedName)
		}, noneDropped},
		{gate.Forget, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, droppedOf(c).Forget(ctx, called("t").DroppedName)
		}, noneDropped},
		{gate.Protect, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, protect("ns")(ctx, c)
		}, func(ctx context.Context, c *catalogkit.Instance) bool {
			on := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns}
			found, err := c.Protections().Load(ctx, access.Namespace, on)
			return err == nil && found.Protected
		}},
		{gate.Purge, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.(*catalogkit.Instance).PurgeAll(ctx)
		},
			func(ctx context.Context, c *catalogkit.Instance) bool {
				records, err := c.Config.Store.List(ctx, registry.TableTask, "", "", 1)
				return err == nil && len(records) == 0
			}},
		{gate.EndWindow, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.(*catalogkit.Instance).EndWindows(ctx)
		},
			noneDropped},
	}...)
}

// noneDropped reports whether no dropped table can be restored any more.
func noneDropped(ctx context.Context, c *catalogkit.Instance) bool {
	dropped := 0
	err := c.Ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		if record.State == registry.StateDropped {
			dropped++
		}
		return true, nil
	})
	return err == nil && dropped == 0
}

// newCrashFixture returns a fixture for mutations, and the metadata file of the unregistered table.
func newCrashFixture(t testing.TB, operation gate.Verb, change func(*catalog.Config)) (f *catalogkit.Fixture, unregistered string) {
	t.Helper()
	f = catalogkit.New(t, change)
	f.Create("t")
	f.MakeView("v")
	createLooseView(f)
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"empty"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "spare", Location: "file:///spare"}); err != nil {
		t.Fatal(err)
	}
	other := f.Create("other")
	if _, err := f.UnregisterTable(f.Ctx, ident("other")); err != nil {
		t.Fatal(err)
	}
	switch operation {
	case gate.Purge:
		err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true})
		if err != nil {
			t.Fatal(err)
		}
	case gate.Undrop, gate.PurgeDropped, gate.Forget:
		if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
	case gate.EndWindow:
		if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
		f.Clock.Advance(catalogkit.UndropWindow + time.Hour)
	}
	return f, other.MetadataLocation
}

// faults numbers the calls of both ports in one sequence after it is armed, and applies action to
// one of them.
type faults struct {
	mu     sync.Mutex
	armed  bool
	k      int
	action registrytest.Action
	calls  int
	hit    string // the method called at the fault
	silent bool   // if true, each later call fails while armed
	dead   bool
}

func (p *faults) arm(k int, action registrytest.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.k, p.action = true, k, action
}

func (p *faults) disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
}

func (p *faults) plan(_ int, method string) registrytest.Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dead:
		return registrytest.Die
	case !p.armed:
		return registrytest.Pass
	}
	if p.silent && p.hit != "" {
		return registrytest.Fail
	}
	p.calls++
	if p.calls-1 != p.k {
		return registrytest.Pass
	}
	p.hit = method
	p.dead = p.action == registrytest.Die || p.action == registrytest.DieAfter
	return p.action
}

func (p *faults) storagePlan(call int, method string) storagetest.Action {
	action := p.plan(call, method)
	if action == registrytest.Delay {
		return storagetest.Lose // a file is never written late
	}
	return storagetest.Action(action)
}

// Over PostgreSQL, only one in crashStride calls is made to fail.
const crashStride = 20

// For k = 0, 1, 2 …: a fault hits the k-th port call of each operation. The call fails, or succeeds
// but its answer is lost, or takes effect only later, or the process dies before or after it. The
// answer must agree with the effect. A definite failure must have changed nothing and left no file.
// After a restart, Check must find nothing.
//
// scale.Stride selects the calls.
func TestCrashEveryCall(t *testing.T) {
	t.Parallel()
	actions := map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
		"die": registrytest.Die, "die after": registrytest.DieAfter,
	}
	chance := newLockedRandom(catalogkit.NewSeed(t)).Rand()
	for storeName, open := range stores.Kinds() {
		stride := scale.Stride(storeName, crashStride)
		for n, m := range mutations(t, "") {
			for actionName, action := range actions {
				first := chance.IntN(stride)
				t.Run(fmt.Sprintf("%s/%s/%s", storeName, m.operation, actionName), func(t *testing.T) {
					t.Parallel()
					for k := first; ; k += stride {
						if survived := crashOnce(t, open, n, m.operation, k, action); survived {
							if k < 1 {
								t.Fatal("no call was seen")
							}
							return
						}
					}
				})
			}
		}
	}
}

// crashOnce applies action to call k of the n-th mutation, and reports whether there was no such
// call.
func crashOnce(t *testing.T, open storetest.Open, n int, operation gate.Verb, k int, action registrytest.Action) (survived bool) {
	t.Helper()
	plan := &faults{}
	var store *registrytest.FaultyStore
	var raw registry.Store
	var rawStorage func(storage.Place) (storage.Store, error)
	files := &catalogkit.FileCount{There: map[string]bool{}}
	f, unregistered := newCrashFixture(t, operation, func(c *catalog.Config) {
		raw = catalogkit.ClockedStore{Store: open(t, newLockedRandom(uint64(k))), Now: c.Now}
		store = registrytest.Faulty(raw, plan.plan)
		c.Store = store
		openInner := c.OpenStorage
		rawStorage = openInner
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := openInner(place)
			if err != nil {
				return nil, err
			}
			return storagetest.Faulty(&catalogkit.CountedFiles{Store: inner, Count: files}, plan.storagePlan), nil
		}
	})
	before := len(files.There)
	m := mutations(t, unregistered)[n]
	catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
	plan.arm(k, action)
	_, err := m.run(f.Ctx, f.Instance)
	plan.disarm()
	survived = plan.hit == ""
	at := fmt.Sprintf("call %d (%s): answered %v", k, plan.hit, err)
	if survived && err != nil {
		t.Fatalf("%s without a fault", at)
	}
	// First another node checks the effect, then the late write arrives, then everything restarts.
	config := f.Config
	config.Store, config.OpenStorage = raw, rawStorage
	node, newErr := catalogkit.NewInstance(config)
	if newErr != nil {
		t.Fatal(newErr)
	}
	definite := err == nil || !plan.dead && moorage.KindOf(err) != moorage.KindCommitUnknown
	for _, moment := range []string{"at once", "after late writes"} {
		if moment == "after late writes" {
			store.Release(f.Ctx)
		}
		// A worker's pass may end without an error, and the next pass resumes its work.
		if worker := operation == gate.Purge || operation == gate.EndWindow; definite && (!worker || survived) && m.happened(f.Ctx, node) != (err == nil) {
			t.Fatalf("%s, but %s happened is %t", at, moment, err != nil)
		}
	}
	if definite && err != nil && len(files.There) > before && plan.hit != storagetest.MethodDelete {
		t.Errorf("%s: %d files before, %d after", at, before, len(files.There))
	}
	f.Clock.Advance(max(directory.DroppingStale, purge.AssignmentLife) + time.Second)
	recovered := &catalogkit.Fixture{Instance: node, T: t, Ctx: f.Ctx, Clock: f.Clock, Store: raw}
	recoverAll(recovered)
	recovered.WantClean()
	for _, task := range (catalogkit.Tampering{Fixture: recovered}).List(registry.TableTask) {
		t.Errorf("a task is left: %s", task.Value)
	}
	if t.Failed() {
		t.Fatalf("%s: see above", at)
	}
	return survived
}

// recoverAll does the work of the workers and of the next users of a namespace.
func recoverAll(f *catalogkit.Fixture) {
	f.T.Helper()
	for _, err := range []error{f.PurgeAll(f.Ctx), f.EndWindows(f.Ctx)} {
		if err != nil {
			f.T.Fatal(err)
		}
	}
	for _, ns := range []moorage.Namespace{nil, {"ns"}, {"empty"}} {
		if _, err := f.Directory.LivePath(f.Ctx, catalogkit.Warehouse, ns); err != nil && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
			f.T.Fatal(err)
		}
	}
	if _, err := f.Directory.LivePath(f.Ctx, "spare", nil); err != nil && moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		f.T.Fatal(err)
	}
}
