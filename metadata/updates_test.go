package metadata_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// updateRow is one behaviour of an update.
type updateRow struct {
	name    string
	version int    // of the table; 0 means 2
	setup   string // updates applied before
	updates string

	want      map[string]string // members of the result, without white space; "" means absent
	unchanged bool              // the result is the document itself

	kind    moorage.Kind // of the error, if message is not empty
	message string       // part of the error, or of the decoding error if decode is set
	decode  bool
}

func compact(t testing.TB, raw string) string {
	t.Helper()
	var b bytes.Buffer
	if raw == "" {
		return ""
	}
	if err := json.Compact(&b, []byte(raw)); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b.String()
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	for _, row := range updateRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.version == 0 {
				row.version = 2
			}
			base := createTest(t, row.version)
			if row.setup != "" {
				base = applyTest(t, base, row.setup)
			}
			before := string(base.Raw())
			updates, err := metadata.StrictUpdates([]byte("[" + row.updates + "]"))
			if row.decode || err != nil {
				checkRefused(t, row.updates, err, row.kind, row.message)
				return
			}
			next, err := base.Apply(updates, testEnv(1))
			if string(base.Raw()) != before {
				t.Fatal("the base has changed")
			}
			if err != nil || row.message != "" {
				checkRefused(t, row.updates, err, row.kind, row.message)
				return
			}
			if (next == base) != row.unchanged {
				t.Fatalf("unchanged is %t, want %t: %s", next == base, row.unchanged, next.Raw())
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

func checkRefused(t *testing.T, input string, err error, kind moorage.Kind, message string) {
	t.Helper()
	if message == "" {
		t.Fatalf("%s: got %v, want no error", input, err)
	}
	if err == nil || moorage.KindOf(err) != kind || !strings.Contains(moorage.MessageOf(err), message) {
		t.Errorf("%s: got %v (%v), want %q (%v)", input, err, moorage.KindOf(err), message, kind)
	}
}

// Every update in the specification has rows, including rows with refused updates.
func TestUpdateRowsCoverAllActions(t *testing.T) {
	t.Parallel()
	good, bad := make(map[string]bool), make(map[string]bool)
	for _, row := range updateRows {
		updates, err := metadata.StrictUpdates([]byte("[" + row.updates + "]"))
		if err != nil {
			for _, action := range tableActions {
				bad[action] = bad[action] || strings.Contains(row.updates, `"`+action+`"`)
			}
			continue
		}
		for _, u := range updates {
			if row.message == "" {
				good[u.Action()] = true
			} else {
				bad[u.Action()] = true
			}
		}
	}
	for _, action := range tableActions {
		if !good[action] || !bad[action] {
			t.Errorf("%s: accepted in a row: %t, refused in a row: %t", action, good[action], bad[action])
		}
	}
}

// tableActions lists the updates of a table. Source: REST specification, TableUpdate.
var tableActions = []string{
	"assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec",
	"set-default-spec", "add-sort-order", "set-default-sort-order", "add-snapshot", "set-snapshot-ref",
	"remove-snapshots", "remove-snapshot-ref", "set-location", "set-properties", "remove-properties",
	"set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics",
	"remove-partition-specs", "remove-schemas", "add-encryption-key", "remove-encryption-key",
}

const (
	bad         = moorage.KindBadRequest
	illegalKind = moorage.KindIllegalArgument
	invalid     = moorage.KindValidation
	stale       = moorage.KindCommitFailed

	otherUUID = "11111111-2222-4333-8444-555555555555"

	// schemaB has one column more than the table's schema. schemaC lacks the column by which the
	// table is partitioned.
	schemaB = `{"type":"struct","schema-id":77,"fields":[
		{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},
		{"id":3,"name":"note","required":false,"type":"string"},{"id":4,"name":"more","required":false,"type":"int"}]}`
	schemaC    = `{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`
	addB       = `{"action":"add-schema","schema":` + schemaB + `},{"action":"set-current-schema","schema-id":-1}`
	specB      = `{"fields":[{"name":"id_bucket","transform":"bucket[8]","source-id":1}]}`
	addSpecB   = `{"action":"add-spec","spec":` + specB + `}`
	orderB     = `{"order-id":5,"fields":[{"transform":"identity","source-id":1,"direction":"ASC","null-order":"nulls-first"}]}`
	addOrderB  = `{"action":"add-sort-order","sort-order":` + orderB + `}`
	statsOf7   = `{"snapshot-id":7,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":[]}`
	partsOf7   = `{"snapshot-id":7,"statistics-path":"q","file-size-in-bytes":1}`
	keyA       = `{"key-id":"a","encrypted-key-metadata":"AAEC","x":1}`
	tagT       = `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1}`
	branchB    = `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1}`
	removeMain = `{"action":"remove-snapshot-ref","ref-name":"main"}`
)

// bareSnapshot returns a snapshot with the given members.
func bareSnapshot(members string) string {
	return `{"action":"add-snapshot","snapshot":{"snapshot-id":9,"timestamp-ms":1700000000000,"summary":{"operation":"append"},` + members + `}}`
}

func setMainTo(id string) string {
	return `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":` + id + `}`
}

var updateRows = slicesOf(tableRows, schemaRows, partRows, snapshotRows, refRows, removalRows, statisticsRows, requestRows)

func slicesOf(groups ...[]updateRow) []updateRow {
	var all []updateRow
	for _, rows := range groups {
		all = append(all, rows...)
	}
	return all
}

var tableRows = []updateRow{
	{name: "uuid same", updates: `{"action":"assign-uuid","uuid":"` + testUUID + `"}`, unchanged: true},
	{name: "uuid same in upper case", updates: `{"action":"ASSIGN-UUID","uuid":"` + strings.ToUpper(testUUID) + `"}`, unchanged: true},
	{name: "uuid other", updates: `{"action":"assign-uuid","uuid":"` + otherUUID + `"}`, kind: illegalKind, message: "Cannot reassign uuid"},
	{name: "uuid malformed", updates: `{"action":"assign-uuid","uuid":"x"}`, kind: illegalKind, message: "Invalid UUID", decode: true},
	{name: "uuid missing", updates: `{"action":"assign-uuid"}`, kind: bad, message: "missing string: uuid", decode: true},
	{name: "uuid null", updates: `{"action":"assign-uuid","uuid":null}`, kind: bad, message: "Cannot parse to a string value: uuid: null", decode: true},

	{name: "version same", updates: `{"action":"upgrade-format-version","format-version":2}`, unchanged: true},
	{name: "version 1 to 2", version: 1, updates: `{"action":"upgrade-format-version","format-version":2}`, want: map[string]string{
		"format-version": "2", "last-sequence-number": "0", "schema": "", "partition-spec": "", "current-snapshot-id": "-1", "next-row-id": ""}},
	{name: "version 1 to 3", version: 1, updates: `{"action":"upgrade-format-version","format-version":3}`, want: map[string]string{
		"format-version": "3", "last-sequence-number": "0", "schema": "", "partition-spec": "", "current-snapshot-id": "null", "next-row-id": "0"}},
	{name: "version 2 to 3", updates: `{"action":"upgrade-format-version","format-version":3}`, want: map[string]string{
		"format-version": "3", "current-snapshot-id": "null", "next-row-id": "0"}},
	{name: "version lower", updates: `{"action":"upgrade-format-version","format-version":1}`, kind: illegalKind, message: "Cannot downgrade v2 table to v1"},
	{name: "version 4", updates: `{"action":"upgrade-format-version","format-version":4}`, kind: illegalKind,
		message: "Cannot upgrade table to unsupported format version: v4 (supported: v3)"},
	{name: "version no integer", updates: `{"action":"upgrade-format-version","format-version":3.0}`, kind: bad, message: "Cannot parse to an integer value", decode: true},

	{name: "location", updates: `{"action":"set-location","location":"s3://b/t//"}`, want: map[string]string{"location": `"s3://b/t"`}},
	{name: "location same", updates: `{"action":"set-location","location":"file:///tmp/t/"}`, unchanged: true},
	{name: "location empty", updates: `{"action":"set-location","location":""}`, kind: illegalKind, message: "must not be empty", decode: true},
	{name: "location of slashes", updates: `{"action":"set-location","location":"//"}`, kind: illegalKind, message: "must not be empty", decode: true},
	{name: "location null", updates: `{"action":"set-location","location":null}`, kind: bad, message: "string value", decode: true},

	{name: "properties", updates: `{"action":"set-properties","updates":{"z":"1","a":"\"\\\u0001"}}`,
		want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","a":"\"\\\u0001","z":"1"}`}},
	{name: "properties replaced", setup: `{"action":"set-properties","updates":{"b":"1","c":"2"}}`, updates: `{"action":"set-properties","updates":{"b":"3"}}`,
		want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","b":"3","c":"2"}`}},
	{name: "properties by their old name", updates: `{"action":"set-properties","updated":{"a":"1"}}`,
		want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","a":"1"}`}},
	{name: "properties by both names", updates: `{"action":"set-properties","updated":{"a":"1"},"updates":{"a":"2"}}`,
		want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","a":"2"}`}},
	{name: "properties reserved", updates: `{"action":"set-properties","updates":{"format-version":"9"}}`,
		want: map[string]string{"format-version": "2", "properties": `{"write.parquet.compression-codec":"zstd","format-version":"9"}`}},
	{name: "properties none", updates: `{"action":"set-properties","updates":{}}`, unchanged: true},
	{name: "properties null value", updates: `{"action":"set-properties","updates":{"k":null}}`, kind: bad, message: "Cannot parse to a string value: k: null", decode: true},
	{name: "properties missing", updates: `{"action":"set-properties"}`, kind: bad, message: "missing field: updates", decode: true},
	{name: "properties twice", updates: `{"action":"set-properties","updates":{"k":"1","k":"2"}}`, kind: bad, message: "duplicate key", decode: true},
	{name: "properties twice, once escaped", updates: `{"action":"set-properties","updates":{"k":"1","\u006b":"2"}}`, kind: bad, message: "duplicate key", decode: true},
	{name: "previous versions no number", updates: `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"many"}}`,
		kind: illegalKind, message: "write.metadata.previous-versions-max"},
	{name: "properties removed", setup: `{"action":"set-properties","updates":{"b":"1","c":"2"}}`, updates: `{"action":"remove-properties","removals":["c","x","c"]}`,
		want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","b":"1"}`}},
	{name: "properties all removed", updates: `{"action":"remove-properties","removed":["write.parquet.compression-codec"]}`, want: map[string]string{"properties": `{}`}},
	{name: "properties removed: none", updates: `{"action":"remove-properties","removals":[]}`, unchanged: true},
	{name: "properties removed: no list", updates: `{"action":"remove-properties","removals":{"a":"b"}}`, kind: bad, message: "an array is expected", decode: true},
	{name: "properties removed: no string", updates: `{"action":"remove-properties","removals":[1]}`, kind: bad, message: "string value", decode: true},
	{name: "encryption key id is kept", setup: `{"action":"set-properties","updates":{"encryption.key-id":"k"}}`,
		updates: `{"action":"set-properties","updates":{"encryption.key-id":"other"}}`, kind: illegalKind, message: "encryption.key-id"},
	{name: "encryption key id again", setup: `{"action":"set-properties","updates":{"encryption.key-id":"k"}}`,
		updates: `{"action":"set-properties","updates":{"encryption.key-id":"k"}}`, want: map[string]string{"properties": `{"write.parquet.compression-codec":"zstd","encryption.key-id":"k"}`}},
	{name: "encryption key id is not removed", setup: `{"action":"set-properties","updates":{"encryption.key-id":"k"}}`,
		updates: `{"action":"remove-properties","removals":["encryption.key-id"]}`, kind: illegalKind, message: "encryption.key-id"},

	{name: "key", version: 3, updates: `{"action":"add-encryption-key","encryption-key":` + keyA + `}`, want: map[string]string{"encryption-keys": `[` + keyA + `]`}},
	{name: "key is there", version: 3, setup: `{"action":"add-encryption-key","encryption-key":` + keyA + `}`,
		updates: `{"action":"add-encryption-key","encryption-key":{"key-id":"a","encrypted-key-metadata":"BBBB"}}`, unchanged: true},
	{name: "key twice in one request", version: 3, updates: `{"action":"add-encryption-key","encryption-key":` + keyA + `},{"action":"add-encryption-key","encryption-key":` + keyA + `}`,
		want: map[string]string{"encryption-keys": `[` + keyA + `]`}},
	{name: "key removed", version: 3, setup: `{"action":"add-encryption-key","encryption-key":` + keyA + `}`, updates: `{"action":"remove-encryption-key","key-id":"a"}`,
		want: map[string]string{"encryption-keys": `[]`}},
	{name: "key removed: not there", version: 3, updates: `{"action":"remove-encryption-key","key-id":"a"}`, unchanged: true},
	{name: "key in v2", updates: `{"action":"add-encryption-key","encryption-key":` + keyA + `}`, kind: illegalKind, message: "it needs v3"},
	{name: "key without metadata", updates: `{"action":"add-encryption-key","encryption-key":{"key-id":"a"}}`, kind: bad, message: "encrypted-key-metadata", decode: true},
	{name: "key not base 64", updates: `{"action":"add-encryption-key","encryption-key":{"key-id":"a","encrypted-key-metadata":"?"}}`, kind: bad, message: "base64", decode: true},
	{name: "key null", updates: `{"action":"add-encryption-key","encryption-key":null}`, kind: bad, message: "missing field: encryption-key", decode: true},
	{name: "key id no string", updates: `{"action":"remove-encryption-key","key-id":7}`, kind: bad, message: "string value", decode: true},
}

var schemaRows = []updateRow{
	{name: "schema added, not current", updates: `{"action":"add-schema","schema":` + schemaC + `,"last-column-id":99}`,
		want: map[string]string{"last-column-id": "3", "current-schema-id": "0"}},
	{name: "schema added and current", updates: addB, want: map[string]string{"last-column-id": "4", "current-schema-id": "1"}},
	{name: "schema in v1", version: 1, updates: addB, want: map[string]string{"current-schema-id": "1",
		"schema": `{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},` +
			`{"id":3,"name":"note","required":false,"type":"string"},{"id":4,"name":"more","required":false,"type":"int"}]}`}},
	{name: "schema is current already", updates: `{"action":"add-schema","schema":` + testSchema + `}`, unchanged: true},
	{name: "schema of before is the last added", updates: `{"action":"add-schema","schema":` + testSchema + `},{"action":"set-current-schema","schema-id":-1}`, unchanged: true},
	{name: "schema twice in one request is the last added", updates: addB + `,{"action":"add-schema","schema":` + schemaB + `},{"action":"set-current-schema","schema-id":-1}`,
		want: map[string]string{"current-schema-id": "1", "last-column-id": "4"}},
	{name: "schema back to an earlier one", setup: addB, updates: `{"action":"add-schema","schema":` + testSchema + `},{"action":"set-current-schema","schema-id":0}`,
		want: map[string]string{"current-schema-id": "0", "last-column-id": "4"}},
	{name: "schema current: same", updates: `{"action":"set-current-schema","schema-id":0}`, unchanged: true},
	{name: "schema current: unknown", updates: `{"action":"set-current-schema","schema-id":5}`, kind: illegalKind, message: "Cannot set current schema to unknown schema: 5"},
	{name: "schema current: none added", updates: `{"action":"set-current-schema","schema-id":-1}`, kind: invalid, message: "no schema has been added"},
	{name: "schema current: no integer", updates: `{"action":"set-current-schema","schema-id":"1"}`, kind: bad, message: "integer value", decode: true},
	{name: "schema drops the partition column", updates: `{"action":"add-schema","schema":` + schemaC + `},{"action":"set-current-schema","schema-id":-1}`,
		kind: invalid, message: "Cannot find source column for partition field"},
	{name: "schema makes the partition column a struct", updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":2,"name":"at","required":false,
		"type":{"type":"struct","fields":[]}}]}},{"action":"set-current-schema","schema-id":-1}`, kind: invalid, message: "Cannot partition by non-primitive"},
	{name: "schema column named as a partition", updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":2,"name":"at","required":false,"type":"timestamp"},
		{"id":4,"name":"at_day","required":false,"type":"int"}]}},{"action":"set-current-schema","schema-id":-1}`, kind: illegalKind, message: "at_day"},
	{name: "schema type of v3", updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":4,"name":"v","required":false,"type":"variant"}]}}`,
		kind: illegalKind, message: "variant is not supported until v3"},
	{name: "schema type of v3 in v3", version: 3, updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":4,"name":"v","required":false,"type":"variant"}]}}`,
		want: map[string]string{"last-column-id": "4"}},
	{name: "schema type of v3 after the upgrade", updates: `{"action":"upgrade-format-version","format-version":3},
		{"action":"add-schema","schema":{"type":"struct","fields":[{"id":4,"name":"v","required":false,"type":"variant"}]}}`, want: map[string]string{"last-column-id": "4"}},
	{name: "schema default of v3", updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":4,"name":"v","required":false,"type":"int","initial-default":1}]}}`,
		kind: illegalKind, message: "Invalid schema for v2"},
	{name: "schema default of another type", version: 3, updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":4,"name":"v","required":false,"type":"long","write-default":"abc"}]}}`,
		kind: illegalKind, message: "abc"},
	{name: "schema with unknown identifier", updates: `{"action":"add-schema","schema":{"type":"struct","identifier-field-ids":[8],"fields":[]}}`, kind: illegalKind, message: "identifier"},
	{name: "schema with optional identifier", updates: `{"action":"add-schema","schema":{"type":"struct","identifier-field-ids":[2],"fields":[{"id":2,"name":"at","required":false,"type":"timestamp"}]}}`,
		kind: illegalKind, message: "not a required field"},
	{name: "schema missing", updates: `{"action":"add-schema"}`, kind: bad, message: "schema", decode: true},
	{name: "schema null", updates: `{"action":"add-schema","schema":null}`, kind: bad, message: "schema", decode: true},
	{name: "schemas removed", setup: addB, updates: `{"action":"remove-schemas","schema-ids":[0,9]}`, want: map[string]string{"current-schema-id": "1"}},
	{name: "schemas removed: unknown", updates: `{"action":"remove-schemas","schema-ids":[9]}`, want: map[string]string{"current-schema-id": "0"}},
	{name: "schemas removed: none", updates: `{"action":"remove-schemas","schema-ids":[]}`, unchanged: true},
	{name: "schemas removed: current", updates: `{"action":"remove-schemas","schema-ids":[0]}`, kind: illegalKind, message: "Cannot remove the current schema"},
	{name: "schemas removed: then set", setup: addB, updates: `{"action":"remove-schemas","schema-ids":[0]},{"action":"set-current-schema","schema-id":0}`, kind: illegalKind, message: "unknown schema"},
	{name: "schemas removed: no integer", updates: `{"action":"remove-schemas","schema-ids":["0"]}`, kind: bad, message: "integer value", decode: true},
	{name: "schema id after a removal", setup: addB, updates: `{"action":"remove-schemas","schema-ids":[0]},{"action":"add-schema","schema":` + schemaC + `}`,
		want: map[string]string{"current-schema-id": "1"}},
}

