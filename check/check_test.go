package check_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
)

// damages lists the faults that Check looks for. Each damages a store, and Check must then report a
// problem.
var damages = []struct {
	name   string
	damage func(f *fixture)
	want   string // part of a problem
}{
	{"metadata file gone", func(f *fixture) {
		_, pointer := f.pointer()
		if err := f.files.Delete(f.ctx, pointer.MetadataLocation); err != nil {
			f.t.Fatal(err)
		}
	}, ".metadata.json is missing"},
	{"metadata file of another table", func(f *fixture) {
		f.change(func(p *registry.Pointer) { p.MetadataLocation = f.create("u").MetadataLocation })
	}, "the metadata file has the table-uuid"},
	{"metadata file that is none", func(f *fixture) {
		const location = "file:///wh/ns/t/metadata/00009-x.metadata.json"
		if err := f.files.Create(f.ctx, location, []byte("{")); err != nil {
			f.t.Fatal(err)
		}
		f.change(func(p *registry.Pointer) { p.MetadataLocation = location })
	}, "Cannot parse"},
	{"metadata file of a view gone", func(f *fixture) {
		if err := f.files.Delete(f.ctx, f.createView("v").MetadataLocation); err != nil {
			f.t.Fatal(err)
		}
	}, "view w.ns.v ("},
	{"table called a view", func(f *fixture) {
		entry := f.entry()
		f.write(registry.Put(entry.Key, registry.StateView, entry.Value))
	}, "of a view names an object of another kind"},
	{"no name", func(f *fixture) { f.remove(f.entry()) }, "has 0 names"},
	{"two names", func(f *fixture) {
		entry := f.entry()
		f.write(registry.Put(registry.Key{Table: registry.TableEntry, ID: entry.Key.ID + "2"}, entry.State, entry.Value))
	}, "names a table that is called"},
	{"name in the wrong shard", func(f *fixture) {
		_, pointer := f.pointer()
		f.put(f.entry().Key, registry.StateTable, registry.Entry{Pointer: pointer.ID, Shard: registry.Shard("t") ^ 1})
	}, "is in the wrong shard"},
	{"name of nothing", func(f *fixture) { record, _ := f.pointer(); f.remove(record) }, "names a table that does not exist"},
	{"name of a dropped table", func(f *fixture) {
		record, pointer := f.pointer()
		f.put(record.Key, registry.StateDropped, pointer)
	}, "names a table that is dropped"},
	{"namespace gone", func(f *fixture) {
		f.remove(f.record(registry.TableNamespace, "/ns", registry.StateLive))
	}, `is in namespace ""`},
	{"parent gone", func(f *fixture) {
		f.makeNamespace(testWarehouse, "ns", "inner")
		f.remove(f.record(registry.TableNamespace, "/ns", registry.StateLive))
	}, "namespace inner"},
	{"table-uuid of another table", func(f *fixture) {
		f.change(func(p *registry.Pointer) { p.TableUUID = "00000000-0000-4000-8000-000000000000" })
	}, "is claimed by a table that does not have it"},
	{"table-uuid that is free", func(f *fixture) {
		f.remove(f.record(registry.TableUUID, "", registry.StateNone))
	}, "does not hold its table-uuid"},
	{"claim that the table does not know", func(f *fixture) {
		f.change(func(p *registry.Pointer) { p.Claims = nil })
	}, "is claimed by a table that does not know of it"},
	{"claim gone", func(f *fixture) {
		f.remove(f.record(registry.TableLocation, "/t", registry.StateOwner))
	}, "does not hold its claim"},
	{"tombstone without the record of its location", func(f *fixture) {
		f.put(registry.TombstoneKey("file:///wh/ns/gone"), registry.StateNone, registry.Tombstone{How: registry.EndedUnregister, Lasting: true})
	}, "a claim around it could miss it"},
	{"tombstone that cannot be read", func(f *fixture) {
		f.write(registry.Put(registry.TombstoneKey("file:///wh/ns/gone"), registry.StateNone, []byte("{")))
	}, "cannot be read"},
	{"labels of nothing", func(f *fixture) {
		f.put(registry.LabelKey(registry.ID{1}), registry.StateNone, registry.Labels{Object: map[string]string{"a": "b"}})
	}, "holds labels that no table or view names"},
	{"labels in another version", func(f *fixture) {
		_, pointer := f.pointer()
		f.put(registry.LabelKey(pointer.ID), registry.StateNone, registry.Labels{Object: map[string]string{"a": "b"}})
	}, "holds labels that no table or view names"},
	{"labels gone", func(f *fixture) {
		f.change(func(p *registry.Pointer) { p.Labels = registry.ID{1} })
	}, "names labels that do not exist"},
	{"labels that cannot be read", func(f *fixture) {
		_, pointer := f.pointer()
		f.write(registry.Put(registry.LabelKey(pointer.ID), registry.StateNone, []byte("{")))
	}, "which loads leave out"},
	{"tables within each other", func(f *fixture) {
		outer := f.record(registry.TableLocation, "/ns", registry.StateBelow)
		f.create("u")
		record, inner := f.recordOf("u")
		inner.Claims = append(inner.Claims, outer.Key.ID)
		f.put(record.Key, registry.StateLive, inner)
		f.put(outer.Key, registry.StateOwner, registry.LocationClaim{Pointer: inner.ID})
	}, "lies within that of another table"},
	{"task of nothing", func(f *fixture) {
		f.put(registry.TaskKey(registry.ID{1}), registry.StateNone, registry.Task{ID: registry.ID{1}, Kind: registry.TaskPurge})
	}, "belongs to no dropped table"},
	{"task of a dropped table gone", func(f *fixture) {
		f.remove(f.dropPurged("t"))
	}, "is dropped and awaits task/"},
	{"task that cannot be read", func(f *fixture) {
		f.write(registry.Put(registry.TaskKey(registry.ID{1}), registry.StateNone, []byte("{")))
	}, "task/01000000000000000000000000000000 cannot be read"},
	{"blocked task", func(f *fixture) {
		f.put(registry.TaskKey(registry.ID{1}), registry.StateBlocked, registry.Task{ID: registry.ID{1}, Kind: registry.TaskPurge, LastError: "no disk"})
	}, "no disk"},
	{"transaction that nobody ends", func(f *fixture) {
		f.abandon()
		f.clock.Advance(recoveryGrace)
	}, "is pending, and its deadline was 2026-11-01T11:59:00Z"},
	{"transaction that nobody cleans up after", func(f *fixture) {
		f.abandonCommitted()
		f.clock.Advance(recoveryGrace)
	}, "is committed, and its deadline was"},
	{"transaction that was given up", func(f *fixture) {
		entry := f.abandon()
		f.put(registry.TaskKey(entry.ID), registry.StateBlocked, registry.Task{ID: entry.ID, Kind: registry.TaskRecovery, Attempts: 50, LastError: "no disk"})
	}, "is blocked after 50 attempts: no disk"},
}

