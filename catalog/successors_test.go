package catalog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/memory"
)

// inherited is a catalog with a table "old" at purgedTable that is dropped, to be purged, and a metadata file of another one that names some of its
// files.
type inherited struct {
	*fixture
	old  *purged
	logs *bytes.Buffer
}

// newInherited returns a catalog in which build makes the files of the old table, and of one with another uuid, of which only the old one is
// registered, and dropped.
func newInherited(t *testing.T, build func(old, copied *purged), change ...func(*Config)) *inherited {
	t.Helper()
	in := &inherited{logs: new(bytes.Buffer)}
	in.fixture = newFixture(t, append(change, func(c *Config) {
		c.AllowedLocations = []string{"file:///"}
		c.Logger = slog.New(slog.NewTextHandler(in.logs, nil))
	})...)
	in.old = newPurged(t, 2)
	in.old.store = in.files.(*memory.Store)
	copied := in.copied("copy")
	build(in.old, copied)
	in.old.document()
	copied.document()
	in.register("old", purgedMetadata)
	must(t, in.DropTable(in.ctx, ident("old"), DropOptions{Purge: true}))
	return in
}

// copied returns a table with another uuid at the same location, whose metadata file is called name.
func (in *inherited) copied(name string) *purged {
	other := newPurged(in.t, 2)
	other.store, other.uuid, other.metadata = in.old.store, "9c12d441-03fe-4693-9a96-a0705ddf69c2", copyOf(name)
	return other
}

func copyOf(name string) string { return purgedTable + "/metadata/" + name + ".metadata.json" }

func (in *inherited) register(name, location string) {
	in.t.Helper()
	_, err := in.RegisterTable(in.ctx, ident(name), RegisterRequest{MetadataLocation: location})
	must(in.t, err)
}

func (in *inherited) purge() {
	in.t.Helper()
	must(in.t, in.purgeAll(in.ctx))
	if records, err := in.store.List(in.ctx, registry.TableTask, "", "", 10); err != nil || len(records) > 0 {
		in.t.Errorf("tasks left: %d, %v; the log: %s", len(records), err, in.logs)
	}
	in.wantClean()
}

// wantLeft fails the test unless these files of the old table are left.
func (in *inherited) wantLeft(want ...string) {
	in.t.Helper()
	slices.Sort(want)
	if left := in.old.left(); !slices.Equal(left, want) {
		in.t.Errorf("left %q, want %q; the log: %s", left, want, in.logs)
	}
}

// twoSnapshots gives the old table two snapshots and the copy the first of them.
func twoSnapshots(old, copied *purged) {
	shared := old.manifest("m-shared.avro", old.data("a.parquet", "b.parquet")...)
	old.snapshot("snap-1.avro", shared)
	copied.snapshots = slices.Clone(old.snapshots)
	old.snapshot("snap-2.avro", shared, old.manifest("m-new.avro", old.data("c.parquet")...))
	old.statistics = append(old.statistics, old.file(purgedTable+"/metadata/1.stats", []byte("puff")), old.file(purgedTable+"/metadata/2.stats", []byte("puff")))
	copied.statistics = old.statistics[:1]
	old.log = append(old.log, old.file(purgedTable+"/metadata/00000.metadata.json", []byte("{}")), old.file(purgedTable+"/metadata/00001.metadata.json", []byte("{}")))
	copied.log = old.log[:1]
}

var sharedFiles = []string{"data/a.parquet", "data/b.parquet", "metadata/00000.metadata.json", "metadata/1.stats", "metadata/m-shared.avro", "metadata/snap-1.avro"}

