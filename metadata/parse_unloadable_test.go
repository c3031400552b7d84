package metadata_test

import (
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// unloadable is a commit that iceberg-go's builder accepts, but that Java refuses or could not load
// afterwards. The names come from the comparison of both builders.
type unloadable struct {
	name           string
	setup, updates string
	want           map[string]string // members of the result if the commit is accepted
	refused        bool              // 400
}

var unloadables = []unloadable{
	{name: "A1 schema without the column of the default spec", refused: true,
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}`},
	{name: "A2 day of a long", refused: true,
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":1,"field-id":1001,"transform":"day","name":"d"}]}},{"action":"set-default-spec","spec-id":-1}`},
	{name: "A3 lower sequence number without parent", setup: snapshotUpdates(1, 0, 34),
		updates: bareSnapshot(`"sequence-number":5,"manifest-list":"m"`), want: map[string]string{"last-sequence-number": "34"}},
	{name: "A4 empty location", refused: true, updates: `{"action":"set-location","location":""}`},
	{name: "A6 snapshot without manifests", refused: true, updates: bareSnapshot(`"sequence-number":1`)},
	{name: "A7 identifier field that is not there", refused: true, updates: identifierSchema(`7`)},
	{name: "A7 identifier field that is optional", refused: true, updates: identifierSchema(`2`)},
	{name: "A7 identifier field of floats", refused: true, updates: identifierSchema(`8`)},
	{name: "A7 identifier field in a list", refused: true, updates: identifierSchema(`10`)},
	{name: "A8 default of another type", refused: true, updates: defaultSchema(`"type":"long","initial-default":"abc"`)},
	{name: "A8 default of a struct", refused: true, updates: defaultSchema(`"type":{"type":"struct","fields":[{"id":21,"name":"s","required":false,"type":"int"}]},"initial-default":{}`)},
	{name: "A9 blob without properties", setup: snapshotUpdates(1, 0, 1), updates: statisticsOf(`,"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1]}]`),
		want: map[string]string{"statistics": `[{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1]}]}]`}},
	{name: "A9 statistics without blob-metadata", setup: snapshotUpdates(1, 0, 1), refused: true, updates: statisticsOf(``)},
	{name: "A10 main as a tag", setup: snapshotUpdates(1, 0, 1), refused: true, updates: `{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":1}`},
	{name: "A11 snapshot from far ahead", refused: true,
		updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":9999999999999,"manifest-list":"m"}}`},
	{name: "A11 snapshot from a little ahead",
		updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1700000030000,"manifest-list":"m"}}`,
		want:    map[string]string{"last-updated-ms": "1700000030000"}},
	{name: "A12 field id of another source", refused: true,
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"transform":"bucket[4]","name":"b"}]}}`},
	{name: "A12 field id of another transform", refused: true,
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"transform":"hour","name":"h"}]}}`},
	{name: "A12 void field of another source", refused: true,
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"transform":"void","name":"v"}]}}`},
	{name: "A12 field that was dropped",
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"transform":"void","name":"at_day"}]}}`,
		want:    map[string]string{"last-partition-id": "1000"}},
	{name: "A12 field of another name",
		updates: `{"action":"add-spec","spec":{"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"transform":"day","name":"renamed"}]}}`,
		want:    map[string]string{"last-partition-id": "1000"}},
	{name: "A15 type that is no promotion", setup: snapshotUpdates(1, 0, 1), refused: true,
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"int"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}}`},
	{name: "A15 type of a replaced table", setup: snapshotUpdates(1, 0, 1),
		updates: `{"action":"remove-snapshot-ref","ref-name":"main"},{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"int"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}},{"action":"set-current-schema","schema-id":-1}`,
		want:    map[string]string{"current-schema-id": "1"}},
	{name: "A15 type of a table without rows",
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"int"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}},{"action":"set-current-schema","schema-id":-1}`,
		want:    map[string]string{"current-schema-id": "1"}},
	{name: "A16 dropped column that comes back as another type", refused: true,
		setup:   snapshotUpdates(1, 0, 1) + `,{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}},{"action":"set-current-schema","schema-id":-1}`,
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},{"id":3,"name":"note","required":false,"type":"int"}]}}`},
	{name: "A16 dropped column that comes back",
		setup:   snapshotUpdates(1, 0, 1) + `,{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"}]}},{"action":"set-current-schema","schema-id":-1}`,
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},{"id":3,"name":"again","required":false,"type":"string"}]}},{"action":"set-current-schema","schema-id":-1}`,
		want:    map[string]string{"current-schema-id": "2"}},
	{name: "A13 property without value", refused: true, updates: `{"action":"set-properties","updates":{"k":null}}`},
	{name: "A14 branch that keeps no snapshot", setup: snapshotUpdates(1, 0, 1), refused: true,
		updates: `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1,"min-snapshots-to-keep":0}`},
	{name: "A14 branch that keeps snapshots of negative age", setup: snapshotUpdates(1, 0, 1), refused: true,
		updates: `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1,"max-snapshot-age-ms":-1}`},
	{name: "A14 branch of negative age", setup: snapshotUpdates(1, 0, 1), refused: true,
		updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"max-ref-age-ms":-1}`},
}

// identifierSchema returns a request for a schema with the identifier field id. Field 2 is
// optional, 8 is a double, and 10 is in a list.
func identifierSchema(id string) string {
	return `{"action":"add-schema","schema":{"type":"struct","identifier-field-ids":[` + id + `],"fields":[
		{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},
		{"id":8,"name":"f","required":true,"type":"double"},
		{"id":9,"name":"l","required":true,"type":{"type":"list","element-id":10,"element-required":true,"element":"long"}}]}}`
}

// defaultSchema returns a request for a schema with one more field, for a table of version 3.
func defaultSchema(members string) string {
	return `{"action":"upgrade-format-version","format-version":3},{"action":"add-schema","schema":{"type":"struct","fields":[
		{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},
		{"id":20,"name":"d","required":false,` + members + `}]}}`
}

func statisticsOf(members string) string {
	return `{"action":"set-statistics","snapshot-id":1,"statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1` + members + `}}`
}

// No commit makes a table that Java cannot load, or to which Java can never commit again.
func TestUnloadable(t *testing.T) {
	t.Parallel()
	for _, row := range unloadables {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			base := createTest(t, 2)
			if row.setup != "" {
				base = applyTest(t, base, row.setup)
			}
			updates, err := checked(metadata.DecodeUpdates, "["+row.updates+"]")
			var next *metadata.Document
			if err == nil {
				next, err = base.Apply(updates, testEnv(1))
			}
			if badRequest := []moorage.Kind{moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation}; row.refused {
				if err == nil || !slices.Contains(badRequest, moorage.KindOf(err)) {
					t.Errorf("got %v, want 400", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkIndex(t, next)
			for key, want := range row.want {
				if got := compact(t, memberOf(next, key)); got != want {
					t.Errorf("%s is %s, want %s", key, got, want)
				}
			}
		})
	}
}

// A5: a table created without assign-uuid has a uuid drawn by the server.
func TestBuildAssignsUUID(t *testing.T) {
	t.Parallel()
	d, err := metadata.Build(decodeTest(t, `{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":`+testSchema+`},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":"file:///tmp/t"}`), testEnv(0))
	if err != nil {
		t.Fatal(err)
	}
	if d.UUID() != testUUID || !strings.Contains(string(d.Raw()), testUUID) {
		t.Errorf("table-uuid %q, want %q", d.UUID(), testUUID)
	}
}
