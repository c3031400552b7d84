package check_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
)

// openMemPebble returns a store on a file system in memory.
func openMemPebble(t testing.TB) registry.Store {
	t.Helper()
	store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: rand.NewChaCha8([32]byte{2})})
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

// manyRecords makes records of every kind in the warehouse of f: the tables t and ns.inner.deep,
// the view v, and a dropped table that waits for its purge. It also makes a transaction that has
// just begun, and the outcome of an idempotency key. It returns the transaction's key.
func (f *fixture) manyRecords() (transaction registry.Key) {
	f.t.Helper()
	f.makeNamespace(testWarehouse, "ns", "inner")
	f.createAt(moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{"ns", "inner"}, Name: "deep"}, "")
	f.create("t")
	f.createView("v")
	f.create("gone")
	f.dropPurged("gone")
	key := catalog.Key{ID: "a", Warehouse: testWarehouse, Method: "POST", Path: "/v1/w/namespaces"}
	f.must(f.catalog.For(moorage.Anonymous(), &key, nil).CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"keyed"}, nil))
	return registry.TransactionKey(f.abandon().ID)
}

// faultElsewhere makes a table in another warehouse and deletes its metadata file. It returns the
// problem that Check must report.
func (f *fixture) faultElsewhere() (problem string) {
	f.t.Helper()
	f.must(f.catalog.Warehouses().Create(f.ctx, warehouses.Spec{Name: "w2", Location: "file:///wh2"}))
	f.makeNamespace("w2", "far")
	table := f.createAt(moorage.Identifier{Warehouse: "w2", Namespace: moorage.Namespace{"far"}, Name: "u"}, "")
	f.must(nil, f.files.Delete(f.ctx, table.MetadataLocation))
	return table.MetadataLocation + " is missing"
}

// legible lists records without which Check must still work, each with the problem to report if the
// record is unreadable.
var legible = []struct {
	name   string
	record func(f *fixture, transaction registry.Key) registry.Record
	says   string
}{
	{"warehouse", func(f *fixture, _ registry.Key) registry.Record {
		return f.get(registry.WarehouseKey(testWarehouse))
	}, "the warehouse w"},
	{"namespace", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableNamespace, "/ns", registry.StateLive)
	}, "the namespace ns;"},
	{"inner namespace", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableNamespace, "/inner", registry.StateLive)
	}, "the namespace ns.inner;"},
	{"pointer of a table", func(f *fixture, _ registry.Key) registry.Record { record, _ := f.recordOf("t"); return record }, "it is called ns.t;"},
	{"pointer of a view", func(f *fixture, _ registry.Key) registry.Record { record, _ := f.recordOf("v"); return record }, "it is called ns.v;"},
	{"pointer of a dropped table", func(f *fixture, _ registry.Key) registry.Record { record, _ := f.recordOf("gone"); return record }, "maybe a dropped one"},
	{"name", func(f *fixture, _ registry.Key) registry.Record { return f.entry() }, "the name of table w.ns.t ("},
	{"name of a view", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableEntry, "/v", registry.StateView)
	}, "the name of view w.ns.v ("},
	{"table-uuid", func(f *fixture, _ registry.Key) registry.Record {
		_, pointer := f.recordOf("t")
		return f.get(registry.UUIDKey(pointer.TableUUID))
	}, "the table-uuid of table w.ns.t ("},
	{"claim", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableLocation, "/t", registry.StateOwner)
	}, "the location of table w.ns.t ("},
	{"folder", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableLocation, "/wh/ns", registry.StateBelow)
	}, "the location of a table or view"},
	{"outcome", func(f *fixture, _ registry.Key) registry.Record {
		return f.record(registry.TableIdempotency, "", registry.StateNone)
	}, "has to check whether it happened"},
	{"transaction", func(f *fixture, transaction registry.Key) registry.Record { return f.get(transaction) }, "which is"},
	{"task", func(f *fixture, _ registry.Key) registry.Record {
		_, pointer := f.recordOf("gone")
		return f.get(registry.TaskKey(pointer.Task))
	}, "the purge of table w.ns.gone ("},
}

