package catalog_test

import (
	"context"
	"errors"
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

type clock = testkit.Clock

var newClock = testkit.NewClock

type lockedRandom = testkit.Bits

var newLockedRandom = testkit.NewBits

// instance is the catalog of one node. Beside it are parts over the same ports, by which a test
// reads and writes records. They share nothing with those of the catalog.
type instance struct {
	*catalog.Catalog
	config       catalog.Config // with the defaults that tests need
	made         time.Time
	ledger       *ledger.Ledger
	directory    *directory.Directory
	transactions *txlog.Log
}

// newInstance returns an instance that is made of config.
func newInstance(config catalog.Config) (*instance, error) {
	config.Deps = registrytest.LedgerDeps(config.Deps.Config) // of the store that the test has put there
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
	return &instance{c.As(moorage.Anonymous()), config, config.Now(), records, names, txlog.New(records)}, nil
}

// once sends a mutation with a key.
func (n *instance) once(ctx context.Context, key catalog.Key,
	mutate func(ctx context.Context, keyed catalog.Verbs) (reply, error)) (reply, error) {
	return mutate(ctx, n.For(moorage.Anonymous(), &key, nil))
}

// as returns n as a caller of this name has it.
func (n *instance) as(name string) *instance {
	other := *n
	other.Catalog = n.As(moorage.Caller{Name: name})
	return &other
}

// reply is what a mutation answered. At most one member is set.
type reply struct {
	Table      *catalog.Table
	View       *catalog.View
	Properties map[string]string
	Changed    *catalog.PropertiesResult
}

// nothing is a mutation that succeeds without an effect, and has nothing to answer.
func nothing(ctx context.Context, c catalog.Verbs) (reply, error) {
	_, err := c.UpdateNamespaceProperties(ctx, testWarehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{})
	return reply{}, err
}

// refusal is a mutation that is refused for this reason, before it looks at anything.
func refusal(why error) func(ctx context.Context, c catalog.Verbs) (reply, error) {
	return func(ctx context.Context, c catalog.Verbs) (reply, error) {
		return reply{}, c.Refuse(ctx, gate.DropTable, ident("t"), why)
	}
}

// keyLife returns how long n honours a key.
func (n *instance) keyLife() time.Duration {
	return catalog.ChangeRetentionMin(n.config.IdempotencyLifetime)
}

// pointerLocks are the locks of pointers of the warehouse "w".
func pointerLocks(ids ...registry.ID) locks.Request {
	var request locks.Request
	for _, id := range ids {
		request.Writes = append(request.Writes, locks.Warehouse(testWarehouse).Pointer(id.String()))
	}
	return request
}

// markDropping leaves a namespace of the warehouse "w" as a node does that dies while it drops it.
func (n *instance) markDropping(ctx context.Context, ns moorage.Namespace) error {
	path, err := n.directory.Path(ctx, testWarehouse, ns)
	if err != nil {
		return err
	}
	ident := moorage.Identifier{Warehouse: testWarehouse, Namespace: ns}
	change, err := n.ledger.NewChange(ctx, moorage.Anonymous(), string(gate.DropNamespace)+"-begin", ident)
	if err != nil {
		return err
	}
	marked, err := n.directory.SetState(ctx, change, path, registry.StateDropping)
	if err == nil && marked == nil {
		return errors.New("another operation was faster")
	}
	return err
}

// fixture is a catalog over stores in memory, with the warehouse "w" and the namespace "ns".
type fixture struct {
	*instance
	t      testing.TB
	ctx    context.Context
	clock  *clock
	store  registry.Store
	files  storage.Store
	locks  *locktest.Recorder
	config catalog.Config
	purges *purge.Worker // for purgeAll
	// retention is what the node runs.
	retention *retention.Retention
}

const testWarehouse = "w"

// newFixture returns a fixture; change may set other parts before the catalog is made.
func newFixture(t testing.TB, change ...func(*catalog.Config)) *fixture {
	t.Helper()
	clock := newClock()
	files := memorystorage.New()
	recorder := locktest.NewRecorder(locks.NewLocal(locks.LocalConfig{}))
	random := newLockedRandom(1)
	var config catalog.Config
	config = catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: memoryregistry.NewWithClock(random, func() time.Time { return clockOf(config)() }), Now: clock.Now, Random: random}),
		Locks:       recorder,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	for _, f := range change {
		f(&config)
	}
	config.Store = registrytest.WellFormed(t, config.Store)
	kept := newRetention(t, config)
	c, err := newInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{c, t, t.Context(), clock, config.Store, files, recorder, config, newPurger(t, c), kept}
	if _, err := c.Warehouses().Create(f.ctx, warehouses.Spec{Name: testWarehouse, Location: "file:///wh"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

var ident = testkit.Ident

// allow adds allowed locations to a warehouse.
func (f *fixture) allow(warehouse string, locations ...string) {
	f.t.Helper()
	if len(locations) == 0 {
		return
	}
	_, err := f.Warehouses().Change(f.ctx, warehouse, warehouses.Change{AllowLocations: locations})
	must(f.t, err)
}

// disallow takes all allowed locations from the record of a warehouse, whatever lives there. No
// request can do that.
func (f *fixture) disallow(warehouse string) {
	f.t.Helper()
	records, err := f.store.Get(f.ctx, registry.WarehouseKey(warehouse))
	must(f.t, err)
	value, err := registry.Decode[registry.Warehouse](records[0])
	must(f.t, err)
	value.AllowedLocations = nil
	tampering{f}.put(records[0].Key, records[0].State, value)
}

const testSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"},{"id":2,"name":"name","required":false,"type":"string"}]}`

func (f *fixture) create(name string) *catalog.Table {
	f.t.Helper()
	table, err := f.CreateTable(f.ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	if err != nil {
		f.t.Fatalf("create %s: %v", name, err)
	}
	return table
}

// request decodes a commit from JSON arrays.
func commitRequest(t testing.TB, requirements, updates string) catalog.CommitRequest {
	t.Helper()
	r, err := checked(metadata.DecodeRequirements, requirements)
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := checked(metadata.DecodeUpdates, updates)
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return catalog.CommitRequest{Requirements: r, Updates: u}
}

// setProperty returns a commit without requirements that sets one property.
func setProperty(t testing.TB, key, value string) catalog.CommitRequest {
	t.Helper()
	return commitRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, key, value))
}

// appendSnapshot returns a commit that adds a snapshot on top of parent (0: none) and moves main to
// it.
func appendSnapshot(t testing.TB, table *catalog.Table, id, parent, sequence int64) catalog.CommitRequest {
	t.Helper()
	requirement, parentMember := "null", ""
	if parent != 0 {
		requirement, parentMember = fmt.Sprint(parent), fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	return commitRequest(t,
		fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}]`, table.Document.UUID(), requirement),
		fmt.Sprintf(`[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s/metadata/snap-%d.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
			id, parentMember, sequence, newClock().Now().UnixMilli(), table.Document.Location(), id, id))
}