// A transaction is not a problem before its deadline, while workers may still be ending it, or if
// no process had the store open.
func TestCheckLeavesTransactionsTime(t *testing.T) {
	t.Parallel()
	for name, abortPending := range map[string]bool{"shared store": false, "store of one process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			opened := func() (at time.Time) {
				if abortPending {
					at = f.clock.Now()
				}
				return at
			}
			f.Checker = f.over(f.store, opened())
			f.create("t")
			entry := f.abandon()
			f.clock.Advance(recoveryGrace - time.Minute)
			f.wantClean()
			f.clock.Advance(48 * time.Hour)
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != 1 {
				t.Errorf("problems after two days: %q (%v), want one", report.Problems, err)
			}
			report, err = f.over(f.store, opened()).Check(f.ctx)
			if found := len(report.Problems) > 0; err != nil || found == abortPending {
				t.Errorf("problems that a new process finds: %q (%v)", report.Problems, err)
			}
			f.must(nil, f.transactions().Finish(f.ctx, entry))
			f.wantClean()
		})
	}
}

// Check finds each kind of damage that it must find.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			f.wantClean()
			tt.damage(f)
			report, err := f.Check(f.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Problems, func(problem string) bool { return strings.Contains(problem, tt.want) }) {
				t.Errorf("found %q, want one with %q", report.Problems, tt.want)
			}
		})
	}
}

// Check reports that a warehouse does not allow a table's location. It still reads the table's file
// there.
func TestCheckReportsWhatWasAllowedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(f.catalog.Warehouses().Change(f.ctx, testWarehouse, warehouses.Change{AllowLocations: []string{"file:///extra"}}))
	table := f.createAt(ident("t"), "file:///extra/t")
	f.wantClean()
	record := f.get(registry.WarehouseKey(testWarehouse)) // no request removes a location with tables
	warehouse, err := registry.Decode[registry.Warehouse](record)
	f.must(warehouse, err)
	warehouse.AllowedLocations = nil
	f.put(record.Key, record.State, warehouse)
	f.catalog = f.newCatalog()
	f.Checker = f.over(f.store, time.Time{})
	f.wantProblem("warehouse w does not allow its location, so loads of it are refused")
	_, err = f.catalog.LoadTable(f.ctx, ident("t"))
	wantKind(t, err, moorage.KindForbidden)
	if message := moorage.MessageOf(err); !strings.Contains(message, "--allow-location") || !strings.Contains(message, "ns.t") {
		t.Errorf("the load is refused with %q", message)
	}
	f.must(nil, f.files.Delete(f.ctx, table.MetadataLocation))
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 2 || !strings.Contains(strings.Join(report.Problems, " "), "is missing") {
		t.Errorf("without its file: %q (%v), want two problems", report.Problems, err)
	}
}

// A storage that does not answer, or refuses all reads, gets only a few calls, and is not a problem
// of the store. Other problems are still reported.
func TestCheckAsksAStorageOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault error
		asked int // times
	}{
		{"no answer", storage.ErrUnavailable, 1},
		{"no credentials", storage.ErrNoCredentials, 1},
		{"refused", errors.New("403 access denied"), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			away := &away{fault: tt.fault}
			f := newFixture(t, func(c *catalog.Config) {
				open := c.OpenStorage
				c.OpenStorage = func(place storage.Place) (storage.Store, error) {
					store, err := open(place)
					return awayStore{Store: store, away: away}, err
				}
			})
			for i := range 20 {
				f.create(fmt.Sprintf("t%d", i))
			}
			f.catalog = f.newCatalog() // with empty caches
			f.Checker = f.over(f.store, time.Time{})
			f.wantClean()
			f.create("t")
			f.remove(f.entry()) // a problem, so that there are two looks
			away.is.Store(true)
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "has 0 names") {
				t.Errorf("problems %q (%v), want that a table has no name", report.Problems, err)
			}
			if len(report.Unread) != 1 || !strings.Contains(report.Unread[0], "21 files at file:///, of warehouse w: ") ||
				!strings.Contains(report.Unread[0], tt.fault.Error()) {
				t.Errorf("not looked at: %q, want 21 files and %q", report.Unread, tt.fault)
			}
			if asked := int(away.asked.Load()); asked != tt.asked {
				t.Errorf("the storage was asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}

// A dropped table with missing files is not a problem, because some engines delete the files
// themselves.
func TestCheckAsksNothingOfDroppedTables(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	f.drop("t", false)
	f.must(nil, f.files.Delete(f.ctx, table.MetadataLocation))
	f.wantClean()
}
