package catalogkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/internal/jsontext"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/purge"
	"moorage/maintenance/retention"
	"moorage/metadata"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/locktest"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// Instance is the catalog of one node. It also holds parts over the same store, with which a test
// reads and writes records. They share nothing with the catalog's own parts.
type Instance struct {
	*catalog.Catalog
	Config       catalog.Config // with the defaults that tests need
	made         time.Time
	Ledger       *ledger.Ledger
	Directory    *directory.Directory
	Transactions *txlog.Log
}

// NewInstance returns an instance with the given configuration.
func NewInstance(config catalog.Config) (*Instance, error) {
	config.Deps = registrytest.LedgerDeps(config.Deps.Config) // uses the store that the test has set
	c, err := catalog.New(config)
	if err != nil {
		return nil, err
	}
	if config.IdempotencyLifetime == 0 {
		config.IdempotencyLifetime = 30 * time.Minute
	}
	records := config.Ledger
	names := directory.New(directory.Config{
		Ledger: records, OpenStorage: config.OpenStorage, BorrowStorage: config.BorrowStorage,
		Now: config.Now, Logger: config.Logger,
	})
	return &Instance{c.As(moorage.Anonymous()), config, config.Now(), records, names, txlog.New(records)}, nil
}

// Once sends a mutation with a key.
func (n *Instance) Once(ctx context.Context, key catalog.Key,
	mutate func(ctx context.Context, keyed catalog.Verbs) (Reply, error)) (Reply, error) {
	return mutate(ctx, n.For(moorage.Anonymous(), &key, nil))
}

// Named returns n for a caller with this name.
func (n *Instance) Named(name string) *Instance {
	other := *n
	other.Catalog = n.As(moorage.Caller{Name: name})
	return &other
}

// Reply is the answer to a mutation. At most one field is set.
type Reply struct {
	Table      *catalog.Table
	View       *catalog.View
	Properties map[string]string
	Changed    *catalog.PropertiesResult
}

// KeyLife returns how long n honours a key.
func (n *Instance) KeyLife() time.Duration {
	return catalog.ChangeRetentionMin(n.Config.IdempotencyLifetime)
}

// PointerLocks returns the locks of pointers in the warehouse "w".
func PointerLocks(ids ...registry.ID) locks.Request {
	var request locks.Request
	for _, id := range ids {
		request.Writes = append(request.Writes, locks.Warehouse(Warehouse).Pointer(id.String()))
	}
	return request
}

// MarkDropping puts a namespace of the warehouse "w" into the state in which a node that dies
// during a drop leaves it.
func (n *Instance) MarkDropping(ctx context.Context, ns moorage.Namespace) error {
	path, err := n.Directory.Path(ctx, Warehouse, ns)
	if err != nil {
		return err
	}
	ident := moorage.Identifier{Warehouse: Warehouse, Namespace: ns}
	change, err := n.Ledger.NewChange(ctx, moorage.Anonymous(), string(gate.DropNamespace)+"-begin", ident)
	if err != nil {
		return err
	}
	marked, err := n.Directory.SetState(ctx, change, path, registry.StateDropping)
	if err == nil && marked == nil {
		return errors.New("another operation was faster")
	}
	return err
}

// Fixture is a catalog over stores in memory, with the warehouse "w" and the namespace "ns".
type Fixture struct {
	*Instance
	T      testing.TB
	Ctx    context.Context
	Clock  *testkit.Clock
	Store  registry.Store
	Files  storage.Store
	Locks  *locktest.Recorder
	Config catalog.Config
	Purges *purge.Worker // for PurgeAll
	// retention is the node's Retention.
	retention *retention.Retention
}

// Warehouse is the name of the warehouse of a fixture.
const Warehouse = "w"

