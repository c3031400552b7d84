package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/maintenance/purge"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/storage"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
)

// mutation is an operation whose every port call can be made to fail.
type mutation struct {
	operation gate.Verb // of the change that makes it true
	// c is an *instance unless it is called with a key.
	run      func(ctx context.Context, c catalog.Verbs) (reply, error)
	happened func(ctx context.Context, c *instance) bool
}

// mutations returns every mutation of the catalog. They run on a fixture with the table "t", the
// view "v", the empty namespace "empty" and the empty warehouse "spare". The fixture also has files
// of an unregistered table and of one view.
func mutations(t testing.TB, unregistered string) []mutation {
	ns, empty := moorage.Namespace{"ns"}, moorage.Namespace{"empty"}
	exists := func(name string) func(context.Context, *instance) bool {
		return func(ctx context.Context, c *instance) bool { return c.TableExists(ctx, ident(name)) == nil }
	}
	missing := func(name string) func(context.Context, *instance) bool {
		return func(ctx context.Context, c *instance) bool { return c.TableExists(ctx, ident(name)) != nil }
	}
	return append(viewMutations(t), []mutation{
		{gate.CreateWarehouse, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			_, err := c.(*instance).Warehouses().Create(ctx, warehouses.Spec{Name: "new", Location: "file:///new"})
			return reply{}, err
		}, func(ctx context.Context, c *instance) bool {
			_, err := c.LoadWarehouse(ctx, "new")
			return err == nil
		}},
		{gate.DropWarehouse, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.(*instance).Warehouses().Drop(ctx, "spare")
		},
			func(ctx context.Context, c *instance) bool {
				_, err := c.LoadWarehouse(ctx, "spare")
				return err != nil
			}},
		{gate.CreateNamespace, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			properties, err := c.CreateNamespace(ctx, testWarehouse, moorage.Namespace{"new", "inner"}, map[string]string{"a": "b"})
			return reply{Properties: properties}, err
		}, func(ctx context.Context, c *instance) bool {
			_, err := c.LoadNamespace(ctx, testWarehouse, moorage.Namespace{"new", "inner"})
			return err == nil
		}},
		{gate.DropNamespace, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.DropNamespace(ctx, testWarehouse, empty)
		},
			func(ctx context.Context, c *instance) bool {
				_, err := c.LoadNamespace(ctx, testWarehouse, empty)
				return err != nil
			}},
		{gate.UpdateProperties, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			changed, err := c.UpdateNamespaceProperties(ctx, testWarehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"a": "b"}, Removals: []string{"c"}})
			return reply{Changed: &changed}, err
		}, func(ctx context.Context, c *instance) bool {
			properties, err := c.LoadNamespace(ctx, testWarehouse, ns)
			return err == nil && properties["a"] == "b"
		}},
		{gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
			return reply{Table: table}, err
		}, exists("new")},
		{gate.CommitCreate, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("new"), commitCreateRequest(t, "file:///wh/ns/new"))
			return reply{Table: table}, err
		}, exists("new")},
		{gate.Commit, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, "mine", "yes"))
			return reply{Table: table}, err
		}, func(ctx context.Context, c *instance) bool {
			table, err := c.LoadTable(ctx, ident("t"))
			if err != nil {
				return false
			}
			_, set := table.Document.Property("mine")
			return set
		}},
		{gate.Rename, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.RenameTable(ctx, ident("t"), ident("new"))
		},
			func(ctx context.Context, c *instance) bool { return exists("new")(ctx, c) && missing("t")(ctx, c) }},
		{gate.Register, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.RegisterTable(ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: unregistered})
			return reply{Table: table}, err
		}, exists("new")},
		{gate.RegisterOver, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.RegisterTable(ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: unregistered, Overwrite: true})
			return reply{Table: table}, err
		}, func(ctx context.Context, c *instance) bool {
			table, err := c.LoadTable(ctx, ident("t"))
			return err == nil && table.MetadataLocation == unregistered
		}},
		{gate.Unregister, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.UnregisterTable(ctx, ident("t"))
			return reply{Table: table}, err
		}, missing("t")},
		{gate.DropTable, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{Purge: true})
		}, missing("t")},
		{gate.Purge, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.(*instance).purgeAll(ctx)
		},
			func(ctx context.Context, c *instance) bool {
				records, err := c.config.Store.List(ctx, registry.TableTask, "", "", 1)
				return err == nil && len(records) == 0
			}},
		{gate.EndWindow, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.(*instance).endWindows(ctx)
		},
			func(ctx context.Context, c *instance) bool {
				dropped := 0
				err := c.ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
					if record.State == registry.StateDropped {
						dropped++
					}
					return true, nil
				})
				return err == nil && dropped == 0
			}},
	}...)
}

// newCrashFixture returns a fixture as mutations wants it, and the metadata file.
func newCrashFixture(t testing.TB, operation gate.Verb, change func(*catalog.Config)) (f *fixture, unregistered string) {
	t.Helper()
	f = newFixture(t, change)
	f.create("t")
	f.createView("v")
	f.createLooseView()
	if _, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"empty"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "spare", Location: "file:///spare"}); err != nil {
		t.Fatal(err)
	}
	other := f.create("other")
	if _, err := f.UnregisterTable(f.ctx, ident("other")); err != nil {
		t.Fatal(err)
	}
	switch operation {
	case gate.Purge:
		err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true})
		if err != nil {
			t.Fatal(err)
		}
	case gate.EndWindow:
		if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(undropWindow + time.Hour)
	}
	return f, other.MetadataLocation
}