// An unreadable record counts as one problem, and does not hide others.
func TestCheckGoesOnBehindUnreadable(t *testing.T) {
	t.Parallel()
	// Once as a damaged record, and once as a record of a later version.
	damages := map[string]func(registry.Record) registry.Write{
		"no value": func(r registry.Record) registry.Write { return registry.Put(r.Key, r.State, []byte(`{"id":`)) },
		"no state": func(r registry.Record) registry.Write { return registry.Put(r.Key, 99, r.Value) },
	}
	stores := map[string]func(testing.TB) registry.Store{
		"memory": func(testing.TB) registry.Store { return memory.New(rand.NewChaCha8([32]byte{2})) },
		"pebble": openMemPebble,
	}
	for stored, open := range stores {
		for _, tt := range legible {
			for name, damage := range damages {
				t.Run(fmt.Sprintf("%s/%s/%s", stored, tt.name, name), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, func(c *catalog.Config) { c.Store = open(t) })
					transaction := f.manyRecords()
					f.wantClean()
					fault := f.faultElsewhere()
					record := tt.record(f, transaction)
					f.write(damage(record))
					report, err := f.Check(f.ctx)
					if err != nil {
						t.Fatal(err)
					}
					unread := slices.IndexFunc(report.Problems, func(problem string) bool {
						return strings.HasPrefix(problem, record.Key.String()) && strings.Contains(problem, "cannot be read: ") && strings.Contains(problem, tt.says)
					})
					missing := slices.IndexFunc(report.Problems, func(problem string) bool { return strings.HasSuffix(problem, fault) })
					if len(report.Problems) != 2 || unread < 0 || missing < 0 {
						t.Errorf("found\n%s\nwant one of %s with %q, and one with %q", strings.Join(report.Problems, "\n"), record.Key, tt.says, fault)
					}
					f.write(registry.Put(record.Key, record.State, record.Value))
					if report, err := f.Check(f.ctx); err != nil || len(report.Problems) != 1 {
						t.Errorf("with the record mended: %q (%v), want one problem", report.Problems, err)
					}
				})
			}
		}
	}
}

// A name or location that several tables had is attributed to its present holder, or else to its
// last one. Every look must do so, because problems that two looks describe differently are not
// reported.
func TestCheckTellsHeirs(t *testing.T) {
	t.Parallel()
	for name, dropped := range map[string]bool{"live": false, "dropped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			drop := func() {
				if dropped {
					f.clock.Advance(time.Minute)
				}
				f.drop("t", false)
			}
			create := func() {
				f.createAt(moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t"}, "file:///wh/ns/t")
			}
			for range 8 {
				create()
				drop()
			}
			create()
			_, pointer := f.pointer()
			damaged := []registry.Record{f.record(registry.TableLocation, "/t", registry.StateOwner)}
			if !dropped {
				damaged = append(damaged, f.entry())
			} else {
				drop()
			}
			for _, record := range damaged {
				f.write(registry.Put(record.Key, record.State, nil))
			}
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != len(damaged) {
				t.Errorf("found %q (%v), want %d", report.Problems, err, len(damaged))
			}
			for _, problem := range report.Problems {
				if want := fmt.Sprintf(" of table w.ns.t (%s); ", pointer.ID); !strings.Contains(problem, want) {
					t.Errorf("found %q, want %q in it", problem, want)
				}
			}
		})
	}
}

// A name without a table is reported by the name.
func TestCheckTellsNameOfNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	entry, claim := f.entry(), f.record(registry.TableLocation, "/t", registry.StateOwner)
	record, pointer := f.pointer()
	f.write(registry.Put(record.Key, record.State, nil), registry.Put(entry.Key, entry.State, nil), registry.Put(claim.Key, claim.State, nil),
		registry.Put(registry.UUIDKey(pointer.TableUUID), registry.StateNone, nil))
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 4 {
		t.Fatalf("found %q (%v), want 4", report.Problems, err)
	}
	for i, want := range []string{"(the name of ns.t; ", "(the location of a table or view; ", "(a table or view, maybe a dropped one; ", "(the table-uuid of a table or view; "} {
		if !strings.Contains(report.Problems[i], want) {
			t.Errorf("found %q, want %q in it", report.Problems[i], want)
		}
	}
}

// In a damaged store, a namespace may be inside itself.
func TestCheckOfCircle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	record := f.record(registry.TableNamespace, "/ns", registry.StateLive)
	namespace, err := registry.Decode[registry.Namespace](record)
	if err != nil {
		t.Fatal(err)
	}
	warehouse, err := registry.Decode[registry.Warehouse](f.get(registry.WarehouseKey(testWarehouse)))
	if err != nil {
		t.Fatal(err)
	}
	f.remove(record)
	f.put(registry.NamespaceKey(warehouse.ID, namespace.ID, "ns"), record.State, namespace)
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], `is in namespace ""`) {
		t.Errorf("found %q (%v), want that of the table", report.Problems, err)
	}
}