// New returns a fixture. change may edit the configuration before the catalog is made.
func New(t testing.TB, change ...func(*catalog.Config)) *Fixture {
	t.Helper()
	clock := testkit.NewClock()
	files := memorystorage.New()
	recorder := locktest.NewRecorder(locks.NewLocal(locks.LocalConfig{}))
	random := testkit.NewBits(1)
	var config catalog.Config
	config = catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{
			Store: memoryregistry.NewWithClock(random, func() time.Time { return clockOf(config)() }),
			Now:   clock.Now, Random: random,
		}),
		Locks:       recorder,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	for _, f := range change {
		f(&config)
	}
	config.Store = registrytest.WellFormed(t, config.Store)
	kept := NewRetention(t, config)
	c, err := NewInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{c, t, t.Context(), clock, config.Store, files, recorder, config, NewPurger(t, c), kept}
	if _, err := c.Warehouses().Create(f.Ctx, warehouses.Spec{Name: Warehouse, Location: "file:///wh"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateNamespace(f.Ctx, Warehouse, moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// Allow adds allowed locations to a warehouse.
func (f *Fixture) Allow(warehouse string, locations ...string) {
	f.T.Helper()
	if len(locations) == 0 {
		return
	}
	_, err := f.Warehouses().Change(f.Ctx, warehouse, warehouses.Change{AllowLocations: locations})
	testkit.Must(f.T, err)
}

// Disallow removes all allowed locations from the record of a warehouse, even if tables are there.
// No request can do that.
func (f *Fixture) Disallow(warehouse string) {
	f.T.Helper()
	records, err := f.Store.Get(f.Ctx, registry.WarehouseKey(warehouse))
	testkit.Must(f.T, err)
	value, err := registry.Decode[registry.Warehouse](records[0])
	testkit.Must(f.T, err)
	value.AllowedLocations = nil
	Tamper(f).Put(records[0].Key, records[0].State, value)
}

// Schema is a schema with the columns id and name.
const Schema = `{"type":"struct","schema-id":0,"fields":[` +
	`{"id":1,"name":"id","required":false,"type":"long"},{"id":2,"name":"name","required":false,"type":"string"}]}`

// Create makes a table.
func (f *Fixture) Create(name string) *catalog.Table {
	f.T.Helper()
	table, err := f.CreateTable(f.Ctx, testkit.Ident(name), catalog.CreateTableRequest{Schema: []byte(Schema)})
	if err != nil {
		f.T.Fatalf("create %s: %v", name, err)
	}
	return table
}

// CommitRequest decodes a commit from JSON arrays.
func CommitRequest(t testing.TB, requirements, updates string) catalog.CommitRequest {
	t.Helper()
	r, err := Checked(metadata.DecodeRequirements, requirements)
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := Checked(metadata.DecodeUpdates, updates)
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return catalog.CommitRequest{Requirements: r, Updates: u}
}

// SetProperty returns a commit without requirements that sets one property.
func SetProperty(t testing.TB, key, value string) catalog.CommitRequest {
	t.Helper()
	return CommitRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, key, value))
}

// AppendSnapshot returns a commit that adds a snapshot on top of parent (0: none) and moves main to
// it.
func AppendSnapshot(t testing.TB, table *catalog.Table, id, parent, sequence int64) catalog.CommitRequest {
	t.Helper()
	requirement, parentMember := "null", ""
	if parent != 0 {
		requirement, parentMember = fmt.Sprint(parent), fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	return CommitRequest(t,
		fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q},
			{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}]`, table.Document.UUID(), requirement),
		fmt.Sprintf(`[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,
				"manifest-list":"%s/metadata/snap-%d.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
			id, parentMember, sequence, testkit.NewClock().Now().UnixMilli(), table.Document.Location(), id, id))
}

// WantKind fails the test unless err has the kind.
func WantKind(t testing.TB, err error, kind moorage.Kind) {
	t.Helper()
	if err == nil || moorage.KindOf(err) != kind {
		t.Fatalf("got error %v of kind %v, want kind %v", err, moorage.KindOf(err), kind)
	}
}

// checkerOf returns a checker for the store of c.
func checkerOf(c *Instance) *check.Checker {
	config := check.Config{Deps: c.Config.Deps, Files: c.Documents()}
	if c.Config.AbortPending {
		config.Opened = c.made
	}
	return check.New(config)
}

// Check checks the store of f.
func (f *Fixture) Check(ctx context.Context) (check.Report, error) {
	return checkerOf(f.Instance).Check(ctx)
}

// WantClean fails the test if Check finds a problem, or if an unfinished drop is left.
func (f *Fixture) WantClean() {
	f.T.Helper()
	WantClean(f.T, f.Instance)
	for _, table := range []registry.Table{registry.TableWarehouse, registry.TableNamespace} {
		err := f.Ledger.Scan(f.Ctx, table, "", "", func(record registry.Record) (bool, error) {
			if record.State == registry.StateDropping {
				f.T.Errorf("%s was left in the middle of a drop", record.Key)
			}
			return true, nil
		})
		if err != nil {
			f.T.Error(err)
		}
	}
}

// clockOf returns the clock of a catalog with configuration c.
func clockOf(c catalog.Config) func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// Checked decodes a part of a request like a server, which checks the whole body first.
func Checked[T any, S ~string | ~[]byte](decode func(jsontext.Checked) (T, error), raw S) (T, error) {
	sound, err := jsontext.Check([]byte(raw))
	if err != nil {
		var none T
		return none, err
	}
	return decode(sound)
}

var seedFlag = flag.Uint64("seed", 0, "seed of the random workloads; 0: a new one each time")

// NewSeed returns a seed for a test's random choices. The seed is printed if the test fails.
func NewSeed(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	return seed
}

// NoLocks returns a manager that grants every request at once.
func NoLocks() locks.Manager { return locks.GrantAll{} }

// WantClean fails the test unless Check finds nothing.
func WantClean(t testing.TB, c *Instance) {
	t.Helper()
	report, err := checkerOf(c).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(report.Problems, report.Unread...) {
		t.Errorf("check: %s", problem)
	}
}