var partRows = []updateRow{
	{name: "spec", updates: addSpecB + `,{"action":"set-default-spec","spec-id":-1}`, want: map[string]string{"default-spec-id": "1", "last-partition-id": "1001",
		"partition-specs": `[{"spec-id":0,"fields":[{"field-id":1000,"source-id":2,"transform":"day","name":"at_day"}]},` +
			`{"spec-id":1,"fields":[{"field-id":1001,"name":"id_bucket","transform":"bucket[8]","source-id":1}]}]`}},
	{name: "spec in v1", version: 1, updates: addSpecB + `,{"action":"set-default-spec","spec-id":-1}`, want: map[string]string{"default-spec-id": "1", "last-partition-id": "1000",
		"partition-spec": `[{"field-id":1000,"name":"id_bucket","transform":"bucket[8]","source-id":1}]`}},
	{name: "spec not sequential in v1", version: 1, updates: `{"action":"add-spec","spec":{"fields":[{"name":"b","transform":"void","source-id":1,"field-id":1005}]}}`,
		kind: invalid, message: "Spec does not use sequential IDs that are required in v1"},
	{name: "spec ids are the client's", updates: `{"action":"add-spec","spec":{"spec-id":9,"fields":[{"name":"b","transform":"bucket[8]","source-id":1,"field-id":1007}]}}`,
		want: map[string]string{"last-partition-id": "1007", "default-spec-id": "0"}},
	{name: "spec with a field id of another", updates: `{"action":"add-spec","spec":{"fields":[{"name":"b","transform":"bucket[8]","source-id":1,"field-id":1000}]}}`,
		kind: invalid, message: "Conflicting partition fields"},
	{name: "spec is there", updates: `{"action":"add-spec","spec":{"spec-id":4,"fields":[{"name":"at_day","transform":"day","source-id":2,"field-id":1009}]}}`, unchanged: true},
	{name: "spec of before is the last added", updates: `{"action":"add-spec","spec":{"fields":[{"name":"at_day","transform":"day","source-id":2}]}},{"action":"set-default-spec","spec-id":-1}`, unchanged: true},
	{name: "spec of before after a new one", updates: addSpecB + `,{"action":"add-spec","spec":{"fields":[{"name":"at_day","transform":"day","source-id":2}]}},{"action":"set-default-spec","spec-id":-1}`,
		want: map[string]string{"default-spec-id": "0"}},
	{name: "spec of a missing column", updates: `{"action":"add-spec","spec":{"fields":[{"name":"b","transform":"identity","source-id":9}]}}`, kind: invalid, message: "Cannot find source column"},
	{name: "spec of an impossible transform", updates: `{"action":"add-spec","spec":{"fields":[{"name":"b","transform":"day","source-id":1}]}},{"action":"set-default-spec","spec-id":-1}`,
		kind: invalid, message: "Invalid source type long for transform: day"},
	{name: "spec named as a column", updates: `{"action":"add-spec","spec":{"fields":[{"name":"note","transform":"bucket[2]","source-id":1}]}}`, kind: illegalKind, message: "note"},
	{name: "spec without fields", updates: `{"action":"add-spec","spec":{"spec-id":0}}`, kind: bad, message: "fields", decode: true},
	{name: "spec missing", updates: `{"action":"add-spec"}`, kind: bad, message: "missing field: spec", decode: true},
	{name: "spec default: same", updates: `{"action":"set-default-spec","spec-id":0}`, unchanged: true},
	{name: "spec default before it is added", updates: `{"action":"set-default-spec","spec-id":1},` + addSpecB, want: map[string]string{"default-spec-id": "1"}},
	{name: "spec default: unknown", updates: `{"action":"set-default-spec","spec-id":5}`, kind: illegalKind, message: "Cannot find partition spec with default-spec-id=5"},
	{name: "spec default: none added", updates: `{"action":"set-default-spec","spec-id":-1}`, kind: invalid, message: "no spec has been added"},
	{name: "specs removed", setup: addSpecB, updates: `{"action":"remove-partition-specs","spec-ids":[1]}`,
		want: map[string]string{"last-partition-id": "1001", "partition-specs": `[{"spec-id":0,"fields":[{"field-id":1000,"source-id":2,"transform":"day","name":"at_day"}]}]`}},
	{name: "specs removed: unknown", updates: `{"action":"remove-partition-specs","spec-ids":[7]}`, want: map[string]string{"default-spec-id": "0"}},
	{name: "specs removed: default", updates: `{"action":"remove-partition-specs","spec-ids":[0]}`, kind: illegalKind, message: "Cannot remove the default partition spec"},
	{name: "specs removed: null", updates: `{"action":"remove-partition-specs","spec-ids":null}`, kind: bad, message: "spec-ids", decode: true},

	{name: "order", updates: addOrderB + `,{"action":"set-default-sort-order","sort-order-id":-1}`, want: map[string]string{"default-sort-order-id": "1",
		"sort-orders": `[{"order-id":0,"fields":[]},{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}]`}},
	{name: "order is there", setup: addOrderB, updates: addOrderB, unchanged: true},
	{name: "order unsorted is there", updates: `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`, unchanged: true},
	{name: "order of a missing column", updates: `{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":9,"direction":"asc","null-order":"nulls-first"}]}}`,
		kind: invalid, message: "Cannot find source column for sort field"},
	{name: "order of unknown direction", updates: `{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"up","null-order":"nulls-first"}]}}`,
		kind: bad, message: "up", decode: true},
	{name: "order default: same", updates: `{"action":"set-default-sort-order","sort-order-id":0}`, unchanged: true},
	{name: "order default: unknown", updates: `{"action":"set-default-sort-order","sort-order-id":4}`, kind: illegalKind, message: "Cannot find sort order with default-sort-order-id=4"},
	{name: "order default: none added", updates: `{"action":"set-default-sort-order","sort-order-id":-1}`, kind: invalid, message: "Cannot set last added sort order: no sort order has been added"},
	{name: "order loses its column", setup: `{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":3,"direction":"asc","null-order":"nulls-first"}]}},
		{"action":"set-default-sort-order","sort-order-id":-1}`,
		updates: `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":2,"name":"at","required":false,"type":"timestamp"}]}},{"action":"set-current-schema","schema-id":-1}`,
		kind:    invalid, message: "Cannot find source column for sort field"},
}

