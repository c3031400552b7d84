package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/storage"
	"moorage/testkit/storagetest"
)

// metadataFiles makes n commits and returns the locations of the table's versions that they made,
// the oldest first.
func (f *fixture) metadataFiles(name string, n int) []string {
	f.t.Helper()
	var locations []string
	for i := range n {
		table, err := f.Commit(f.ctx, ident(name), setProperty(f.t, "n", fmt.Sprint(i)))
		if err != nil {
			f.t.Fatal(err)
		}
		locations = append(locations, table.MetadataLocation)
	}
	return locations
}

// present returns which of locations are files.
func (f *fixture) present(locations []string) []string {
	f.t.Helper()
	return slices.DeleteFunc(slices.Clone(locations), func(location string) bool {
		_, err := f.files.Stat(f.ctx, location)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			f.t.Fatal(err)
		}
		return err != nil
	})
}

// trimming is a commit after which old metadata files are deleted, and one entry is kept in the
// log.
const trimming = `[{"action":"set-properties","updates":{"write.metadata.delete-after-commit.enabled":"true","write.metadata.previous-versions-max":"1"}}]`

// Metadata files that fall out of the log are deleted where the table asks for it, and only there.
func TestDeleteAfterCommit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		properties string
		kept       int // of five versions
	}{
		{`"write.metadata.previous-versions-max":"1"`, 5},
		{`"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"false"`, 5},
		{`"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true"`, 2},
		{`"write.metadata.previous-versions-max":"2","write.metadata.delete-after-commit.enabled":"true"`, 3},
		{`"write.metadata.delete-after-commit.enabled":"true"`, 5},
	} {
		t.Run(row.properties, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			if _, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, `[{"action":"set-properties","updates":{`+row.properties+`}}]`)); err != nil {
				t.Fatal(err)
			}
			locations := f.metadataFiles("t", 5)
			if got, want := f.present(locations), locations[5-row.kept:]; !slices.Equal(got, want) {
				t.Errorf("there are %q, want %q", got, want)
			}
			f.wantClean()
		})
	}
}

// A commit whose outcome nobody knows deletes nothing: neither its own file nor one that would have
// fallen out of the log.
func TestDeleteAfterUnknownCommit(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := newFixture(t, func(c *catalog.Config) {
		silent.Store = c.Store
		c.Store = silent
	})
	f.create("t")
	if _, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, trimming)); err != nil {
		t.Fatal(err)
	}
	locations := f.metadataFiles("t", 2)
	silent.arm(string(gate.Commit))
	_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
	wantKind(t, err, moorage.KindCommitUnknown)
	silent.disarm()
	if got := f.present(locations); !slices.Equal(got, locations) {
		t.Errorf("there are %q, want %q", got, locations)
	}
	f.wantClean()
}

// A registered table's log may name a file outside of what the table claims. The server does not
// delete it.
func TestDeleteAfterCommitStaysInClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	if _, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, trimming)); err != nil {
		t.Fatal(err)
	}
	last, err := f.LoadTable(f.ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.UnregisterTable(f.ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "file:///wh/elsewhere/00007-x.metadata.json"
	if err := f.files.Create(f.ctx, elsewhere, last.Document.Raw()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: elsewhere}); err != nil {
		t.Fatal(err)
	}
	f.metadataFiles("t", 3)
	if got := f.present([]string{elsewhere}); len(got) != 1 {
		t.Errorf("%s was deleted", elsewhere)
	}
	f.wantClean()
}

// Old metadata files are deleted also in a warehouse in several kinds of storage, whose Store
// cannot be compared.
func TestDeleteAfterCommitInSchemes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *catalog.Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store { return storage.Schemes{storage.SchemeFile: inner} })
	})
	for _, name := range []string{"a", "b"} {
		f.create(name)
		_, err := f.Commit(f.ctx, ident(name), commitRequest(t, `[]`, trimming))
		must(t, err)
	}
	ofA, ofB := f.metadataFiles("a", 3), f.metadataFiles("b", 3)
	must(t, f.transact(on("a", setProperty(t, "m", "1")), on("b", setProperty(t, "m", "1"))))
	if left, want := f.present(slices.Concat(ofA, ofB)), []string{ofA[2], ofB[2]}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
	f.wantClean()
}

// A transaction deletes old metadata files of its tables as a commit does, each as the table wants
// it. It does so with one call.
func TestDeleteAfterTransaction(t *testing.T) {
	t.Parallel()
	var deletes atomic.Int64
	f := newFixture(t, func(c *catalog.Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store {
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
		f.create(table.name)
		if table.trims {
			_, err := f.Commit(f.ctx, ident(table.name), commitRequest(t, `[]`, trimming))
			must(t, err)
		}
		locations = append(locations, f.metadataFiles(table.name, 2))
		changes = append(changes, on(table.name, setProperty(t, "m", "1")))
	}
	deletes.Store(0)
	must(t, f.transact(changes...))
	if calls := deletes.Load(); calls != 1 {
		t.Errorf("deleted with %d calls", calls)
	}
	for i, want := range [][]string{locations[0][1:], locations[1], locations[2][1:]} {
		if left := f.present(locations[i]); !slices.Equal(left, want) {
			t.Errorf("of table %d %q are left, want %q", i, left, want)
		}
	}
	f.wantClean()
}

// The answer of a commit was lost, or another node has committed on top of it since. The commit
// still deletes what fell out of the log. If it cannot find out what the table is by then, it
// deletes nothing.
func TestDeleteAfterOvertakenCommit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meanwhile func(f *fixture, node *instance)
		kept      int // of three versions before
	}{
		"its answer was lost": {func(*fixture, *instance) {}, 1},
		"overtaken": {func(f *fixture, node *instance) {
			_, err := node.Commit(f.ctx, ident("t"), setProperty(f.t, "other", "1"))
			must(f.t, err)
		}, 0},
		"dropped": {func(f *fixture, node *instance) { must(f.t, node.DropTable(f.ctx, ident("t"), catalog.DropOptions{})) }, 3},
		"overtaken by what is missing": {func(f *fixture, node *instance) {
			table, err := node.Commit(f.ctx, ident("t"), setProperty(f.t, "write.metadata.delete-after-commit.enabled", "false"))
			must(f.t, err)
			must(f.t, f.files.Delete(f.ctx, table.MetadataLocation))
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, losing := newLosingFixture(t)
			f.create("t")
			locations := f.metadataFiles("t", 3)
			node := f.other(losing.Store)
			losing.lose(gate.Commit, false, func() { row.meanwhile(f, node) })
			_, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, trimming))
			must(t, err)
			if got, want := f.present(locations), locations[3-row.kept:]; !slices.Equal(got, want) {
				t.Errorf("there are %q, want %q", got, want)
			}
		})
	}
}