// wantKind fails the test unless err has the kind.
func wantKind(t testing.TB, err error, kind moorage.Kind) {
	t.Helper()
	if err == nil || moorage.KindOf(err) != kind {
		t.Fatalf("got error %v of kind %v, want kind %v", err, moorage.KindOf(err), kind)
	}
}

// checkerOf returns what checks the store of c.
func checkerOf(c *instance) *check.Checker {
	config := check.Config{Deps: c.config.Deps, Files: c.Documents()}
	if c.config.AbortPending {
		config.Opened = c.made
	}
	return check.New(config)
}

// Check checks the store of f.
func (f *fixture) Check(ctx context.Context) (check.Report, error) {
	return checkerOf(f.instance).Check(ctx)
}

// wantClean fails the test unless Check finds nothing, and nothing is left in the middle of a drop.
func (f *fixture) wantClean() {
	f.t.Helper()
	wantClean(f.t, f.instance)
	for _, table := range []registry.Table{registry.TableWarehouse, registry.TableNamespace} {
		err := f.ledger.Scan(f.ctx, table, "", "", func(record registry.Record) (bool, error) {
			if record.State == registry.StateDropping {
				f.t.Errorf("%s was left in the middle of a drop", record.Key)
			}
			return true, nil
		})
		if err != nil {
			f.t.Error(err)
		}
	}
}

// clockOf returns the clock of a catalog that is made of c.
func clockOf(c catalog.Config) func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// checked decodes a part of a request as a server does, which checks all of the body first.
func checked[T any, S ~string | ~[]byte](decode func(jsontext.Checked) (T, error), raw S) (T, error) {
	sound, err := jsontext.Check([]byte(raw))
	if err != nil {
		var none T
		return none, err
	}
	return decode(sound)
}