// faults numbers the calls of both ports in one sequence, once armed, and does action to one of
// them.
type faults struct {
	mu     sync.Mutex
	armed  bool
	k      int
	action registrytest.Action
	calls  int
	hit    string // the method that was hit
	silent bool   // each call after that fails, while armed
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

// fileCount knows which files there are.
type fileCount struct {
	mu    sync.Mutex // guards there; a leaf
	there map[string]bool
}

func (c *fileCount) set(location string, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if there {
		c.there[location] = true
	} else {
		delete(c.there, location)
	}
}

// countedFiles is a storage whose files are counted.
type countedFiles struct {
	storage.Store
	count *fileCount
}

func (c *countedFiles) Create(ctx context.Context, location string, body []byte) error {
	err := c.Store.Create(ctx, location, body)
	if err == nil {
		c.count.set(location, true)
	}
	return err
}

func (c *countedFiles) Delete(ctx context.Context, locations ...string) error {
	for _, location := range locations {
		c.count.set(location, false)
	}
	return c.Store.Delete(ctx, locations...)
}

// crashStride is how far apart the calls are that fail over PostgreSQL.
const crashStride = 20

// For k = 0, 1, 2 …: a fault meets the k-th port call of each operation. The call fails, or
// succeeds and its answer is lost, or comes true only later, or the process dies before or after
// it. What was answered must be what happened. A definite failure must have changed nothing and
// left no file. After a restart Check must find nothing.
//
// See scale.Stride for how many calls that is.
func TestCrashEveryCall(t *testing.T) {
	t.Parallel()
	actions := map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
		"die": registrytest.Die, "die after": registrytest.DieAfter,
	}
	chance := newLockedRandom(newSeed(t)).Rand()
	for storeName, open := range anyStores() {
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

// crashOnce does action to call k of the n-th mutation, and reports whether there was no such call.
func crashOnce(t *testing.T, open func(testing.TB, *lockedRandom) registry.Store, n int, operation gate.Verb, k int, action registrytest.Action) (survived bool) {
	t.Helper()
	plan := &faults{}
	var store *registrytest.FaultyStore
	var raw registry.Store
	var rawStorage func(storage.Place) (storage.Store, error)
	files := &fileCount{there: map[string]bool{}}
	f, unregistered := newCrashFixture(t, operation, func(c *catalog.Config) {
		raw = clockedStore{open(t, newLockedRandom(uint64(k))), c.Now}
		store = registrytest.Faulty(raw, plan.plan)
		c.Store = store
		openInner := c.OpenStorage
		rawStorage = openInner
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := openInner(place)
			if err != nil {
				return nil, err
			}
			return storagetest.Faulty(&countedFiles{inner, files}, plan.storagePlan), nil
		}
	})
	before := len(files.there)
	m := mutations(t, unregistered)[n]
	catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
	plan.arm(k, action)
	_, err := m.run(f.ctx, f.instance)
	plan.disarm()
	survived = plan.hit == ""
	at := fmt.Sprintf("call %d (%s): answered %v", k, plan.hit, err)
	if survived && err != nil {
		t.Fatalf("%s without a fault", at)
	}
	// Another node looks at once, then the late write arrives, then everything restarts.
	config := f.config
	config.Store, config.OpenStorage = raw, rawStorage
	node, newErr := newInstance(config)
	if newErr != nil {
		t.Fatal(newErr)
	}
	definite := err == nil || !plan.dead && moorage.KindOf(err) != moorage.KindCommitUnknown
	for _, moment := range []string{"at once", "after late writes"} {
		if moment == "after late writes" {
			store.Release(f.ctx)
		}
		// A worker's pass may end without an error and be resumed by the next.
		if worker := operation == gate.Purge || operation == gate.EndWindow; definite && (!worker || survived) && m.happened(f.ctx, node) != (err == nil) {
			t.Fatalf("%s, but %s happened is %t", at, moment, err != nil)
		}
	}
	if definite && err != nil && len(files.there) > before && plan.hit != storagetest.MethodDelete {
		t.Errorf("%s: %d files before, %d after", at, before, len(files.there))
	}
	f.clock.Advance(max(directory.DroppingStale, purge.AssignmentLife) + time.Second)
	recovered := &fixture{instance: node, t: t, ctx: f.ctx, clock: f.clock, store: raw}
	recovered.recover()
	recovered.wantClean()
	for _, task := range (tampering{recovered}).list(registry.TableTask) {
		t.Errorf("a task is left: %s", task.Value)
	}
	if t.Failed() {
		t.Fatalf("%s: see above", at)
	}
	return survived
}

// recover does what the workers and the next users of a namespace do.
func (f *fixture) recover() {
	f.t.Helper()
	for _, err := range []error{f.purgeAll(f.ctx), f.endWindows(f.ctx)} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	for _, ns := range []moorage.Namespace{nil, {"ns"}, {"empty"}} {
		if _, err := f.directory.LivePath(f.ctx, testWarehouse, ns); err != nil && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
			f.t.Fatal(err)
		}
	}
	if _, err := f.directory.LivePath(f.ctx, "spare", nil); err != nil && moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		f.t.Fatal(err)
	}
}

// anyStores returns what opens a store, by its name.
func anyStores() map[string]func(testing.TB, *lockedRandom) registry.Store {
	return map[string]func(testing.TB, *lockedRandom) registry.Store{
		"memory":   func(_ testing.TB, random *lockedRandom) registry.Store { return memoryregistry.New(random) },
		"pebble":   openMemPebble,
		"postgres": newPostgres,
	}
}

// openMemPebble returns a store on a file system in memory.
func openMemPebble(t testing.TB, random *lockedRandom) registry.Store {
	t.Helper()
	store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: random})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
