package catalog_test

import (
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
)

// newEngine returns an engine that writes to the files of f.
func (f *fixture) newEngine(version int) *engine { return &engine{f.t, f.files, version} }

// An append whose branch has moved is put on top of the head, if somebody asked for that.
func TestRebase(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("format version %d", version), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			e := f.newEngine(version)
			seen := f.createVersion("t", version)
			first := e.write(e.draft(seen, 1, "a"))
			late := e.write(e.draft(seen, 2, "b"))
			must1(f.Commit(f.ctx, ident("t"), first))(t)
			moved := must1(f.Commit(f.ctx, ident("t"), late))(t)
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
			again := must1(f.Commit(f.ctx, ident("t"), late))(t)
			if again.MetadataLocation != moved.MetadataLocation {
				t.Error("the same request made another version")
			}
			f.wantClean()
		})
	}
}

// Without being asked the server refuses an append whose branch has moved.
func TestRebaseIsOffByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	e := f.newEngine(2)
	seen := f.create("t")
	first, late := e.write(e.draft(seen, 1, "a")), e.write(e.draft(seen, 2, "b"))
	must1(f.Commit(f.ctx, ident("t"), first))(t)
	_, err := f.Commit(f.ctx, ident("t"), late)
	wantKind(t, err, moorage.KindCommitFailed)
}

// createVersion makes a table of a format version that consents to rebases for all its writers.
func (f *fixture) createVersion(name string, version int) *catalog.Table {
	f.t.Helper()
	return f.createWith(name, map[string]string{
		"format-version": fmt.Sprint(version), metadata.PropAppendRebase: metadata.AppendRebaseOnAll,
	})
}

// createWith makes a table with properties.
func (f *fixture) createWith(name string, properties map[string]string) *catalog.Table {
	f.t.Helper()
	return must1(f.CreateTable(f.ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(testSchema), Properties: properties}))(f.t)
}