// Values that are JSON, but not valid for the record.
func TestCheckFindsForeignValues(t *testing.T) {
	t.Parallel()
	for _, tt := range legible {
		if tt.name == "folder" || tt.name == "outcome" { // these need no id
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			record := tt.record(f, f.manyRecords())
			f.write(registry.Put(record.Key, record.State, []byte(`{}`)))
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != 1 || !strings.HasPrefix(report.Problems[0], record.Key.String()) || !strings.Contains(report.Problems[0], "cannot be read: ") {
				t.Errorf("found %q (%v), want one problem of %s", report.Problems, err, record.Key)
			}
		})
	}
}

// Check finds problems next to an unreadable record that are not caused by it.
func TestCheckBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.manyRecords()
	for _, name := range []string{"gone", "hidden"} {
		f.makeNamespace(testWarehouse, name)
		f.createAt(moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{name}, Name: "in" + name}, "")
	}
	f.remove(f.record(registry.TableNamespace, "/gone", registry.StateLive))
	for _, record := range []registry.Record{f.record(registry.TableNamespace, "/hidden", registry.StateLive), f.entry()} {
		f.write(registry.Put(record.Key, record.State, nil))
	}
	f.remove(f.record(registry.TableEntry, "/v", registry.StateView))
	report, err := f.Check(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"table w.gone.ingone (", "view w.ns.v (", "namespace/", "entry/"} {
		n := 0
		for _, problem := range report.Problems {
			if strings.HasPrefix(problem, want) {
				n++
			}
		}
		if n != 1 || len(report.Problems) != 4 {
			t.Errorf("%d problems begin with %q, want 1 of 4: %q", n, want, report.Problems)
		}
	}
}

// An unreadable namespace may be the parent of others in its warehouse, but not in other
// warehouses.
func TestCheckFindsOrphansBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.faultElsewhere()
	far := f.record(registry.TableNamespace, "/far", registry.StateLive)
	f.write(registry.Put(far.Key, far.State, nil))
	f.makeNamespace(testWarehouse, "ns", "inner")
	f.remove(f.record(registry.TableNamespace, "/ns", registry.StateLive))
	report, err := f.Check(f.ctx)
	if err != nil || !slices.ContainsFunc(report.Problems, func(problem string) bool { return strings.HasPrefix(problem, "namespace inner (") }) {
		t.Errorf("found %q (%v), want the namespace without a parent", report.Problems, err)
	}
}

// If the record of a warehouse is unreadable, it is unknown how to reach its files.
func TestCheckLeavesFilesOfUnreadableWarehouse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.files.Delete(f.ctx, f.create("t").MetadataLocation); err != nil {
		t.Fatal(err)
	}
	record := f.get(registry.WarehouseKey(testWarehouse))
	f.write(registry.Put(record.Key, record.State, nil))
	if report, err := f.Check(f.ctx); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "(the warehouse w; ") {
		t.Errorf("found %q (%v), want the warehouse", report.Problems, err)
	}
}

// listless is a store that lists no records of one table.
type listless struct {
	registry.Store
	table registry.Table
}

var errListless = errors.New("the store is away")

func (s listless) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == s.table {
		return nil, errListless
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// A store that does not answer leads to an error of Check, not to a problem in the report.
func TestCheckOfAbsentStore(t *testing.T) {
	t.Parallel()
	for _, table := range registry.Tables() {
		switch table { // tables that Check does not read
		case registry.TableChange, registry.TableCursor, registry.TableAssignment, registry.TableFormat,
			registry.TablePolicy, registry.TableSecret,
			registry.TableMaintenancePolicy, registry.TableSchedule, registry.TableDue, registry.TableJob, registry.TableRun, registry.TableLease:
			continue
		}
		f := newFixture(t)
		report, err := f.over(listless{f.store, table}, time.Time{}).Check(f.ctx)
		if wantKind(t, err, moorage.KindUnavailable); !errors.Is(err, errListless) || len(report.Problems) > 0 {
			t.Errorf("%s: %q (%v)", table, report.Problems, err)
		}
	}
}
