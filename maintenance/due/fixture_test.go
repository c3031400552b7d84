package due_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
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

var must = testkit.Must

// recorder records the calls of a store.
type recorder struct {
	registry.Store

	mu    sync.Mutex // guards calls
	calls []string
}

func (r *recorder) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

// take returns the calls since take was last called.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) Time(ctx context.Context) (time.Time, error) {
	r.note("Time")
	return r.Store.Time(ctx)
}

func (r *recorder) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	tables := make([]string, len(keys))
	for i, key := range keys {
		tables[i] = key.Table.String()
	}
	r.note("Get " + strings.Join(tables, " "))
	return r.Store.Get(ctx, keys...)
}

func (r *recorder) List(ctx context.Context, table registry.Table, prefix, after string, limit int) (
	[]registry.Record, error) {
	r.note("List " + table.String())
	return r.Store.List(ctx, table, prefix, after, limit)
}

func (r *recorder) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) (
	[]registry.Record, error) {
	r.note("ListKeys " + table.String())
	return r.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (r *recorder) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	tables := make([]string, len(batch.Writes))
	for i, write := range batch.Writes {
		if tables[i] = write.Key.Table.String(); write.Delete {
			tables[i] = "-" + tables[i]
		}
	}
	r.note("Apply " + strings.Join(tables, " "))
	return r.Store.Apply(ctx, batch)
}

func (r *recorder) Changes(ctx context.Context, after registry.Position, limit int) (
	[]registry.PositionedChange, error) {
	r.note("Changes")
	return r.Store.Changes(ctx, after, limit)
}

// node is the maintenance of one process.
type node struct {
	catalog  *catalog.Catalog
	policies *policy.Policies
	monitor  *due.Monitor
	planner  *due.Planner
	jobs     *jobs.Jobs
}

// world is a store with the namespace w.ns, and one node.
type world struct {
	node
	t      testing.TB
	ctx    context.Context
	clock  *clock
	random *lockedRandom
	store  *recorder
	files  *memorystorage.Store
	opened storage.Store // the file storage of nodes made from now on
	former time.Duration // jobs.Config.FormerKept of such nodes
}

// newStore makes an empty store that uses the test's clock.
type newStore func(t testing.TB, random *lockedRandom, clock *clock) registry.Store

func inMemory(_ testing.TB, random *lockedRandom, clock *clock) registry.Store {
	return memoryregistry.NewWithClock(random, clock.Now)
}

// stores returns the stores that the suite runs over. Some tests choose one of them.
func stores() map[string]newStore {
	return map[string]newStore{"memory": inMemory, "postgres": inPostgres}
}

// overStores runs a test over each of stores.
func overStores(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, open))
		})
	}
}

func newWorld(t testing.TB, open newStore) *world {
	t.Helper()
	w := &world{
		t: t, ctx: t.Context(), clock: testkit.NewClock(),
		random: testkit.NewBits(1),
	}
	w.store = &recorder{Store: open(t, w.random, w.clock)}
	w.files = memorystorage.NewWithClock(w.clock.Now)
	w.opened = w.files
	w.node = w.newNode(w.store, true)
	w.makeWarehouse()
	return w
}

// makeWarehouse makes w and w.ns.
func (w *world) makeWarehouse() {
	w.t.Helper()
	_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "w", Location: "file:///wh"})
	must(w.t, err)
	_, err = w.ann().CreateNamespace(w.ctx, "w", moorage.Namespace{"ns"}, nil)
	must(w.t, err)
}

func (w *world) ann() *catalog.Catalog { return w.catalog.As(moorage.Anonymous()) }

// newNode returns another process that uses store.
func (w *world) newNode(store registry.Store, alone bool) node {
	w.t.Helper()
	served, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: w.clock.Now, Random: w.random, Logger: slog.New(slog.DiscardHandler)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(storage.Place) (storage.Store, error) { return w.opened, nil },
	})
	must(w.t, err)
	n := node{catalog: served}
	tables := served.As(moorage.System("expire")).Tables()
	n.jobs, err = jobs.New(jobs.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: w.clock.Now, Random: w.random, Alone: alone}), Tables: tables, FormerKept: w.former})
	must(w.t, err)
	n.policies = policy.New(registrytest.Ledger(store), nil)
	_, err = n.policies.Reload(w.ctx)
	must(w.t, err)
	n.monitor, err = due.NewMonitor(due.MonitorConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Alone: alone, Now: w.clock.Now, Random: w.random}), Tables: tables, Policies: n.policies,
	})
	must(w.t, err)
	n.planner, err = due.NewPlanner(due.PlannerConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Alone: alone, Now: w.clock.Now, Random: w.random}), Jobs: n.jobs, Tables: tables, Policies: n.policies,
	})
	must(w.t, err)
	return n
}

var ident = testkit.Ident

// table makes a table with its own history.
func (w *world) table(name string, seed uint64) (registry.ID, *tablefiles.History) {
	w.t.Helper()
	made, err := w.ann().CreateTable(w.ctx, ident(name), catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(w.t, err)
	history := tablefiles.New(w.t, w.files, made.Document.Location(), rand.New(rand.NewPCG(seed, 3)),
		w.clock.Now().UnixMilli())
	id, err := w.catalog.As(moorage.System("expire")).Tables().Find(w.ctx, ident(name))
	must(w.t, err)
	return id, history
}

// commit commits updates to a table.
func (w *world) commit(name string, updates ...string) {
	w.t.Helper()
	checked, err := jsontext.Check([]byte("[" + strings.Join(updates, ",") + "]"))
	must(w.t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(w.t, err)
	_, err = w.ann().Commit(w.ctx, ident(name), catalog.CommitRequest{Updates: decoded})
	must(w.t, err)
}

// put sets a scope's policy of one type.
func (w *world) put(scope moorage.Identifier, t policy.Type, settings policy.Settings) {
	w.t.Helper()
	must(w.t, w.policies.Put(w.ctx, w.ann().Scopes(), scope, policy.Asked{
		Type: t, Status: policy.Enabled, Settings: settings, Unsafe: true, By: "ann",
	}, nil))
}

// tend has a node do all the work that is due now.
func (w *world) tend(n node) {
	w.t.Helper()
	must(w.t, n.monitor.RunOnce(w.ctx))
	must(w.t, n.planner.RunOnce(w.ctx))
	must(w.t, n.jobs.RunOnce(w.ctx))
}

// schedule returns the schedule of a table.
func (w *world) schedule(table registry.ID) registry.Schedule {
	w.t.Helper()
	records, err := w.store.Store.Get(w.ctx, registry.ScheduleKey(table))
	must(w.t, err)
	if !records[0].Exists() {
		return registry.Schedule{}
	}
	schedule, err := registry.Decode[registry.Schedule](records[0])
	must(w.t, err)
	return schedule
}

func (w *world) snapshots(name string) (count int) {
	w.t.Helper()
	loaded, err := w.ann().LoadTable(w.ctx, ident(name))
	must(w.t, err)
	for range loaded.Document.Snapshots() {
		count++
	}
	return count
}