// A purge leaves alone what a table names that lives in the location of the purged one by now, and nothing else.
func TestPurgeLeavesWhatSuccessorsName(t *testing.T) {
	t.Parallel()
	all := append([]string{"data/c.parquet", "metadata/00001.metadata.json", "metadata/00003.metadata.json", "metadata/2.stats", "metadata/m-new.avro", "metadata/snap-2.avro"}, sharedFiles...)
	for name, row := range map[string]struct {
		meanwhile func(in *inherited)
		want      []string
	}{
		"nobody": {func(*inherited) {}, nil},
		"a new table": {func(in *inherited) {
			_, err := in.CreateTable(in.ctx, ident("new"), CreateTableRequest{Schema: []byte(testSchema), Location: purgedTable})
			must(in.t, err)
		}, nil},
		"a copy":                               {func(in *inherited) { in.register("copy", copyOf("copy")) }, sharedFiles},
		"a copy, registered by its other name": {func(in *inherited) { in.register("copy", "file:"+copyOf("copy")[len("file://"):]) }, sharedFiles},
		"a copy that was dropped": {func(in *inherited) {
			in.register("copy", copyOf("copy"))
			must(in.t, in.DropTable(in.ctx, ident("copy"), DropOptions{}))
		}, sharedFiles},
		"a copy that has moved away": {func(in *inherited) {
			in.register("copy", copyOf("copy"))
			must(in.t, commitTable(ident("copy"), commitRequest(in.t, `[]`, `[{"action":"set-location","location":"file:///w/elsewhere"}]`))(in.ctx, in.Catalog))
		}, sharedFiles},
		"a copy that is purged too": {func(in *inherited) {
			in.register("copy", copyOf("copy"))
			must(in.t, in.DropTable(in.ctx, ident("copy"), DropOptions{Purge: true}))
		}, nil},
		"a copy that was unregistered": {func(in *inherited) {
			in.register("copy", copyOf("copy"))
			_, err := in.UnregisterTable(in.ctx, ident("copy"))
			must(in.t, err)
		}, nil},
		"a copy that cannot be read": {func(in *inherited) {
			in.register("copy", copyOf("copy"))
			must(in.t, in.files.Delete(in.ctx, purgedTable+"/metadata/m-shared.avro"))
		}, slices.DeleteFunc(slices.Clone(all), func(file string) bool { return file == "metadata/m-shared.avro" })},
		"a view": {func(in *inherited) {
			request := viewRequest("")
			request.Location = purgedTable
			_, err := in.CreateView(in.ctx, ident("view"), request)
			must(in.t, err)
		}, nil},
		"a table around it": {func(in *inherited) {
			in.leave("copy")
			_, err := in.CreateTable(in.ctx, ident("around"), CreateTableRequest{Schema: []byte(testSchema), Location: "file:///w"})
			must(in.t, err)
		}, all},
		"a table in it": {func(in *inherited) {
			in.leave("copy")
			_, err := in.CreateTable(in.ctx, ident("within"), CreateTableRequest{Schema: []byte(testSchema), Location: purgedTable + "/data"})
			must(in.t, err)
		}, []string{"data/a.parquet", "data/b.parquet", "data/c.parquet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInherited(t, twoSnapshots)
			row.meanwhile(in)
			in.purge()
			in.wantLeft(row.want...)
			if told := strings.Contains(in.logs.String(), "purge leaves"); len(row.want) > 0 && !told {
				t.Errorf("the log does not tell of it: %s", in.logs)
			}
		})
	}
}

// leave lets a table take the location and give it up again.
func (in *inherited) leave(name string) {
	in.t.Helper()
	in.register(name, copyOf(name))
	_, err := in.UnregisterTable(in.ctx, ident(name))
	must(in.t, err)
	must(in.t, in.sweepFolders(in.ctx))
}

// purgeHook is a storage that runs the hook before files are deleted.
type purgeHook struct {
	storage.Store
	before func(batch []string)
}

func (p *purgeHook) Delete(ctx context.Context, locations ...string) error {
	p.before(locations)
	return p.Store.Delete(ctx, locations...)
}

// Who comes to live in the location of a table whose purge is under way keeps what it names from then on.
func TestPurgeLooksBeforeEachBatch(t *testing.T) {
	t.Parallel()
	var in *inherited
	between := func() { in.register("copy", copyOf("copy")) }
	in = newInherited(t, func(old, copied *purged) {
		var many []string
		for i := range purgeBatchMax {
			many = append(many, fmt.Sprintf("%d.parquet", i))
		}
		first := old.manifest("m-1.avro", old.data(many...)...)
		old.snapshot("snap-1.avro", first)
		old.snapshot("snap-2.avro", first, old.manifest("m-2.avro", old.data("second.parquet")...))
		copied.snapshots = slices.Clone(old.snapshots)
		old.snapshot("snap-3.avro", old.manifest("m-3.avro", old.data("third.parquet")...))
	}, func(c *Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store {
			return &purgeHook{inner, func([]string) { // the first batch
				if between != nil {
					between()
					between = nil
				}
			}}
		})
	})
	in.purge()
	in.wantLeft("data/second.parquet", "metadata/m-1.avro", "metadata/m-2.avro", "metadata/snap-1.avro", "metadata/snap-2.avro")
}

// openHook is a storage that runs the hook before a file is read.
type openHook struct {
	storage.Store
	before func(location string)
}

func (o *openHook) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	o.before(location)
	return o.Store.Open(ctx, location)
}

