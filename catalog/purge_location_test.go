package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/storage"
)

// claimAt is a request for a location. It reports the location that it got.
type claimAt struct {
	name  string
	claim func(f *fixture) (string, error)
	// ready does what must happen before; may be nil
	ready func(f *fixture)
	// nests says that the location lies around or within that of the old table.
	nests bool
}

func madeAt(made *catalog.Table, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return made.Document.Location(), nil
}

func newTableAt(location string, stage bool) func(f *fixture) (string, error) {
	return func(f *fixture) (string, error) {
		return madeAt(f.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location, Stage: stage}))
	}
}

func registerAt(file string) func(f *fixture) (string, error) {
	return func(f *fixture) (string, error) {
		return madeAt(f.RegisterTable(f.ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: file}))
	}
}

// stagedAt is the commit of a table that was staged at location.
func stagedAt(t testing.TB, location string) catalog.CommitRequest {
	return commitRequest(t, `[{"type":"assert-create"}]`, fmt.Sprintf(`[{"action":"set-location","location":%q},
		{"action":"add-schema","schema":%s,"last-column-id":2},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}]`, location, testSchema))
}

func claimsAt() []claimAt {
	other := func(f *fixture) { f.create("other") }
	return []claimAt{
		{name: "create", claim: newTableAt(purgedTable, false)},
		{name: "create, spelled otherwise", claim: newTableAt("file:"+strings.TrimPrefix(purgedTable, "file://")+"/", false)},
		{name: "stage", claim: newTableAt(purgedTable, true)},
		{name: "commit of what was staged", claim: func(f *fixture) (string, error) {
			return madeAt(f.Commit(f.ctx, ident("new"), stagedAt(f.t, purgedTable)))
		}},
		{name: "transaction with what was staged", ready: other, claim: func(f *fixture) (string, error) {
			return purgedTable, f.transact(catalog.TableChange{ident("new"), stagedAt(f.t, purgedTable)}, catalog.TableChange{ident("other"), setProperty(f.t, "a", "b")})
		}},
		{name: "set-location", ready: other, claim: func(f *fixture) (string, error) {
			return madeAt(f.Commit(f.ctx, ident("other"), moveTo(f.t, purgedTable)))
		}},
		{name: "view", claim: func(f *fixture) (string, error) {
			request := viewRequest("")
			request.Location = purgedTable
			_, err := f.CreateView(f.ctx, ident("view"), request)
			return purgedTable, err
		}},
		{name: "register", claim: registerAt(elsewhere)},
		{name: "register over a table", ready: other, claim: func(f *fixture) (string, error) {
			return madeAt(f.RegisterTable(f.ctx, ident("other"), catalog.RegisterRequest{MetadataLocation: elsewhere, Overwrite: true}))
		}},
		{name: "around", claim: newTableAt("file:///w", false), nests: true},
		{name: "within", claim: newTableAt(purgedTable+"/data", false), nests: true},
	}
}

const (
	purgedTable = "file:///w/t"
	// elsewhere is a metadata file of a table at purgedTable. No purge of another one deletes it.
	elsewhere = "file:///elsewhere/copy.metadata.json"
)

// While a purge waits, and while it runs, nobody gets the location of its table. Afterwards anybody
// does.
func TestLocationOfAPurgeIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range claimsAt() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var deletes hook
			f := newFixture(t, deletes.onDelete)
			f.allow(testWarehouse, "file:///")
			old := f.createAt("old", purgedTable)
			copied := strings.Replace(string(old.Document.Raw()), old.Document.UUID(), "9c12d441-03fe-4693-9a96-a0705ddf69c2", 1)
			must(t, f.files.Create(f.ctx, elsewhere, []byte(copied)))
			must(t, f.DropTable(f.ctx, ident("old"), catalog.DropOptions{Purge: true}))
			if row.ready != nil {
				row.ready(f)
			}
			refused := func() {
				_, err := row.claim(f)
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
			must(t, f.purgeAll(f.ctx))
			if _, err := f.files.Stat(f.ctx, old.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("the purge left a file: %v", err)
			}
			for range strings.Count(purgedTable, "/") {
				must(t, f.sweepFolders(f.ctx))
			}
			if _, err := row.claim(f); err != nil {
				t.Errorf("after the purge: %v", err)
			}
			f.wantClean()
		})
	}
}

// A table or view that may live anywhere lives elsewhere while a purge is at its first location.
func TestDefaultLocationAvoidsAPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.create("t").Document.Location()
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	second := f.create("t").Document.Location()
	if !strings.HasPrefix(second, old+"-") {
		t.Errorf("the second table is at %s, the first was at %s", second, old)
	}
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
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

// A location passes on at once after a drop without a purge, and after a purge that was called off
// before it began. A purge that was called off later may still have files deleted. So its table
// keeps the location for the undrop window.
func TestLocationPassesOnWithoutAPurge(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		drop  func(f *fixture)
		keeps bool
	}{
		"dropped":                      {func(f *fixture) { must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{})) }, false},
		"called off":                   {func(f *fixture) { f.callOffPurge(registry.StateDropped) }, false},
		"called off when it had begun": {func(f *fixture) { f.callOffPurge(registry.StatePurging) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			location := f.create("t").Document.Location()
			row.drop(f)
			create := func() error {
				_, err := f.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
				return err
			}
			if row.keeps {
				wantKind(t, create(), moorage.KindUnavailable)
				f.clock.Advance(undropWindow + time.Second)
				must(t, f.endWindows(f.ctx))
			}
			must(t, create())
			f.wantClean()
		})
	}
}

// Somebody is about to take the location of a dropped table. Meanwhile the table comes back and is
// dropped with a purge. Then the location no longer passes on.
func TestLocationOfATableThatIsDroppedAgain(t *testing.T) {
	t.Parallel()
	var creates hook
	f := newFixture(t, creates.onCreate)
	table := f.create("t")
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
	creates.once(func() {
		_, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
		must(t, err)
		must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	})
	_, err := f.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: table.Document.Location()})
	wantKind(t, err, moorage.KindUnavailable)
	must(t, f.purgeAll(f.ctx))
	f.createAt("new", table.Document.Location())
	f.wantClean()
}

// If nobody can find out whether a location is free of a purge, it counts as another table's.
func TestLocationOfADroppedTableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	location := f.create("t").Document.Location()
	_, pointer := f.dropPurged("t", registry.StateDropped)
	tampering{f}.write(registry.Put(registry.PointerKey(pointer.ID), registry.StateDropped, []byte("{")))
	_, err := f.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
	wantKind(t, err, moorage.KindBadRequest)
	if got := f.create("t").Document.Location(); got == location {
		t.Errorf("a table was made at %s", got)
	}
}
