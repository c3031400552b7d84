package retention_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

const (
	week       = 7 * 24 * time.Hour
	keyLife    = 35 * time.Minute
	testSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`
)

type clock = testkit.Clock

var newBits = testkit.NewBits

// fixture is a Retention over a store in memory, and a catalog with the warehouse "w" and the
// namespace "ns".
type fixture struct {
	*retention.Retention
	t       testing.TB
	ctx     context.Context
	clock   *clock
	config  retention.Config
	store   registry.Store
	catalog *catalog.Catalog
}

// newFixture returns a fixture. change may edit the configuration first.
func newFixture(t testing.TB, change ...func(*retention.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: t.Context(), clock: testkit.NewClock()}
	f.config = retention.Config{KeyLife: keyLife, Deps: ledger.Deps{Config: ledger.Config{Now: f.clock.Now, Random: newBits(4)}}}
	f.config.Store = memory.NewWithClock(newBits(2), func() time.Time { return f.config.Now() })
	for _, set := range change {
		set(&f.config)
	}
	f.config.Deps = registrytest.LedgerDeps(f.config.Deps.Config)
	f.store = f.config.Store
	f.Retention = f.other(f.store)
	files := memorystorage.New()
	f.newCatalog("w", "file:///wh", func(roots []string) (storage.Store, error) { return files.Within(roots) })
	return f
}

// newCatalog makes a catalog over the storages opened by open. It has a warehouse with the
// namespace "ns".
func (f *fixture) newCatalog(warehouse, location string, open func([]string) (storage.Store, error)) {
	f.t.Helper()
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store, Now: f.config.Now, Random: f.config.Random}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage:  func(place storage.Place) (storage.Store, error) { return open(place.Roots) },
		StagedFolder: f.RememberStaged,
	})
	must(f.t, err)
	made = made.As(moorage.Anonymous())
	_, err = made.Warehouses().Create(f.ctx, warehouses.Spec{Name: warehouse, Location: location})
	must(f.t, err)
	_, err = made.CreateNamespace(f.ctx, warehouse, moorage.Namespace{"ns"}, nil)
	must(f.t, err)
	f.catalog = made
}

// other returns the Retention of another node over store.
func (f *fixture) other(store registry.Store) *retention.Retention {
	f.t.Helper()
	config := f.config
	config.Store = store
	config.Deps = registrytest.LedgerDeps(config.Deps.Config)
	made, err := retention.New(config)
	must(f.t, err)
	return made
}

var must = testkit.Must

// wantKind fails the test unless err has the kind.
func wantKind(t testing.TB, err error, kind moorage.Kind) {
	t.Helper()
	if err == nil || moorage.KindOf(err) != kind {
		t.Fatalf("got error %v of kind %v, want kind %v", err, moorage.KindOf(err), kind)
	}
}

// wantClean fails the test unless all records and files are consistent.
func (f *fixture) wantClean() {
	f.t.Helper()
	report, err := check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store, Now: f.config.Now}), Files: f.catalog.Documents()}).Check(f.ctx)
	if err != nil || len(report.Problems) > 0 {
		f.t.Errorf("check: %v %q", err, report.Problems)
	}
}

var ident = testkit.Ident

func (f *fixture) tryCreate(name, location string) error {
	_, err := f.catalog.CreateTable(f.ctx, ident(name),
		catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
	return err
}

func (f *fixture) createAt(name, location string) {
	f.t.Helper()
	must(f.t, f.tryCreate(name, location))
}

func (f *fixture) create(name string) { f.t.Helper(); f.createAt(name, "") }

// unregister removes a table and its claims.
func (f *fixture) unregister(name string) {
	f.t.Helper()
	_, err := f.catalog.UnregisterTable(f.ctx, ident(name))
	must(f.t, err)
}

// leave removes a table, and everything left of its location.
func (f *fixture) leave(name string) {
	f.t.Helper()
	f.unregister(name)
	for _, record := range f.list(registry.TableTombstone, "") {
		f.write(registry.Delete(record.Key), registry.Delete(registry.LocationKey(record.Key.ID)))
	}
}

// write changes the records of the store behind the catalog's back.
func (f *fixture) write(writes ...registry.Write) {
	f.t.Helper()
	_, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes})
	must(f.t, err)
}

// put writes a value under a key.
func (f *fixture) put(key registry.Key, state registry.State, value registry.Value) {
	f.t.Helper()
	encoded, err := registry.Encode(value)
	must(f.t, err)
	f.write(registry.Put(key, state, encoded))
}

// list returns the records of a table whose ids begin with prefix.
func (f *fixture) list(table registry.Table, prefix string) []registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, prefix, "", registry.ListLimitMax)
	must(f.t, err)
	return records
}

// addChanges writes changes with the ids from first to last, as of the clock.
func (f *fixture) addChanges(first, last int) { f.t.Helper(); f.addChangesBy(0, first, last) }

// addChangesBy is like addChanges, for a node whose clock is ahead.
func (f *fixture) addChangesBy(ahead time.Duration, first, last int) {
	f.t.Helper()
	for n := first; n <= last; n++ {
		change := registry.Change{ID: numbered(n), Operation: "test", Time: f.config.Now().Add(ahead)}
		_, err := f.store.Apply(f.ctx, registry.Batch{Change: &change})
		must(f.t, err)
	}
}

func numbered(n int) registry.ID { return registry.ID{0: 0xff, 1: byte(n >> 8), 2: byte(n)} }

// changesLeft returns the remaining changes of addChanges.
func (f *fixture) changesLeft() []registry.Record {
	f.t.Helper()
	return f.list(registry.TableChange, "ff")
}

// wantChanges fails the test unless the remaining changes of addChanges are exactly first to last.
func (f *fixture) wantChanges(first, last int) {
	f.t.Helper()
	var got, want []registry.Key
	for _, record := range f.changesLeft() {
		got = append(got, record.Key)
	}
	for n := first; n <= last; n++ {
		want = append(want, registry.ChangeKey(numbered(n)))
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("the changes %v are left, want %v", got, want)
	}
}

// stores opens the stores of all tests.
var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }
