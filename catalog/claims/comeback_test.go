package claims_test

import (
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// dropMoved leaves a dropped table that lived at each of locations in turn. Its last version names
// the last location. Another table has taken over the claim of the first location and given it up.
// So the records of the empty folders above it are gone too.
func dropMoved(f *catalogkit.Fixture, locations ...string) (last *catalog.Table) {
	f.T.Helper()
	last = f.CreateAt("t", locations[0])
	for _, location := range locations[1:] {
		moved, err := f.Commit(f.Ctx, ident("t"), catalogkit.MoveTo(f.T, location))
		must(f.T, err)
		last = moved
	}
	must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
	f.CreateAt("between", locations[0])
	_, err := f.UnregisterTable(f.Ctx, ident("between"))
	must(f.T, err)
	f.ClearTombstones()
	for range strings.Count(locations[0], "/") {
		must(f.T, f.SweepFolders(f.Ctx))
	}
	return last
}

// A restored table has all its claims again, even if another table had some of them in the
// meantime. No other table can claim a folder above them.
func TestClaimsComeBackWithTheirFolders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first, second string
		taken         []string // by the restored table
	}{
		"apart":              {"file:///wh/a/b/old", "file:///wh/new", []string{"file:///wh/a", "file:///wh/a/b", "file:///wh/a/b/old", "file:///wh/a/b/old/in"}},
		"in the same folder": {"file:///wh/a/old", "file:///wh/a/new", []string{"file:///wh/a", "file:///wh/a/old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			last := dropMoved(f, row.first, row.second)
			_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			must(t, err)
			for _, location := range row.taken {
				_, err := f.CreateTable(f.Ctx, ident("other"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location})
				catalogkit.WantKind(t, err, moorage.KindBadRequest)
			}
			f.WantClean()
		})
	}
}

// A register of a dropped table's file is refused if the file names a location that contains an
// earlier location of the table, even if that location is now free.
func TestRegisterAroundWhereTheTableLived(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	last := dropMoved(f, "file:///wh/a/old", "file:///wh/new")
	const around = "file:///wh/around.metadata.json"
	body := strings.Replace(string(last.Document.Raw()), `"file:///wh/new"`, `"file:///wh/a"`, 1)
	must(t, f.Files.Create(f.Ctx, around, []byte(body)))
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: around})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	if !strings.Contains(moorage.MessageOf(err), "contains another location of the same table or view: file:///wh/a") {
		t.Errorf("refused with %v", err)
	}
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
	must(t, err)
	records, err := f.Store.Get(f.Ctx, registry.LocationKey("file:///wh/a"))
	must(t, err)
	if got := records[0].State; got != registry.StateBelow {
		t.Errorf("the folder is %s", got)
	}
	f.WantClean()
}

// A folder cached by a node has become the location of a table. No other table can live in that
// folder, and it is free again when the table is gone.
func TestFolderThatIsRememberedWrongly(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	for _, name := range []string{"a", "b"} {
		f.CreateAt(name, "file:///wh/x/y/"+name)
	}
	for _, name := range []string{"a", "b"} {
		_, err := f.UnregisterTable(f.Ctx, ident(name))
		must(t, err)
	}
	f.ClearTombstones()
	for range 2 {
		must(t, f.SweepFolders(f.Ctx))
	}
	f.CreateAt("around", "file:///wh/x")
	_, err := f.CreateTable(f.Ctx, ident("c"), catalog.CreateTableRequest{
		Schema: []byte(catalogkit.Schema), Location: "file:///wh/x/y/c",
	})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	_, err = f.UnregisterTable(f.Ctx, ident("around"))
	must(t, err)
	f.CreateAt("c", "file:///wh/x/y/c")
	f.WantClean()
}
