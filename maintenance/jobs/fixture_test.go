package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/tablefiles"
)

type clock = testkit.Clock

type lockedRandom = testkit.Bits

var newLockedRandom = testkit.NewBits

var must = testkit.Must

// node is the catalog and the jobs of one process.
type node struct {
	catalog *catalog.Catalog
	jobs    *jobs.Jobs
}

// world is the table w.ns.t with a history, and a node over it.
type world struct {
	node
	t       testing.TB
	ctx     context.Context
	clock   *clock
	random  *lockedRandom
	store   registry.Store
	files   *memorystorage.Store
	history *tablefiles.History
	table   registry.ID
	// If orphaned is true, files that no snapshot ever reached may be deleted.
	orphaned bool
	tracer   *trace.Tracer // of the nodes that are made from now on
}

// newStore makes an empty store of records that uses the test's clock.
type newStore func(t testing.TB, random *lockedRandom, clock *clock) registry.Store

func inMemory(_ testing.TB, random *lockedRandom, clock *clock) registry.Store {
	return memoryregistry.NewWithClock(random, clock.Now)
}

func newWorld(t testing.TB, open newStore, seed uint64, steps int) *world {
	t.Helper()
	w := &world{
		t: t, ctx: t.Context(), clock: testkit.NewClock(),
		random: newLockedRandom(1),
	}
	w.store, w.files = lifeStore{open(t, w.random, w.clock), t}, memorystorage.NewWithClock(w.clock.Now)
	w.node = w.newNode(w.store, w.files)
	ann := w.catalog.As(moorage.Anonymous())
	_, err := ann.Warehouses().Create(w.ctx, warehouses.Spec{Name: "w", Location: "file:///wh"})
	must(t, err)
	_, err = ann.CreateNamespace(w.ctx, "w", moorage.Namespace{"ns"}, nil)
	must(t, err)
	made, err := ann.CreateTable(w.ctx, ident(), catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(t, err)
	w.history = tablefiles.New(t, w.files, made.Document.Location(), rand.New(rand.NewPCG(seed, 3)), w.clock.Now().UnixMilli())
	records, err := w.store.List(w.ctx, registry.TablePointer, "", "", 10)
	must(t, err)
	pointer, err := registry.Decode[registry.Pointer](records[0])
	must(t, err)
	w.table = pointer.ID
	for range steps {
		w.step()
	}
	return w
}

func ident() moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t"}
}

// newNode returns another process over store and files.
func (w *world) newNode(store registry.Store, files storage.Store) node {
	w.t.Helper()
	return w.newNodeOver(store, func(storage.Place) (storage.Store, error) { return files, nil })
}

// newNodeOver is like newNode, with several storages.
func (w *world) newNodeOver(store registry.Store, open func(storage.Place) (storage.Store, error)) node {
	w.t.Helper()
	served, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: w.clock.Now, Random: w.random, Logger: slog.New(slog.DiscardHandler)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: open,
	})
	must(w.t, err)
	made, err := jobs.New(jobs.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: w.clock.Now, Random: w.random, Alone: true, Tracer: w.tracer}), Tables: served.As(moorage.System("expire")).Tables(),
		FormerKept: formerKept,
	})
	must(w.t, err)
	return node{served, made}
}

// step commits the next change of the history.
func (w *world) step() {
	w.t.Helper()
	w.clock.Advance(time.Second)
	w.commit(w.history.Step(1000)...)
}

func (w *world) commit(updates ...string) {
	w.t.Helper()
	checked, err := jsontext.Check([]byte("[" + strings.Join(updates, ",") + "]"))
	must(w.t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(w.t, err)
	_, err = w.catalog.As(moorage.Anonymous()).Commit(w.ctx, ident(), catalog.CommitRequest{Updates: decoded})
	must(w.t, err)
}

// settings returns settings that expire snapshots older than age, and delete files an hour later.
func settings(age time.Duration) jobs.SnapshotSettings {
	return jobs.SnapshotSettings{
		Retention: metadata.Retention{MaxSnapshotAge: age, MinSnapshots: 1}, Delay: time.Hour, Caller: "ann",
	}
}

// present returns the snapshots that the table has.
func (w *world) present(n node) map[int64]bool {
	w.t.Helper()
	loaded, err := n.catalog.As(moorage.Anonymous()).LoadTable(w.ctx, ident())
	must(w.t, err)
	ids := map[int64]bool{}
	for s := range loaded.Document.Snapshots() {
		ids[s.ID] = true
	}
	return ids
}

// all returns the snapshots that the table ever had.
func (w *world) all() map[int64]bool {
	ids := map[int64]bool{}
	for _, s := range w.history.Snapshots {
		ids[s.ID] = true
	}
	return ids
}

func (w *world) exists(path string) bool {
	_, err := w.files.Stat(w.ctx, path)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		w.t.Fatal(err)
	}
	return err == nil
}

// judge fails the test if a file of a present snapshot is missing. It also fails if a missing file
// was never reached by an expired snapshot. If final is true, all files that only expired snapshots
// reach must be gone.
func (w *world) judge(n node, final bool, at string) (gone int) {
	w.t.Helper()
	present := w.present(n)
	live, ever := w.history.Reach(present), w.history.Reach(w.all())
	for _, path := range w.history.Files {
		there := w.exists(path)
		switch {
		case live[path] && !there:
			w.t.Errorf("%s: the live file %s is gone", at, path)
		case !ever[path] && !there && !w.orphaned:
			w.t.Errorf("%s: %s, which no snapshot reached, is gone", at, path)
		case final && ever[path] && !live[path] && there:
			w.t.Errorf("%s: %s is left", at, path)
		}
		if !there {
			gone++
		}
	}
	return gone
}

// own returns the files that jobs have left in the warehouse.
func (w *world) own() []string {
	w.t.Helper()
	page, err := w.files.List(w.ctx, "file:///wh/~moorage", "", 1000)
	must(w.t, err)
	var names []string
	for _, file := range page.Files {
		names = append(names, file.Location)
	}
	return names
}

func (w *world) job() *jobs.Under {
	w.t.Helper()
	all, _, err := w.jobs.List(w.ctx, registry.ID{}, "", 0)
	must(w.t, err)
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}
