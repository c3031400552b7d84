package catalog

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
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

// claimAt is a request for a location. It reports the location that it got.
type claimAt struct {
	name  string
	claim func(in *inherited) (string, error)
	// ready does what must happen before; may be nil
	ready func(in *inherited)
	// nests says that the location lies around or within that of the old table.
	nests bool
}

func madeAt(made *Table, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return made.Document.Location(), nil
}

func newTableAt(location string, stage bool) func(in *inherited) (string, error) {
	return func(in *inherited) (string, error) {
		return madeAt(in.CreateTable(in.ctx, ident("new"), CreateTableRequest{Schema: []byte(testSchema), Location: location, Stage: stage}))
	}
}

func registerAt(file string) func(in *inherited) (string, error) {
	return func(in *inherited) (string, error) {
		return madeAt(in.RegisterTable(in.ctx, ident("new"), RegisterRequest{MetadataLocation: file}))
	}
}

// stagedAt is the commit of a table that was staged at location.
func stagedAt(t testing.TB, location string) CommitRequest {
	return commitRequest(t, `[{"type":"assert-create"}]`, fmt.Sprintf(`[{"action":"set-location","location":%q},
		{"action":"add-schema","schema":%s,"last-column-id":2},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}]`, location, testSchema))
}

func claimsAt() []claimAt {
	other := func(in *inherited) { in.create("other") }
	return []claimAt{
		{name: "create", claim: newTableAt(purgedTable, false)},
		{name: "create, spelled otherwise", claim: newTableAt("file:"+strings.TrimPrefix(purgedTable, "file://")+"/", false)},
		{name: "stage", claim: newTableAt(purgedTable, true)},
		{name: "commit of what was staged", claim: func(in *inherited) (string, error) {
			return madeAt(in.Commit(in.ctx, ident("new"), stagedAt(in.t, purgedTable)))
		}},
		{name: "transaction with what was staged", ready: other, claim: func(in *inherited) (string, error) {
			return purgedTable, in.transact(TableChange{ident("new"), stagedAt(in.t, purgedTable)}, TableChange{ident("other"), setProperty(in.t, "a", "b")})
		}},
		{name: "set-location", ready: other, claim: func(in *inherited) (string, error) {
			return madeAt(in.Commit(in.ctx, ident("other"), moveTo(in.t, purgedTable)))
		}},
		{name: "view", claim: func(in *inherited) (string, error) {
			request := viewRequest("")
			request.Location = purgedTable
			_, err := in.CreateView(in.ctx, ident("view"), request)
			return purgedTable, err
		}},
		{name: "register", claim: registerAt(elsewhere)},
		{name: "register over a table", ready: other, claim: func(in *inherited) (string, error) {
			return madeAt(in.RegisterTable(in.ctx, ident("other"), RegisterRequest{MetadataLocation: elsewhere, Overwrite: true}))
		}},
		{name: "around", claim: newTableAt("file:///w", false), nests: true},
		{name: "within", claim: newTableAt(purgedTable+"/data", false), nests: true},
	}
}

// elsewhere is a metadata file of the copy that no purge of the old table deletes.
const elsewhere = "file:///elsewhere/copy.metadata.json"

// While a purge waits, and while it runs, nobody gets the location of its table. Afterwards anybody does.
func TestLocationOfAPurgeIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range claimsAt() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var deletes hook
			in := newInherited(t, func(old, copied *purged) {
				twoSnapshots(old, copied)
				copied.metadata = elsewhere
			}, deletes.onDelete)
			if row.ready != nil {
				row.ready(in)
			}
			refused := func() {
				_, err := row.claim(in)
				want, text := moorage.KindUnavailable, "still being purged; nothing was changed."
				if row.nests {
					want, text = moorage.KindBadRequest, "Location is, contains or lies within"
				}
				wantKind(t, err, want)
				if got := moorage.MessageOf(err); !strings.Contains(got, text) {
					t.Errorf("refused with %q, want %q", got, text)
				}
			}
			refused()
			deletes.once(refused)
			in.purge()
			in.wantLeft()
			for range strings.Count(purgedTable, "/") {
				must(t, in.sweepFolders(in.ctx))
			}
			if _, err := row.claim(in); err != nil {
				t.Errorf("after the purge: %v", err)
			}
			in.wantClean()
		})
	}
}

