package catalog_test

import (
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
)

// dropMoved leaves a dropped table that lived at each of locations. Its last version names the last
// of them. Another table has taken over the claim of the first location and given it up. So the
// records of the folders above it, in which nobody lives, are gone too.
func (f *fixture) dropMoved(locations ...string) (last *catalog.Table) {
	f.t.Helper()
	last = f.createAt("t", locations[0])
	for _, location := range locations[1:] {
		moved, err := f.Commit(f.ctx, ident("t"), moveTo(f.t, location))
		must(f.t, err)
		last = moved
	}
	must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
	f.createAt("between", locations[0])
	_, err := f.UnregisterTable(f.ctx, ident("between"))
	must(f.t, err)
	f.clearTombstones()
	for range strings.Count(locations[0], "/") {
		must(f.t, f.sweepFolders(f.ctx))
	}
	return last
}

// A table that comes back has all its claims to itself again, although another table had some of
// them meanwhile. Nobody gets a folder above.
func TestClaimsComeBackWithTheirFolders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first, second string
		taken         []string // by the table that is back
	}{
		"apart":              {"file:///wh/a/b/old", "file:///wh/new", []string{"file:///wh/a", "file:///wh/a/b", "file:///wh/a/b/old", "file:///wh/a/b/old/in"}},
		"in the same folder": {"file:///wh/a/old", "file:///wh/a/new", []string{"file:///wh/a", "file:///wh/a/old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			last := f.dropMoved(row.first, row.second)
			_, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			must(t, err)
			for _, location := range row.taken {
				_, err := f.CreateTable(f.ctx, ident("other"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
				wantKind(t, err, moorage.KindBadRequest)
			}
			f.wantClean()
		})
	}
}

// A file of a dropped table may name a location around one where the table lived, and which nobody
// has by now. A register of that file is refused.
func TestRegisterAroundWhereTheTableLived(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	last := f.dropMoved("file:///wh/a/old", "file:///wh/new")
	const around = "file:///wh/around.metadata.json"
	body := strings.Replace(string(last.Document.Raw()), `"file:///wh/new"`, `"file:///wh/a"`, 1)
	must(t, f.files.Create(f.ctx, around, []byte(body)))
	_, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: around})
	wantKind(t, err, moorage.KindBadRequest)
	if !strings.Contains(moorage.MessageOf(err), "contains another location of the same table or view: file:///wh/a") {
		t.Errorf("refused with %v", err)
	}
	_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
	must(t, err)
	records, err := f.store.Get(f.ctx, registry.LocationKey("file:///wh/a"))
	must(t, err)
	if got := records[0].State; got != registry.StateBelow {
		t.Errorf("the folder is %s", got)
	}
	f.wantClean()
}

// A folder that a node remembers has become the home of a table since: nobody gets to live in it,
// and it is free again when the table is gone.
func TestFolderThatIsRememberedWrongly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a", "b"} {
		f.createAt(name, "file:///wh/x/y/"+name)
	}
	for _, name := range []string{"a", "b"} {
		_, err := f.UnregisterTable(f.ctx, ident(name))
		must(t, err)
	}
	f.clearTombstones()
	for range 2 {
		must(t, f.sweepFolders(f.ctx))
	}
	f.createAt("around", "file:///wh/x")
	_, err := f.CreateTable(f.ctx, ident("c"), catalog.CreateTableRequest{
		Schema: []byte(testSchema), Location: "file:///wh/x/y/c",
	})
	wantKind(t, err, moorage.KindBadRequest)
	_, err = f.UnregisterTable(f.ctx, ident("around"))
	must(t, err)
	f.createAt("c", "file:///wh/x/y/c")
	f.wantClean()
}
