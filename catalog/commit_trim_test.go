package catalog_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storagetest"
)

// trimming is a commit that enables the deletion of old metadata files, and keeps one entry in the
// log.
const trimming = `[{"action":"set-properties","updates":{"write.metadata.delete-after-commit.enabled":"true","write.metadata.previous-versions-max":"1"}}]`

// Metadata files that fall out of the log are deleted only if the table's properties ask for it.
func TestDeleteAfterCommit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		properties string
		kept       int // number of files left of five versions
	}{
		{`"write.metadata.previous-versions-max":"1"`, 5},
		{`"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"false"`, 5},
		{`"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true"`, 2},
		{`"write.metadata.previous-versions-max":"2","write.metadata.delete-after-commit.enabled":"true"`, 3},
		{`"write.metadata.delete-after-commit.enabled":"true"`, 5},
	} {
		t.Run(row.properties, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("t")
			if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"set-properties","updates":{`+row.properties+`}}]`)); err != nil {
				t.Fatal(err)
			}
			locations := f.MetadataFiles("t", 5)
			if got, want := f.Present(locations), locations[5-row.kept:]; !slices.Equal(got, want) {
				t.Errorf("there are %q, want %q", got, want)
			}
			f.WantClean()
		})
	}
}

// A commit deletes at most eight files. The next commit deletes the rest.
func TestDeleteAfterCommitInSteps(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	locations := f.MetadataFiles("t", 2*metadata.TrimMax)
	change := trimming
	for n, kept := range []int{metadata.TrimMax + 1, 1, 0} { // the first deletes the create's file too
		if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, change)); err != nil {
			t.Fatal(err)
		}
		if got, want := f.Present(locations), locations[len(locations)-kept:]; !slices.Equal(got, want) {
			t.Errorf("after commit %d there are %q, want %q", n, got, want)
		}
		change = `[{"action":"set-properties","updates":{"a":"b"}}]`
	}
	f.WantClean()
}

// A commit with an unknown outcome deletes nothing: neither its own file nor a file that would have
// fallen out of the log.
func TestDeleteAfterUnknownCommit(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := catalogkit.New(t, func(c *catalog.Config) {
		silent.Store = c.Store
		c.Store = silent
	})
	f.Create("t")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming)); err != nil {
		t.Fatal(err)
	}
	locations := f.MetadataFiles("t", 2)
	silent.arm(string(gate.Commit))
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
	silent.disarm()
	if got := f.Present(locations); !slices.Equal(got, locations) {
		t.Errorf("there are %q, want %q", got, locations)
	}
	f.WantClean()
}

// The log of a registered table may name a file outside the table's claims. The server does not
// delete that file.
func TestDeleteAfterCommitStaysInClaims(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming)); err != nil {
		t.Fatal(err)
	}
	last, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "file:///wh/elsewhere/00007-x.metadata.json"
	if err := f.Files.Create(f.Ctx, elsewhere, last.Document.Raw()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: elsewhere}); err != nil {
		t.Fatal(err)
	}
	f.MetadataFiles("t", 3)
	if got := f.Present([]string{elsewhere}); len(got) != 1 {
		t.Errorf("%s was deleted", elsewhere)
	}
	f.WantClean()
}

// Old metadata files are also deleted in a warehouse with several kinds of storage, whose Store is
// not comparable.
func TestDeleteAfterCommitInSchemes(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(c *catalog.Config) {
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return storage.Schemes{storage.SchemeFile: inner} })
	})
	for _, name := range []string{"a", "b"} {
		f.Create(name)
		_, err := f.Commit(f.Ctx, ident(name), catalogkit.CommitRequest(t, `[]`, trimming))
		must(t, err)
	}
	ofA, ofB := f.MetadataFiles("a", 3), f.MetadataFiles("b", 3)
	must(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "m", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "m", "1"))))
	if left, want := f.Present(slices.Concat(ofA, ofB)), []string{ofA[2], ofB[2]}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
	f.WantClean()
}

// A transaction deletes old metadata files of its tables according to each table's properties, like
// a commit. It makes one call for all.
func TestDeleteAfterTransaction(t *testing.T) {
	t.Parallel()
	var deletes atomic.Int64
	f := catalogkit.New(t, func(c *catalog.Config) {
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store {
			return storagetest.Faulty(inner, func(_ int, method string) storagetest.Action {
				if method == storagetest.MethodDelete {
					deletes.Add(1)
				}
				return storagetest.Pass
			})
		})
	})
	var locations [][]string
	var changes []catalog.TableChange
	for _, table := range []struct {
		name  string
		trims bool
	}{{"a", true}, {"b", false}, {"c", true}} {
		f.Create(table.name)
		if table.trims {
			_, err := f.Commit(f.Ctx, ident(table.name), catalogkit.CommitRequest(t, `[]`, trimming))
			must(t, err)
		}
		locations = append(locations, f.MetadataFiles(table.name, 2))
		changes = append(changes, catalogkit.On(table.name, catalogkit.SetProperty(t, "m", "1")))
	}
	deletes.Store(0)
	must(t, f.Transact(changes...))
	if calls := deletes.Load(); calls != 1 {
		t.Errorf("deleted with %d calls", calls)
	}
	for i, want := range [][]string{locations[0][1:], locations[1], locations[2][1:]} {
		if left := f.Present(locations[i]); !slices.Equal(left, want) {
			t.Errorf("of table %d %q are left, want %q", i, left, want)
		}
	}
	f.WantClean()
}

// The answer of a commit was lost, or another node has committed on top of it in the meantime. The
// commit still deletes the files that fell out of the log. If it cannot find out the table's
// present version, it deletes nothing.
func TestDeleteAfterOvertakenCommit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meanwhile func(f *catalogkit.Fixture, node *catalogkit.Instance)
		kept      int // number of files left of three earlier versions
	}{
		"its answer was lost": {func(*catalogkit.Fixture, *catalogkit.Instance) {}, 1},
		"overtaken": {func(f *catalogkit.Fixture, node *catalogkit.Instance) {
			_, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "other", "1"))
			must(f.T, err)
		}, 0},
		"dropped": {func(f *catalogkit.Fixture, node *catalogkit.Instance) {
			must(f.T, node.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
		}, 3},
		"overtaken by what is missing": {func(f *catalogkit.Fixture, node *catalogkit.Instance) {
			table, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "write.metadata.delete-after-commit.enabled", "false"))
			must(f.T, err)
			must(f.T, f.Files.Delete(f.Ctx, table.MetadataLocation))
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, losing := newLosingFixture(t)
			f.Create("t")
			locations := f.MetadataFiles("t", 3)
			node := f.Other(losing.Store)
			losing.lose(gate.Commit, false, func() { row.meanwhile(f, node) })
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming))
			must(t, err)
			if got, want := f.Present(locations), locations[3-row.kept:]; !slices.Equal(got, want) {
				t.Errorf("there are %q, want %q", got, want)
			}
		})
	}
}
