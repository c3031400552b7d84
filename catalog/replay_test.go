package catalog

import (
	"testing"

	"moorage"
)

// A client that lost the answer to an append and sends it again is told that it happened: once, and as long
// as the table shows it.
func TestReplayWithoutKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	first := appendSnapshot(t, table, 1, 0, 1)
	if _, err := f.Commit(f.ctx, ident("t"), first); err != nil {
		t.Fatal(err)
	}
	at, err := f.Commit(f.ctx, ident("t"), appendSnapshot(t, table, 2, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := f.Commit(f.ctx, ident("t"), first)
	if err != nil {
		t.Fatalf("the replay of what happened: %v", err)
	}
	if replayed.MetadataLocation != at.MetadataLocation {
		t.Errorf("the replay made another version: %s after %s", replayed.MetadataLocation, at.MetadataLocation)
	}

	other := appendSnapshot(t, table, 3, 0, 1)
	_, err = f.Commit(f.ctx, ident("t"), other)
	wantKind(t, err, moorage.KindCommitFailed)

	if _, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, `[{"action":"remove-snapshot-ref","ref-name":"main"}]`)); err != nil {
		t.Fatal(err)
	}
	_, err = f.Commit(f.ctx, ident("t"), appendSnapshot(t, table, 2, 1, 2))
	wantKind(t, err, moorage.KindCommitFailed)
	f.wantClean()
}
