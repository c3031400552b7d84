package check_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

const (
	testWarehouse = "w"
	testSchema    = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`
	// recoveryGrace is the time after a transaction's deadline before Check reports it.
	recoveryGrace = 15 * time.Minute
)

type clock = testkit.Clock

// fixture is a catalog over stores in memory, with the warehouse "w" and the namespace "ns". Its
// methods write records behind the catalog's back.
type fixture struct {
	*check.Checker
	t       testing.TB
	ctx     context.Context
	clock   *clock
	random  io.Reader
	store   registry.Store
	files   storage.Store
	catalog *catalog.Catalog
	config  catalog.Config
}

// newFixture returns a fixture. change may edit the configuration before the catalog is made.
func newFixture(t testing.TB, change ...func(*catalog.Config)) *fixture {
	t.Helper()
	files := memorystorage.New()
	f := &fixture{
		t: t, ctx: t.Context(), clock: testkit.NewClock(),
		random: rand.NewChaCha8([32]byte{1}), files: files,
	}
	f.config = catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: memory.NewWithClock(rand.NewChaCha8([32]byte{2}), f.clock.Now), Now: f.clock.Now, Random: f.random}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	for _, set := range change {
		set(&f.config)
	}
	f.config.Deps = registrytest.LedgerDeps(f.config.Deps.Config) // uses the store that the test has set
	f.store = f.config.Store
	f.catalog = f.newCatalog()
	f.Checker = f.over(f.store, time.Time{})
	f.must(f.catalog.Warehouses().Create(f.ctx, warehouses.Spec{Name: testWarehouse, Location: "file:///wh"}))
	f.makeNamespace(testWarehouse, "ns")
	return f
}

// newCatalog returns a catalog over the stores of f, as for another process.
func (f *fixture) newCatalog() *catalog.Catalog {
	f.t.Helper()
	c, err := catalog.New(f.config)
	f.must(c, err)
	return c.As(moorage.Anonymous())
}

// over returns a checker of store, as for a process with exclusive use of the store since opened.
func (f *fixture) over(store registry.Store, opened time.Time) *check.Checker {
	return check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: f.clock.Now}), Files: f.catalog.Documents(), Opened: opened})
}

// must ends the test if err is not nil.
func (f *fixture) must(_ any, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

var ident = testkit.Ident

func (f *fixture) makeNamespace(warehouse string, levels ...string) {
	f.t.Helper()
	f.must(f.catalog.CreateNamespace(f.ctx, warehouse, levels, nil))
}

func (f *fixture) createAt(ident moorage.Identifier, location string) *catalog.Table {
	f.t.Helper()
	table, err := f.catalog.CreateTable(f.ctx, ident,
		catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
	f.must(table, err)
	return table
}

func (f *fixture) create(name string) *catalog.Table {
	f.t.Helper()
	return f.createAt(ident(name), "")
}

func (f *fixture) createView(name string) *catalog.View {
	f.t.Helper()
	view, err := f.catalog.CreateView(f.ctx, ident(name), catalog.CreateViewRequest{
		Schema: []byte(testSchema),
		Version: []byte(`{"version-id":1,"schema-id":0,"timestamp-ms":1700000000000,"summary":{},"default-namespace":["ns"],` +
			`"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}`),
	})
	f.must(view, err)
	return view
}

func (f *fixture) drop(name string, purge bool) {
	f.t.Helper()
	f.must(nil, f.catalog.DropTable(f.ctx, ident(name), catalog.DropOptions{Purge: purge}))
}

// dropPurged drops a table with a purge, and returns its task.
func (f *fixture) dropPurged(name string) (task registry.Record) {
	f.t.Helper()
	f.drop(name, true)
	_, pointer := f.recordOf(name)
	return f.get(registry.TaskKey(pointer.Task))
}

// abandon leaves a transaction over the table "t" that its coordinator, long gone, did not end.
func (f *fixture) abandon() txlog.Entry {
	f.t.Helper()
	id, err := registry.NewID(f.random)
	f.must(id, err)
	_, pointer := f.pointer()
	entry, err := f.transactions().Begin(f.ctx, txlog.Transaction{
		ID: id, Warehouse: testWarehouse, Place: txlog.Place{Roots: []string{"file:///wh"}},
		Began: f.clock.Now().Add(-2 * time.Minute), Deadline: f.clock.Now().Add(-time.Minute),
		Participants: []txlog.Participant{{Ident: ident("t"), Pointer: pointer.ID, ETag: registry.ETag{1}, Writes: true}},
		Files:        []string{fmt.Sprintf("file:///wh/ns/t/metadata/%s-0.metadata.json", id), fmt.Sprintf("file:///wh/ns/t/metadata/%s-1.metadata.json", id)},
	})
	f.must(entry, err)
	return entry
}