// A table or view that may live anywhere lives elsewhere while a purge is at its first location.
func TestDefaultLocationAvoidsAPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.create("t").Document.Location()
	must(t, f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}))
	second := f.create("t").Document.Location()
	if !strings.HasPrefix(second, old+"-") {
		t.Errorf("the second table is at %s, the first was at %s", second, old)
	}
	must(t, f.DropTable(f.ctx, ident("t"), DropOptions{}))
	must(t, f.purgeAll(f.ctx))
	if third := f.create("t").Document.Location(); third != old {
		t.Errorf("after the purge a table is at %s, not at %s", third, old)
	}
	f.wantClean()
}

// callOffPurge drops the table t with a purge that is then called off in state.
func (f *fixture) callOffPurge(state registry.State) {
	f.t.Helper()
	task, pointer := f.dropPurged("t", state)
	pointer.Task = registry.ID{}
	tampering{f}.remove(task)
	tampering{f}.put(registry.PointerKey(pointer.ID), state, pointer)
}

// A location passes on at once after a drop without a purge, and after a purge that was called off before it began. One that was called
// off later may still have files deleted, and keeps its location for the undrop window.
func TestLocationPassesOnWithoutAPurge(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		drop  func(f *fixture)
		keeps bool
	}{
		"dropped":                      {func(f *fixture) { must(f.t, f.DropTable(f.ctx, ident("t"), DropOptions{})) }, false},
		"called off":                   {func(f *fixture) { f.callOffPurge(registry.StateDropped) }, false},
		"called off when it had begun": {func(f *fixture) { f.callOffPurge(registry.StatePurging) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			location := f.create("t").Document.Location()
			row.drop(f)
			create := func() error {
				_, err := f.CreateTable(f.ctx, ident("new"), CreateTableRequest{Schema: []byte(testSchema), Location: location})
				return err
			}
			if row.keeps {
				wantKind(t, create(), moorage.KindUnavailable)
				f.clock.Advance(f.undropWindow + time.Second)
				must(t, f.endWindows(f.ctx))
			}
			must(t, create())
			f.wantClean()
		})
	}
}

// A table whose location somebody is about to take comes back and is dropped with a purge: the location no longer passes on.
func TestLocationOfATableThatIsDroppedAgain(t *testing.T) {
	t.Parallel()
	var creates hook
	f := newFixture(t, creates.onCreate)
	table := f.create("t")
	must(t, f.DropTable(f.ctx, ident("t"), DropOptions{}))
	creates.once(func() {
		_, err := f.RegisterTable(f.ctx, ident("t"), RegisterRequest{MetadataLocation: table.MetadataLocation})
		must(t, err)
		must(t, f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}))
	})
	_, err := f.CreateTable(f.ctx, ident("new"), CreateTableRequest{Schema: []byte(testSchema), Location: table.Document.Location()})
	wantKind(t, err, moorage.KindUnavailable)
	must(t, f.purgeAll(f.ctx))
	f.createAt("new", table.Document.Location())
	f.wantClean()
}

// A location that cannot be told to be free of a purge is another table's.
func TestLocationOfADroppedTableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	location := f.create("t").Document.Location()
	_, pointer := f.dropPurged("t", registry.StateDropped)
	tampering{f}.write(registry.Put(registry.PointerKey(pointer.ID), registry.StateDropped, []byte("{")))
	_, err := f.CreateTable(f.ctx, ident("new"), CreateTableRequest{Schema: []byte(testSchema), Location: location})
	wantKind(t, err, moorage.KindBadRequest)
	if got := f.create("t").Document.Location(); got == location {
		t.Errorf("a table was made at %s", got)
	}
}

// A version of the server that let a location pass on while its purge was pending may have run. What lies there stays.
func TestPurgeLeavesALocationThatPassedOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		record func(claim registry.Record) registry.Write
		begun  bool // it passes on with the first batch
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
			var deletes hook
			in := newInherited(t, twoSnapshots, deletes.onDelete)
			pass := func() {
				records, err := in.store.Get(in.ctx, registry.LocationKey(purgedTable))
				must(t, err)
				tampering{in.fixture}.write(row.record(records[0]))
			}
			if row.begun {
				deletes.once(pass)
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

// That the locations are still the table's is seen with the reads that a purge makes anyway.
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