// A successor that is purged itself while it is read keeps nothing, though its files are gone and nobody can tell any more what it named.
func TestPurgeBesidePurgeOfSuccessor(t *testing.T) {
	t.Parallel()
	var in *inherited
	opened := 0 // the old table's own purge, what the copy names, and the copy's purge read that list in turn
	overtake := func() {
		copied, err := in.resolve(in.ctx, aTable, ident("copy"))
		must(t, err)
		must(t, in.DropTable(in.ctx, ident("copy"), DropOptions{Purge: true}))
		records, err := in.store.Get(in.ctx, copied.record.Key)
		must(t, err)
		dropped, err := ledger.Decode[registry.Pointer](records[0])
		must(t, err)
		must(t, in.other(in.store).tryPurge(in.ctx, &duePurge{task: dropped.Task, pointer: dropped.ID}))
	}
	in = newInherited(t, twoSnapshots, func(c *Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store {
			return &openHook{inner, func(location string) {
				if strings.HasSuffix(location, "snap-1.avro") {
					if opened++; opened == 2 {
						overtake()
					}
				}
			}}
		})
	})
	in.register("copy", copyOf("copy"))
	in.purge()
	in.wantLeft()
}

// What a successor adds while a purge is under way is found by what is new in its versions, also where its owner writes the file anew.
func TestSuccessorsReadWhatIsNew(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"next", "copy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSuccessorsRead(t, name)
		})
	}
}

// testSuccessorsRead is TestSuccessorsReadWhatIsNew with a metadata file of that name for what is new.
func testSuccessorsRead(t *testing.T, name string) {
	opened := make(map[string]int)
	in := newInherited(t, twoSnapshots, func(c *Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store { return &countedOpens{inner, opened} })
	})
	in.register("copy", copyOf("copy"))
	next := in.copied(name)
	next.snapshots = slices.Clone(in.old.snapshots)
	pointer := in.pointerOf("old")
	_, dog := watch(in.ctx, purgeStallMax)
	defer dog.stop()
	others, err := newSuccessors(in.Catalog, in.log, pointer, dog)
	must(t, err)
	for n, step := range []struct {
		version string
		opened  []string // that no step before has
		keeps   map[string]bool
	}{
		{copyOf("copy"), []string{"snap-1.avro", "m-shared.avro"}, map[string]bool{"a": true, "c": false}},
		{copyOf("copy"), nil, map[string]bool{"a": true, "c": false}},
		{copyOf(name), []string{"snap-2.avro", "m-new.avro"}, map[string]bool{"a": true, "c": true}},
	} {
		if n == 2 {
			must(t, in.files.Delete(in.ctx, copyOf(name)))
			next.document()
		}
		_, err := in.RegisterTable(in.ctx, ident("copy"), RegisterRequest{MetadataLocation: step.version, Overwrite: true})
		must(t, err)
		clear(opened)
		must(t, others.look(in.ctx))
		var read []string
		for path, times := range opened {
			if name := path[strings.LastIndex(path, "/")+1:]; strings.HasSuffix(name, ".avro") {
				read = append(read, fmt.Sprint(name, " ", times))
			}
		}
		var want []string
		for _, name := range step.opened {
			want = append(want, name+" 1")
		}
		slices.Sort(read)
		slices.Sort(want)
		if !slices.Equal(read, want) {
			t.Errorf("%s: read %q, want %q", step.version, read, want)
		}
		for name, keeps := range step.keeps {
			if others.keeps(purgedTable+"/data/"+name+".parquet") != keeps {
				t.Errorf("%s: keeps %s: %t", step.version, name, !keeps)
			}
		}
	}
}

// pointerOf returns the pointer of a table that is dropped, marked as one whose purge has begun.
func (in *inherited) pointerOf(name string) registry.Pointer {
	in.t.Helper()
	records, err := in.store.List(in.ctx, registry.TableTask, "", "", 10)
	if err != nil || len(records) != 1 {
		in.t.Fatalf("tasks: %d, %v", len(records), err)
	}
	task, err := readTask(records[0])
	must(in.t, err)
	work, err := in.beginPurge(in.ctx, &duePurge{task: task.ID, pointer: task.Pointer})
	if must(in.t, err); work.pointer.Name != name {
		in.t.Fatalf("the pointer is that of %s", work.pointer.Name)
	}
	return work.pointer
}

// countedOpens is a storage that counts which files are read.
type countedOpens struct {
	storage.Store
	opened map[string]int
}

func (s *countedOpens) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	s.opened[location]++
	return s.Store.Open(ctx, location)
}

// That nobody else has a location of a table is seen with the reads that a purge makes anyway.
func TestPurgeRoundTrips(t *testing.T) {
	t.Parallel()
	var store *countingStore
	in := newInherited(t, twoSnapshots, func(c *Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	store.calls.Store(0)
	must(t, in.purgeAll(in.ctx))
	// The claims on purges, the tasks, and their pointers; the claim, read, taken and released; the pointer, and its mark; the warehouse;
	// each of six batches; the pointer, its claims, and their end.
	if took := store.calls.Load(); took != 3+3+2+1+6+3 {
		t.Errorf("%d calls of the store, want %d", took, 3+3+2+1+6+3)
	}
}
