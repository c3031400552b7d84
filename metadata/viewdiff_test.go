package metadata_test

import (
	"testing"

	"moorage"
	"moorage/metadata"
)

// viewOf returns a view with two schemas, whose current version is 1.
func viewOf(t *testing.T, versions, properties string) *metadata.ViewDocument {
	t.Helper()
	d, err := metadata.ParseView([]byte(`{"view-uuid":"` + testUUID + `","format-version":1,"location":"file:///tmp/v",
		"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]},
		{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"a","required":false,"type":"long"}]}],
		"current-version-id":1,"versions":[` + versions + `],"version-log":[{"version-id":1,"timestamp-ms":1}],
		"properties":` + properties + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDiffOfViews: a difference covers the SQL of each dialect, and everything else that a reader
// of the view gets.
func TestDiffOfViews(t *testing.T) {
	t.Parallel()
	was := viewOf(t, `{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["a"],
		"representations":[{"type":"sql","sql":"select 1","dialect":"spark"},{"type":"sql","sql":"select 2","dialect":"trino"}]}`, `{}`)
	is := viewOf(t, `{"version-id":1,"timestamp-ms":1,"schema-id":1,"summary":{},"default-namespace":["b"],"default-catalog":"c",
		"representations":[{"type":"sql","sql":"select 3","dialect":"spark"},{"type":"sql","sql":"select 4","dialect":"duckdb"}]}`, `{"x":"y"}`)
	d, err := metadata.DiffViews(was, is)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"sql":{"duckdb":[null,"select 4"],"spark":["select 1","select 3"],"trino":["select 2",null]},` +
		`"schema":{"changed":[{"id":1,"path":"a","was":{"type":"int"},"is":{"type":"long"}}]},` +
		`"properties":{"set":{"x":[null,"y"]}},"default-namespace":[["a"],["b"]],"default-catalog":["","c"]}`
	if got := jsonOf(t, d); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if d, err = metadata.DiffViews(is, is); err != nil || jsonOf(t, d) != "{}" {
		t.Errorf("of equal views: %s, %v", jsonOf(t, d), err)
	}
}

// TestRollbackOfViews: the version with the content of the earlier one becomes current, whatever
// its id. RollbackAll restores the properties.
func TestRollbackOfViews(t *testing.T) {
	t.Parallel()
	query := func(id, sql string) string {
		return `{"version-id":` + id + `,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["a"],
			"representations":[{"type":"sql","sql":"select ` + sql + `","dialect":"spark"}]}`
	}
	now := viewOf(t, query("1", "1")+","+query("7", "7"), `{"x":"y"}`)
	const uuid = `[{"type":"assert-view-uuid","uuid":"` + testUUID + `"}]`
	const changed = "The properties have changed since. To take that back too, roll back all parts."
	for name, tt := range map[string]struct {
		then     *metadata.ViewDocument
		parts    metadata.RollbackParts
		updates  string
		warnings string
	}{
		"the version": {viewOf(t, query("1", "7"), `{"x":"y"}`), metadata.RollbackRefs,
			`[{"action":"set-current-view-version","view-version-id":7}]`, `[]`},
		"with a warning": {viewOf(t, query("1", "7"), `{}`), metadata.RollbackRefs,
			`[{"action":"set-current-view-version","view-version-id":7}]`, `["` + changed + `"]`},
		"all": {viewOf(t, query("1", "7"), `{"z":"1"}`), metadata.RollbackAll,
			`[{"action":"set-current-view-version","view-version-id":7},{"action":"set-properties","updates":{"z":"1"}},` +
				`{"action":"remove-properties","removals":["x"]}]`, `[]`},
		"nothing": {viewOf(t, query("1", "1"), `{"x":"y"}`), metadata.RollbackAll, `[]`, `[]`},
	} {
		r, err := metadata.RollbackView(now, tt.then, tt.parts)
		if err != nil {
			t.Fatal(err)
		}
		requirements := uuid
		if r.IsEmpty() {
			requirements = `[]`
		}
		if string(r.Updates) != tt.updates || string(r.Requirements) != requirements || jsonOf(t, r.Warnings) != tt.warnings {
			t.Errorf("%s: %s", name, jsonOf(t, r))
		}
		if _, _, err := r.ViewStep(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := metadata.RollbackView(now, viewOf(t, query("1", "2"), `{}`), metadata.RollbackRefs); moorage.KindOf(err) != moorage.KindCommitFailed {
		t.Errorf("to an expired version: %v", err)
	}
	if r, err := metadata.RollbackViewToID(now, 7); err != nil || string(r.Updates) != `[{"action":"set-current-view-version","view-version-id":7}]` {
		t.Errorf("by its id: %s, %v", r.Updates, err)
	}
	if _, err := metadata.RollbackViewToID(now, 3); moorage.KindOf(err) != moorage.KindNotFound {
		t.Errorf("to no version: %v", err)
	}
}
