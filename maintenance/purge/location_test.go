package purge_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/memory"
)

// dropped is a catalog in which the table "old" at purgedTable was dropped with a purge.
type dropped struct {
	*fixture
	old  *purged
	logs *bytes.Buffer
}

// newDropped returns such a catalog. build makes the files of the table.
func newDropped(t *testing.T, build func(old *purged), change ...func(*catalog.Config)) *dropped {
	t.Helper()
	in := &dropped{logs: new(bytes.Buffer)}
	in.fixture = newFixture(t, append(change, func(c *catalog.Config) {
		c.Logger = slog.New(slog.NewTextHandler(in.logs, nil))
	})...)
	_, err := in.Warehouses().Change(in.ctx, "w", warehouses.Change{AllowLocations: []string{"file:///"}})
	must(t, err)
	in.old = newPurged(t, 2)
	in.old.store = in.files.(*memory.Store)
	build(in.old)
	in.old.document()
	_, err = in.RegisterTable(in.ctx, ident("old"), catalog.RegisterRequest{MetadataLocation: purgedMetadata})
	must(t, err)
	must(t, in.DropTable(in.ctx, ident("old"), catalog.DropOptions{Purge: true}))
	return in
}

func (in *dropped) purge() {
	in.t.Helper()
	must(in.t, in.purgeAll(in.ctx))
	if records, err := in.store.List(in.ctx, registry.TableTask, "", "", 10); err != nil || len(records) > 0 {
		in.t.Errorf("tasks left: %d, %v; the log: %s", len(records), err, in.logs)
	}
	in.wantClean()
}

// wantLeft fails the test unless these files of the old table are left.
func (in *dropped) wantLeft(want ...string) {
	in.t.Helper()
	slices.Sort(want)
	if left := in.old.left(); !slices.Equal(left, want) {
		in.t.Errorf("left %q, want %q; the log: %s", left, want, in.logs)
	}
}

// twoSnapshots gives the table two snapshots, and every other kind of file that it can refer to.
func twoSnapshots(old *purged) {
	shared := old.manifest("m-shared.avro", old.data("a.parquet", "b.parquet")...)
	old.snapshot("snap-1.avro", shared)
	old.snapshot("snap-2.avro", shared, old.manifest("m-new.avro", old.data("c.parquet")...))
	old.statistics = append(old.statistics, old.file(purgedTable+"/metadata/1.stats", []byte("puff")), old.file(purgedTable+"/metadata/2.stats", []byte("puff")))
	old.log = append(old.log, old.file(purgedTable+"/metadata/00000.metadata.json", []byte("{}")), old.file(purgedTable+"/metadata/00001.metadata.json", []byte("{}")))
}

// An earlier version of the server may have given a location to another table while its purge was
// pending. The files there stay.
func TestPurgeLeavesALocationThatPassedOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		record func(claim registry.Record) registry.Write
		begun  bool // the location is given away with the first batch
		want   []string
	}{
		"to another": {record: func(claim registry.Record) registry.Write {
			value, err := registry.Encode(registry.LocationClaim{Pointer: registry.ID{9}})
			must(t, err)
			return registry.Put(claim.Key, registry.StateOwner, value)
		}, want: all()},
		"to another, in the midst": {begun: true, record: func(claim registry.Record) registry.Write {
			value, err := registry.Encode(registry.LocationClaim{Pointer: registry.ID{9}})
			must(t, err)
			return registry.Put(claim.Key, registry.StateOwner, value)
		}, want: slices.DeleteFunc(all(), func(file string) bool { return strings.HasPrefix(file, "data/") })},
		"to one that is gone": {record: func(claim registry.Record) registry.Write { return registry.Delete(claim.Key) }, want: all()},
		"to one around one within": {record: func(claim registry.Record) registry.Write {
			value, err := registry.Encode(registry.LocationClaim{})
			must(t, err)
			return registry.Put(claim.Key, registry.StateBelow, value)
		}, want: all()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := func() {}
			in := newDropped(t, twoSnapshots, func(c *catalog.Config) {
				var once sync.Once
				wrapStorage(c, func(inner storage.Store) storage.Store {
					return &hookedDeletes{inner, func() { once.Do(func() { first() }) }}
				})
			})
			pass := func() {
				records, err := in.store.Get(in.ctx, registry.LocationKey(purgedTable))
				must(t, err)
				in.write(row.record(records[0]))
			}
			if row.begun {
				first = pass
			} else {
				pass()
			}
			must(t, in.purgeAll(in.ctx))
			in.wantLeft(row.want...)
			if !strings.Contains(in.logs.String(), "purge leaves files in a location that belongs to another table now") {
				t.Errorf("the log does not tell of it: %s", in.logs)
			}
			if records, err := in.store.List(in.ctx, registry.TableTask, "", "", 10); err != nil || len(records) > 0 {
				t.Errorf("tasks left: %d, %v; the log: %s", len(records), err, in.logs)
			}
		})
	}
}

// all returns the files of the old table.
func all() []string {
	return []string{
		"data/a.parquet", "data/b.parquet", "data/c.parquet", "metadata/00000.metadata.json", "metadata/00001.metadata.json",
		"metadata/00003.metadata.json", "metadata/1.stats", "metadata/2.stats", "metadata/m-new.avro", "metadata/m-shared.avro",
		"metadata/snap-1.avro", "metadata/snap-2.avro",
	}
}

// Checking that the locations still belong to the table takes no additional reads.
func TestPurgeRoundTrips(t *testing.T) {
	t.Parallel()
	var store *countingStore
	in := newDropped(t, twoSnapshots, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	store.calls.Store(0)
	must(t, in.purgeAll(in.ctx))
	// 4: the assignments, the waiting purges, the tasks, and their pointers. 3: the assignment is
	// read, taken and released. 2: the pointer, and its mark. 2: the table's jobs, and the
	// warehouse. 6: one for each batch. 4: the pointer, its jobs, its claims, and their end.
	if took := store.calls.Load(); took != 4+3+2+2+6+4 {
		t.Errorf("%d calls of the store, want %d", took, 4+3+2+2+6+4)
	}
}
