package catalog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// claimAt is a request for a location. It returns the location of the new object.
type claimAt struct {
	name  string
	claim func(f *catalogkit.Fixture) (string, error)
	// ready prepares the request; may be nil
	ready func(f *catalogkit.Fixture)
	// nests is true if the location contains, or lies within, that of the old table.
	nests bool
}

func madeAt(made *catalog.Table, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return made.Document.Location(), nil
}

func newTableAt(location string, stage bool) func(f *catalogkit.Fixture) (string, error) {
	return func(f *catalogkit.Fixture) (string, error) {
		return madeAt(f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location, Stage: stage}))
	}
}

func registerAt(file string) func(f *catalogkit.Fixture) (string, error) {
	return func(f *catalogkit.Fixture) (string, error) {
		return madeAt(f.RegisterTable(f.Ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: file}))
	}
}

func claimsAt() []claimAt {
	other := func(f *catalogkit.Fixture) { f.Create("other") }
	return []claimAt{
		{name: "create", claim: newTableAt(purgedTable, false)},
		{name: "create, spelled otherwise", claim: newTableAt("file:"+strings.TrimPrefix(purgedTable, "file://")+"/", false)},
		{name: "stage", claim: newTableAt(purgedTable, true)},
		{name: "commit of what was staged", claim: func(f *catalogkit.Fixture) (string, error) {
			return madeAt(f.Commit(f.Ctx, ident("new"), catalogkit.StagedAt(f.T, purgedTable)))
		}},
		{name: "transaction with what was staged", ready: other, claim: func(f *catalogkit.Fixture) (string, error) {
			return purgedTable, f.Transact(catalog.TableChange{ident("new"), catalogkit.StagedAt(f.T, purgedTable)}, catalog.TableChange{ident("other"), catalogkit.SetProperty(f.T, "a", "b")})
		}},
		{name: "set-location", ready: other, claim: func(f *catalogkit.Fixture) (string, error) {
			return madeAt(f.Commit(f.Ctx, ident("other"), catalogkit.MoveTo(f.T, purgedTable)))
		}},
		{name: "view", claim: func(f *catalogkit.Fixture) (string, error) {
			request := catalogkit.ViewRequest("")
			request.Location = purgedTable
			_, err := f.CreateView(f.Ctx, ident("view"), request)
			return purgedTable, err
		}},
		{name: "register", claim: registerAt(elsewhere)},
		{name: "register over a table", ready: other, claim: func(f *catalogkit.Fixture) (string, error) {
			return madeAt(f.RegisterTable(f.Ctx, ident("other"), catalog.RegisterRequest{MetadataLocation: elsewhere, Overwrite: true}))
		}},
		{name: "around", claim: newTableAt("file:///w", false), nests: true},
		{name: "within", claim: newTableAt(purgedTable+"/data", false), nests: true},
	}
}

const (
	purgedTable = "file:///w/t"
	// elsewhere is a metadata file outside the location of its table, which is purgedTable. No
	// purge of another table deletes it.
	elsewhere = "file:///elsewhere/copy.metadata.json"
)

// While a purge waits or runs, no other object can get the location of its table. Afterwards, any
// object can.
func TestLocationOfAPurgeIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range claimsAt() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var deletes catalogkit.Hook
			f := catalogkit.New(t, deletes.OnDelete)
			f.Allow(catalogkit.Warehouse, "file:///")
			old := f.CreateAt("old", purgedTable)
			copied := strings.Replace(string(old.Document.Raw()), old.Document.UUID(), "9c12d441-03fe-4693-9a96-a0705ddf69c2", 1)
			must(t, f.Files.Create(f.Ctx, elsewhere, []byte(copied)))
			must(t, f.DropTable(f.Ctx, ident("old"), catalog.DropOptions{Purge: true}))
			if row.ready != nil {
				row.ready(f)
			}
			refused := func() {
				_, err := row.claim(f)
				want, text := moorage.KindUnavailable, "still being purged; nothing was changed."
				if row.nests {
					want, text = moorage.KindBadRequest, "Location is, contains or lies within"
				}
				catalogkit.WantKind(t, err, want)
				if got := moorage.MessageOf(err); !strings.Contains(got, text) {
					t.Errorf("refused with %q, want %q", got, text)
				}
			}
			refused()
			deletes.Once(refused)
			must(t, f.PurgeAll(f.Ctx))
			if _, err := f.Files.Stat(f.Ctx, old.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("the purge left a file: %v", err)
			}
			for range strings.Count(purgedTable, "/") {
				must(t, f.SweepFolders(f.Ctx))
			}
			if _, err := row.claim(f); err != nil {
				t.Errorf("after the purge: %v", err)
			}
			f.WantClean()
		})
	}
}

