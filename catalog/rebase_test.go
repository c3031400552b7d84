package catalog_test

import (
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/testkit/catalogkit"
)

// newEngine returns an engine that writes to the files of f.
func newEngine(f *catalogkit.Fixture, version int) *engine { return &engine{f.T, f.Files, version} }

// An append whose branch has moved is rebased onto the head, if that was requested.
func TestRebase(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("format version %d", version), func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			e := newEngine(f, version)
			seen := createVersion(f, "t", version)
			first := e.write(e.draft(seen, 1, "a"))
			late := e.write(e.draft(seen, 2, "b"))
			must1(f.Commit(f.Ctx, ident("t"), first))(t)
			moved := must1(f.Commit(f.Ctx, ident("t"), late))(t)
			if got := snapshotChain(t, moved.Document); fmt.Sprint(got) != "[2 1]" {
				t.Errorf("the chain is %v", got)
			}
			if rows := e.rowsOf(moved.Document); rows != 20 {
				t.Errorf("there are %d rows", rows)
			}
			for s := range moved.Document.Snapshots() {
				if s.ID == 2 && s.SequenceNumber != 2 {
					t.Errorf("the sequence number is %d", s.SequenceNumber)
				}
			}
			again := must1(f.Commit(f.Ctx, ident("t"), late))(t)
			if again.MetadataLocation != moved.MetadataLocation {
				t.Error("the same request made another version")
			}
			f.WantClean()
		})
	}
}

// By default, the server refuses an append whose branch has moved.
func TestRebaseIsOffByDefault(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	e := newEngine(f, 2)
	seen := f.Create("t")
	first, late := e.write(e.draft(seen, 1, "a")), e.write(e.draft(seen, 2, "b"))
	must1(f.Commit(f.Ctx, ident("t"), first))(t)
	_, err := f.Commit(f.Ctx, ident("t"), late)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
}

// createVersion creates a table of a format version that consents to rebases for all its writers.
func createVersion(f *catalogkit.Fixture, name string, version int) *catalog.Table {
	f.T.Helper()
	return createWith(f, name, map[string]string{
		"format-version": fmt.Sprint(version), metadata.PropAppendRebase: metadata.AppendRebaseOnAll,
	})
}

// createWith creates a table with properties.
func createWith(f *catalogkit.Fixture, name string, properties map[string]string) *catalog.Table {
	f.T.Helper()
	return must1(f.CreateTable(f.Ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: properties}))(f.T)
}