// abandonCommitted leaves a transaction over the table "t" that is committed.
func (f *fixture) abandonCommitted() {
	f.t.Helper()
	entry := f.abandon()
	condition, write, err := entry.Commit(entry.Files[1:])
	f.must(write, err)
	f.must(f.store.Apply(f.ctx, registry.Batch{
		Conditions: []registry.Condition{condition}, Writes: []registry.Write{write},
	}))
}

func (f *fixture) transactions() *txlog.Log { return txlog.New(registrytest.Ledger(f.store)) }

// wantClean fails the test unless Check finds nothing.
func (f *fixture) wantClean() {
	f.t.Helper()
	if report, err := f.Check(f.ctx); err != nil || len(report.Problems)+len(report.Unread) > 0 {
		f.t.Errorf("check: %v %q %q", err, report.Problems, report.Unread)
	}
}

// wantProblem fails the test unless Check finds exactly one problem, which contains text.
func (f *fixture) wantProblem(text string) {
	f.t.Helper()
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], text) {
		f.t.Errorf("check: %v %q, want %q", err, report.Problems, text)
	}
}

// awayStore is a storage that fails all reads while away is set.
type awayStore struct {
	storage.Store
	away *away
}

// away is safe for concurrent use.
type away struct {
	fault error
	is    atomic.Bool
	asked atomic.Int64 // calls while it was away
}

// Open implements storage.Store.
func (s awayStore) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if s.away.is.Load() {
		s.away.asked.Add(1)
		return nil, storage.Info{}, s.away.fault
	}
	return s.Store.Open(ctx, location)
}

// wantKind fails the test unless err has the kind.
func wantKind(t testing.TB, err error, kind moorage.Kind) {
	t.Helper()
	if err == nil || moorage.KindOf(err) != kind {
		t.Fatalf("got error %v of kind %v, want kind %v", err, moorage.KindOf(err), kind)
	}
}

// record returns the only record of table whose ID ends in suffix and whose state is one of states.
func (f *fixture) record(table registry.Table, suffix string, states ...registry.State) registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
	if err != nil {
		f.t.Fatal(err)
	}
	records = slices.DeleteFunc(records, func(r registry.Record) bool {
		return !strings.HasSuffix(r.Key.ID, suffix) || !slices.Contains(states, r.State)
	})
	if len(records) != 1 {
		f.t.Fatalf("%d records of %v end in %q, want 1", len(records), table, suffix)
	}
	return records[0]
}

func (f *fixture) write(writes ...registry.Write) {
	f.t.Helper()
	if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes}); err != nil {
		f.t.Fatal(err)
	}
}

// put writes a value under a key.
func (f *fixture) put(key registry.Key, state registry.State, value registry.Value) {
	f.t.Helper()
	encoded, err := registry.Encode(value)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(registry.Put(key, state, encoded))
}

func (f *fixture) remove(record registry.Record) {
	f.t.Helper()
	f.write(registry.Delete(record.Key))
}

func (f *fixture) entry() registry.Record {
	return f.record(registry.TableEntry, "/t", registry.StateTable)
}

// pointer returns the record and the value of the table "t".
func (f *fixture) pointer() (registry.Record, registry.Pointer) { f.t.Helper(); return f.recordOf("t") }

// change edits the pointer of "t" with the given function.
func (f *fixture) change(change func(*registry.Pointer)) {
	f.t.Helper()
	record, pointer := f.pointer()
	change(&pointer)
	f.put(record.Key, record.State, pointer)
}

// recordOf returns the pointer record of the table or view called name, and its value. It prefers a
// live one to dropped ones.
func (f *fixture) recordOf(name string) (found registry.Record, pointer registry.Pointer) {
	f.t.Helper()
	records, err := f.store.List(f.ctx, registry.TablePointer, "", "", registry.ListLimitMax)
	f.must(records, err)
	for _, record := range records {
		value, err := ledger.Decode[registry.Pointer](record)
		f.must(value, err)
		if value.Name == name && (!found.Exists() || record.State == registry.StateLive) {
			found, pointer = record, value
		}
	}
	if !found.Exists() {
		f.t.Fatalf("no pointer is called %s", name)
	}
	return found, pointer
}

// get returns the record at key, which must exist.
func (f *fixture) get(key registry.Key) registry.Record {
	f.t.Helper()
	records, err := f.store.Get(f.ctx, key)
	if err != nil || !records[0].Exists() {
		f.t.Fatalf("no record of %s (%v)", key, err)
	}
	return records[0]
}