// While a purge has the first default location of a new table or view, the object gets another
// location.
func TestDefaultLocationAvoidsAPurge(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	old := f.Create("t").Document.Location()
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
	second := f.Create("t").Document.Location()
	if !strings.HasPrefix(second, old+"-") {
		t.Errorf("the second table is at %s, the first was at %s", second, old)
	}
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
	must(t, f.PurgeAll(f.Ctx))
	if third := f.Create("t").Document.Location(); third != old {
		t.Errorf("after the purge a table is at %s, not at %s", third, old)
	}
	f.WantClean()
}

// callOffPurge drops the table t with a purge, and then cancels the purge in the given state.
func callOffPurge(f *catalogkit.Fixture, state registry.State) {
	f.T.Helper()
	task, pointer := dropPurged(f, "t", state)
	pointer.Task = registry.ID{}
	removeRecord(catalogkit.Tamper(f), task)
	catalogkit.Tamper(f).Put(registry.PointerKey(pointer.ID), state, pointer)
}

// A location can be reused at once after a drop without a purge, and after a purge that was
// cancelled before it began. A purge that was cancelled later may still delete files, so its table
// keeps the location for the undrop window.
func TestLocationPassesOnWithoutAPurge(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		drop  func(f *catalogkit.Fixture)
		keeps bool
	}{
		"dropped":                      {func(f *catalogkit.Fixture) { must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})) }, false},
		"called off":                   {func(f *catalogkit.Fixture) { callOffPurge(f, registry.StateDropped) }, false},
		"called off when it had begun": {func(f *catalogkit.Fixture) { callOffPurge(f, registry.StatePurging) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			location := f.Create("t").Document.Location()
			row.drop(f)
			create := func() error {
				_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location})
				return err
			}
			if row.keeps {
				catalogkit.WantKind(t, create(), moorage.KindUnavailable)
				f.Clock.Advance(catalogkit.UndropWindow + time.Second)
				must(t, f.EndWindows(f.Ctx))
			}
			must(t, create())
			f.WantClean()
		})
	}
}

// A create is about to take the location of a dropped table. In the meantime, the table is restored
// and dropped with a purge. Then the create must not get the location.
func TestLocationOfATableThatIsDroppedAgain(t *testing.T) {
	t.Parallel()
	var creates catalogkit.Hook
	f := catalogkit.New(t, creates.OnCreate)
	table := f.Create("t")
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
	creates.Once(func() {
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
		must(t, err)
		must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
	})
	_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: table.Document.Location()})
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	must(t, f.PurgeAll(f.Ctx))
	f.CreateAt("new", table.Document.Location())
	f.WantClean()
}

// If the catalog cannot find out whether a location belongs to a purge, it treats the location as
// taken.
func TestLocationOfADroppedTableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	location := f.Create("t").Document.Location()
	_, pointer := dropPurged(f, "t", registry.StateDropped)
	catalogkit.Tamper(f).Write(registry.Put(registry.PointerKey(pointer.ID), registry.StateDropped, []byte("{")))
	_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	if got := f.Create("t").Document.Location(); got == location {
		t.Errorf("a table was made at %s", got)
	}
}
