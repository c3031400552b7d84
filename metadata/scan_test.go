package metadata_test

import (
	"testing"

	"moorage/metadata"
)

// TestScan: a branch is read in the current schema, a tag and a snapshot in the schema of the
// snapshot. The name of a tag is not taken for an id, although it may equal the id of another
// snapshot.
func TestScan(t *testing.T) {
	t.Parallel()
	d := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1)+","+snapshotUpdates(102, 101, 2)+
		`,{"action":"set-snapshot-ref","ref-name":"101","type":"tag","snapshot-id":102},
		{"action":"set-snapshot-ref","ref-name":"audit","type":"branch","snapshot-id":101},
		{"action":"add-schema","schema":{"type":"struct","fields":[
			{"id":1,"name":"key","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}},
		{"action":"set-current-schema","schema-id":-1}`)
	byRef := func(ref string) func() (metadata.Scan, bool) {
		return func() (metadata.Scan, bool) { return d.Scan(ref) }
	}
	byID := func(id int64) func() (metadata.Scan, bool) {
		return func() (metadata.Scan, bool) { return d.ScanSnapshot(id) }
	}
	for _, tt := range []struct {
		name     string
		scan     func() (metadata.Scan, bool)
		snapshot int64 // 0 if there is none with that name
		schema   int
	}{
		{"no ref", byRef(""), 102, 1},
		{"main", byRef("main"), 102, 1},
		{"another branch", byRef("audit"), 101, 1},
		{"a tag called 101", byRef("101"), 102, 0},
		{"an id as a ref", byRef("102"), 0, 0},
		{"the snapshot 101", byID(101), 101, 0},
		{"the snapshot 102", byID(102), 102, 0},
		{"no such snapshot", byID(103), 0, 0},
		{"the id that means none", byID(-1), 0, 0},
	} {
		scan, found := tt.scan()
		switch {
		case found != (tt.snapshot != 0):
			t.Errorf("%s: found %t", tt.name, found)
		case found && (scan.Snapshot.ID != tt.snapshot || scan.SchemaID != tt.schema):
			t.Errorf("%s: snapshot %d in schema %d, want %d in %d", tt.name, scan.Snapshot.ID, scan.SchemaID, tt.snapshot, tt.schema)
		}
	}
	if scan, found := createTest(t, 2).Scan(""); !found || scan.Snapshot != nil || scan.Schema == nil {
		t.Errorf("a table without snapshots: %+v, %t", scan, found)
	}
}
