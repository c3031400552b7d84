package catalog_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
	"moorage/testkit/storetest"
)

// Over PostgreSQL, only one in crashTransactionStride calls is made to fail.
const crashTransactionStride = 6

// A transaction over five tables creates one of them, and has only requirements for another. For k
// = 0, 1, 2 …: a fault hits its k-th port call. The call fails, or succeeds but its answer is lost,
// or takes effect only later, or the process dies before or after it.
//
// In each case, a later reader sees all of the transaction or nothing, and the answer agrees with
// the effect. After the deadline, two nodes run recovery at the same time. They leave no record of
// the transaction, and exactly the files named by tables. The tables can be changed again.
func TestCrashTransaction(t *testing.T) {
	t.Parallel()
	actions := map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay,
		"die": registrytest.Die, "die after": registrytest.DieAfter,
	}
	chance := newLockedRandom(catalogkit.NewSeed(t)).Rand()
	for storeName, open := range stores.Kinds() {
		stride := scale.Stride(storeName, crashTransactionStride)
		wrap := func(files storage.Store) storage.Store { return files }
		if storeName == "pebble" { // like an object storage
			wrap = func(files storage.Store) storage.Store { return oneByOne{files} }
		}
		for actionName, action := range actions {
			first := chance.IntN(stride)
			t.Run(storeName+"/"+actionName, func(t *testing.T) {
				t.Parallel()
				for k := first; ; k += stride {
					w := newCrashWorld(t, open, wrap, k, action)
					w.run()
					if w.plan.hit == "" {
						if k < 15 {
							t.Fatalf("only %d calls were seen", k)
						}
						return
					}
				}
			})
		}
	}
}

// crashWorld is one transaction, with a fault at its k-th port call. node is another node over the
// same store and files, without faults.
type crashWorld struct {
	*catalogkit.Fixture
	plan  *faults
	store *registrytest.FaultyStore
	files *catalogkit.FileCount
	node  *catalogkit.Fixture
}

// oneByOne is a storage that creates files one by one.
type oneByOne struct{ storage.Store }

func newCrashWorld(t *testing.T, open storetest.Open, wrap func(storage.Store) storage.Store, k int, action registrytest.Action) *crashWorld {
	t.Helper()
	w := &crashWorld{plan: &faults{}, files: &catalogkit.FileCount{There: map[string]bool{}}}
	var raw registry.Store
	var rawStorage func(storage.Place) (storage.Store, error)
	w.Fixture = catalogkit.New(t, catalogkit.CountFiles(w.files), func(c *catalog.Config) {
		raw, rawStorage = catalogkit.ClockedStore{Store: open(t, newLockedRandom(uint64(k))), Now: c.Now}, c.OpenStorage
		w.store = registrytest.Faulty(raw, w.plan.plan)
		c.Store = w.store
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return wrap(storagetest.Faulty(inner, w.plan.storagePlan)) })
	})
	for _, name := range []string{"a", "b", "c", "d"} {
		w.Create(name)
	}
	catalog.SetSettleTimeout(w.Catalog, 20*time.Millisecond)
	config := w.Config
	config.Store, config.OpenStorage = raw, rawStorage
	w.node = &catalogkit.Fixture{Instance: w.newNode(config), T: t, Ctx: w.Ctx, Clock: w.Clock, Config: config}
	w.plan.arm(k, action)
	return w
}

func (w *crashWorld) newNode(config catalog.Config) *catalogkit.Instance {
	w.T.Helper()
	node, err := catalogkit.NewInstance(config)
	if err != nil {
		w.T.Fatal(err)
	}
	return node
}

func (w *crashWorld) run() {
	t := w.T
	t.Helper()
	empty := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)
	err := w.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("c", catalogkit.SetProperty(t, "m", "1")), catalogkit.On("d", empty),
		catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new")), catalogkit.On("c", catalogkit.SetProperty(t, "n", "1")))
	w.plan.disarm()
	at := fmt.Sprintf("call %d (%s): answered %v", w.plan.k, w.plan.hit, err)
	if w.plan.hit == "" && err != nil {
		t.Fatalf("%s without a fault", at)
	}
	definite := err == nil || !w.plan.dead && moorage.KindOf(err) != moorage.KindCommitUnknown
	happened := w.happened(at)
	if definite && happened != (err == nil) {
		t.Fatalf("%s, but it happened is %t", at, happened)
	}
	w.store.Release(w.Ctx)
	if later := w.happened(at); definite && later != happened {
		t.Fatalf("%s, and later it happened is %t", at, later)
	}
	happened = w.happened(at)

	w.Clock.Advance(commit.TransactionDeadline + time.Second)
	w.recoverTwice()
	if w.happened(at) != happened {
		t.Fatalf("%s, and recovery changed whether it happened", at)
	}
	w.node.WantNoTransactions()
	w.wantFilesNamed(at)
	w.node.WantClean()
	if err := w.node.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "after", "1")), catalogkit.On("d", catalogkit.SetProperty(t, "after", "1"))); err != nil {
		t.Errorf("%s; the next transaction: %v", at, err)
	}
	if t.Failed() {
		t.Fatalf("%s: see above", at)
	}
}

// happened reports whether another node sees the transaction. It fails the test if only a part is
// visible.
func (w *crashWorld) happened(at string) bool {
	w.T.Helper()
	seen := map[string]bool{"new": w.node.TableExists(w.Ctx, ident("new")) == nil}
	for _, name := range []string{"a", "b", "c"} {
		table, err := w.node.LoadTable(w.Ctx, ident(name))
		if err != nil {
			w.T.Fatalf("%s; load %s: %v", at, name, err)
		}
		_, seen[name] = table.Document.Property("n")
	}
	for _, s := range seen {
		if s != seen["new"] {
			w.T.Fatalf("%s; half of it is seen: %v", at, seen)
		}
	}
	return seen["new"]
}

// recoverTwice runs recovery on two nodes at the same time.
func (w *crashWorld) recoverTwice() {
	w.T.Helper()
	var group sync.WaitGroup
	for _, node := range []*catalogkit.Instance{w.node.Instance, w.newNode(w.node.Config)} {
		group.Go(func() {
			if err := node.Recovery().RunOnce(w.Ctx); err != nil {
				w.T.Error(err)
			}
		})
	}
	group.Wait()
}

// wantFilesNamed fails the test unless the existing files are exactly those named by tables, as
// current or earlier versions.
func (w *crashWorld) wantFilesNamed(at string) {
	w.T.Helper()
	named := map[string]bool{}
	for _, name := range []string{"a", "b", "c", "d", "new"} {
		table, err := w.node.LoadTable(w.Ctx, ident(name))
		if moorage.KindOf(err) == moorage.KindNoSuchTable && name == "new" {
			continue
		}
		if err != nil {
			w.T.Fatal(err)
		}
		named[table.MetadataLocation] = true
		for _, entry := range table.Document.MetadataLog() {
			named[entry.MetadataLocation] = true
		}
	}
	var left []string
	for location := range w.files.There {
		if !named[location] {
			left = append(left, location)
		}
	}
	slices.Sort(left)
	if len(left) > 0 || len(named) != len(w.files.There) {
		w.T.Errorf("%s: %d files are named, %d are there; left over: %v", at, len(named), len(w.files.There), left)
	}
}