var requestRows = []updateRow{
	{name: "no updates", updates: ``, unchanged: true},
	{name: "unknown action", updates: `{"action":"enable-row-lineage"}`, kind: bad, message: "Unrecognized table update: enable-row-lineage", decode: true},
	{name: "view update", updates: `{"action":"add-view-version","view-version":{}}`, kind: bad, message: "Unrecognized table update: add-view-version", decode: true},
	{name: "no action", updates: `{"uuid":"x"}`, kind: bad, message: "Missing field: action", decode: true},
	{name: "action null", updates: `{"action":null}`, kind: bad, message: "Missing field: action", decode: true},
	{name: "action no string", updates: `{"action":5}`, kind: bad, message: "string value", decode: true},
	{name: "update no object", updates: `"add-schema"`, kind: bad, message: "non-object", decode: true},
	{name: "update null", updates: `null`, kind: bad, message: "non-object", decode: true},
	{name: "not JSON", updates: `{`, kind: bad, message: "Cannot parse JSON", decode: true},
	{name: "trailing comma", updates: `{"action":"assign-uuid","uuid":"` + testUUID + `",}`, kind: bad, message: "Cannot parse JSON", decode: true},
	{name: "action twice", updates: `{"action":"assign-uuid","uuid":"` + testUUID + `","action":"set-location"}`, kind: bad, message: "duplicate key", decode: true},
	{name: "duplicate deep inside", updates: bareSnapshot(`"manifest-list":"m","x":[{"a":{"b":1,"b":2}}]`), kind: bad, message: "duplicate key", decode: true},
	{name: "half a surrogate pair", updates: `{"action":"set-location","location":"\ud800"}`, kind: bad, message: "surrogate", decode: true},
	{name: "invalid UTF-8", updates: "{\"action\":\"set-location\",\"location\":\"\xff\"}", kind: bad, message: "UTF-8", decode: true},
	{name: "nested too deeply", updates: strings.Repeat("[", 600) + strings.Repeat("]", 600), kind: bad, message: "nested too deeply", decode: true},
}
