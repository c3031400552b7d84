package metadata_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/metadata"
)

const viewUUID = "fa6506c3-7681-40c8-86dc-e36561f83385"

// viewDocument is a view with members and spellings that a careless parser would lose.
const viewDocument = `{ "view-uuid":"fa6506c3-7681-40c8-86dc-e36561f83385", "format-version":1, "x-owner":{"a":1.50},
 "location":"s3://bucket/view/",
 "properties":{"comment":"caf\u00e9", "k":"v"},
 "current-version-id":2,
 "versions":[
  {"version-id":1,"timestamp-ms":1000,"schema-id":0,"summary":{"engine-name":"spark"},"default-namespace":["a"],"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}],"storage-table":null},
  {"version-id":2,"timestamp-ms":2000,"schema-id":1,"summary":{},"default-catalog":"c","default-namespace":[],"representations":[{"type":"sql","sql":"select 2","dialect":"Spark","y":[]}]}],
 "schemas":[{"type":"struct","schema-id":0,"fields":[]},{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"c","required":false,"type":"long","initial-default":9223372036854775807}]}],
 "version-log":[{"timestamp-ms":1000,"version-id":1},{"version-id":2,"timestamp-ms":2000}]}`

func viewEnv() metadata.Env {
	return metadata.Env{Now: time.UnixMilli(9000), NewUUID: func() string { return viewUUID }}
}

func mustView(t testing.TB, raw string) *metadata.ViewDocument {
	t.Helper()
	d, err := metadata.ParseView([]byte(raw))
	if err != nil {
		t.Fatalf("ParseView: %v", err)
	}
	return d
}

func applyView(t testing.TB, d *metadata.ViewDocument, updates ...string) (*metadata.ViewDocument, error) {
	t.Helper()
	decoded, err := checked(metadata.DecodeViewUpdates, "["+strings.Join(updates, ",")+"]")
	if err != nil {
		t.Fatalf("ViewUpdates: %v", err)
	}
	return d.Apply(decoded, viewEnv())
}

func mustApplyView(t testing.TB, d *metadata.ViewDocument, updates ...string) *metadata.ViewDocument {
	t.Helper()
	changed, err := applyView(t, d, updates...)
	if err != nil {
		t.Fatalf("Apply(%s): %v", updates, err)
	}
	checkViewIndex(t, changed)
	return changed
}

// addVersion returns an add-view-version update. The queries are in the form "dialect:sql".
func addVersion(id, schemaID int, queries ...string) string {
	var representations []string
	for _, q := range queries {
		dialect, sql, _ := strings.Cut(q, ":")
		representations = append(representations, fmt.Sprintf(`{"type":"sql","sql":%q,"dialect":%q}`, sql, dialect))
	}
	return fmt.Sprintf(`{"action":"add-view-version","view-version":{"version-id":%d,"timestamp-ms":%d,"schema-id":%d,`+
		`"summary":{},"default-namespace":[],"representations":[%s]}}`, id, id*1000, schemaID, strings.Join(representations, ","))
}

func setVersion(id int) string {
	return fmt.Sprintf(`{"action":"set-current-view-version","view-version-id":%d}`, id)
}

func TestParseView(t *testing.T) {
	t.Parallel()
	d := mustView(t, viewDocument)
	comment, _ := d.Property("comment")
	_, missing := d.Property("x")
	if d.UUID() != viewUUID || d.Location() != "s3://bucket/view" || d.CurrentVersionID() != 2 ||
		comment != "café" || missing || len(contentOf(t, d).Properties) != 2 || string(d.Raw()) != viewDocument || d.CostBytes() < int64(len(viewDocument)) {
		t.Errorf("parsed to %+v", d)
	}
	for i, sent := range contentOf(t, d).Versions { // each is written as it was sent
		added := strings.NewReplacer(fmt.Sprintf(`"version-id":%d`, i+1), `"version-id":9`, "select", "select 9,").Replace(string(sent))
		changed := mustApplyView(t, d, `{"action":"add-view-version","view-version":`+added+`}`)
		if got := string(contentOf(t, changed).Versions[2]); got != added || got == string(sent) {
			t.Errorf("version %s is written as %s", added, got)
		}
	}
}

func TestParseViewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, changed string
		kind               moorage.Kind
		text               string
	}{
		{"no uuid", `"view-uuid":"fa6506c3-7681-40c8-86dc-e36561f83385",`, ``, moorage.KindBadRequest, "Cannot parse missing string: view-uuid"},
		{"of a table", `"view-uuid":`, `"table-uuid":`, moorage.KindBadRequest, "Cannot read the metadata of a table as that of a view"},
		{"no version", `"format-version":1,`, ``, moorage.KindBadRequest, "Cannot parse missing int: format-version"},
		{"version 0", `"format-version":1`, `"format-version":0`, moorage.KindIllegalArgument, "Unsupported format version: 0"},
		{"version 2", `"format-version":1`, `"format-version":2`, moorage.KindIllegalArgument, "Unsupported format version: 2"},
		{"no location", `"location":"s3://bucket/view/",`, ``, moorage.KindBadRequest, "Cannot parse missing string: location"},
		{"null properties", `{"comment":"caf\u00e9", "k":"v"}`, `null`, moorage.KindBadRequest, "Cannot parse string map from non-object value: properties: null"},
		{"property number", `"k":"v"`, `"k":1`, moorage.KindBadRequest, "Cannot parse to a string value: k: 1"},
		{"no versions", `"versions":`, `"versionz":`, moorage.KindBadRequest, "Cannot parse missing field: versions"},
		{"no log", `"version-log":`, `"version-logz":`, moorage.KindBadRequest, "Cannot parse missing field: version-log"},
		{"log entry text", `{"timestamp-ms":1000,"version-id":1}`, `"x"`, moorage.KindBadRequest, `Cannot parse view history entry from non-object: "x"`},
		{"log entry without time", `{"timestamp-ms":1000,"version-id":1}`, `{"version-id":1}`, moorage.KindBadRequest, "Cannot parse missing long: timestamp-ms"},
		{"no schemas", `"schemas":`, `"schemaz":`, moorage.KindBadRequest, "Cannot parse missing field: schemas"},
		{"schema twice", `"schema-id":0,"fields"`, `"schema-id":1,"fields"`, moorage.KindIllegalArgument, "Multiple entries with same key: 1"},
		{"version twice", `"version-id":1,"timestamp-ms":1000,"schema-id"`, `"version-id":2,"timestamp-ms":1000,"schema-id"`, moorage.KindIllegalArgument, "Multiple entries with same key: 2"},
		{"current version", `"current-version-id":2`, `"current-version-id":7`, moorage.KindIllegalArgument, "Cannot find current version 7 in view versions: [1, 2]"},
		{"current schema", `"timestamp-ms":2000,"schema-id":1`, `"timestamp-ms":2000,"schema-id":7`, moorage.KindIllegalArgument, "Cannot find current schema with id 7 in schemas: [0, 1]"},
		{"version without summary", `"summary":{"engine-name":"spark"},`, ``, moorage.KindBadRequest, "Cannot parse missing field: summary"},
		{"version without namespace", `"default-namespace":["a"],`, ``, moorage.KindBadRequest, "Cannot parse missing field: default-namespace"},
		{"namespace number", `["a"]`, `[1]`, moorage.KindBadRequest, "Cannot parse to a string value: default-namespace: 1"},
		{"query without sql", `"sql":"select 1",`, ``, moorage.KindBadRequest, "Cannot parse missing string: sql"},
		{"query without dialect", `,"dialect":"spark"`, ``, moorage.KindBadRequest, "Cannot parse missing string: dialect"},
		{"query without type", `{"type":"sql","sql":"select 1"`, `{"sql":"select 1"`, moorage.KindBadRequest, "Cannot parse missing string: type"},
		{"key twice", `"format-version":1,`, `"format-version":1,"format-version":1,`, moorage.KindBadRequest, `duplicate key "format-version"`},
		{"property twice", `"k":"v"`, `"k":"v","\u006b":"v"`, moorage.KindBadRequest, `duplicate key "k"`},
		{"key twice deep inside", `"summary":{"engine-name":"spark"}`, `"summary":{"x":{"y":1,"y":1}}`, moorage.KindBadRequest, `duplicate key "y"`},
		{"cut", `"version-log"`, ``, moorage.KindBadRequest, "Cannot parse JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := strings.Replace(viewDocument, tt.old, tt.changed, 1)
			if raw == viewDocument {
				t.Fatalf("%s is not in the document", tt.old)
			}
			_, err := metadata.ParseView([]byte(raw))
			if moorage.KindOf(err) != tt.kind || !strings.Contains(moorage.MessageOf(err), tt.text) {
				t.Errorf("ParseView = %v %v, want %v %q", moorage.KindOf(err), err, tt.kind, tt.text)
			}
		})
	}
}

func TestParseViewAcceptsWhatWasWrittenElsewhere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"no properties":           {`"properties":{"comment":"caf\u00e9", "k":"v"},`, ``},
		"two queries per dialect": {`{"type":"sql","sql":"select 1","dialect":"spark"}`, `{"type":"sql","sql":"select 1","dialect":"spark"},{"type":"sql","sql":"select 1","dialect":"spark"}`},
		"other representation":    {`{"type":"sql","sql":"select 1","dialect":"spark"}`, `{"type":"plan","bytes":"00"}`},
		"old version, no schema":  {`"timestamp-ms":1000,"schema-id":0`, `"timestamp-ms":1000,"schema-id":9`},
	} {
		raw := strings.Replace(viewDocument, change[0], change[1], 1)
		if raw == viewDocument {
			t.Fatalf("%s: %s is not in the document", name, change[0])
		}
		if _, err := metadata.ParseView([]byte(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewView(t *testing.T) {
	t.Parallel()
	request := metadata.CreateView{
		Location:   "s3://b/v/",
		Schema:     []byte(`{"type":"struct","schema-id":7,"fields":[{"id":5,"name":"c","required":false,"type":"double","write-default":0.0}]}`),
		Version:    []byte(`{"version-id":9,"timestamp-ms":1500,"schema-id":3,"summary":{"e":"x"},"z":1.0,"default-namespace":["n"],"representations":[{"type":"SQL","sql":"s","dialect":"trino"}]}`),
		Properties: map[string]string{"b": "2", "a": "\"1\""},
	}
	const want = `{"view-uuid":"fa6506c3-7681-40c8-86dc-e36561f83385","format-version":1,"location":"s3://b/v",` +
		`"properties":{"a":"\"1\"","b":"2"},"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":5,"name":"c","required":false,"type":"double","write-default":0.0}]}],` +
		`"current-version-id":1,"versions":[{"version-id":1,"timestamp-ms":1500,"schema-id":0,"summary":{"e":"x"},"z":1.0,"default-namespace":["n"],"representations":[{"type":"SQL","sql":"s","dialect":"trino"}]}],` +
		`"version-log":[{"timestamp-ms":1500,"version-id":1}]}`
	d, err := metadata.NewView(request, viewEnv())
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Raw()) != want {
		t.Errorf("NewView\n got %s\nwant %s", d.Raw(), want)
	}

	version := func(old, changed string) metadata.CreateView {
		r := request
		r.Version = []byte(strings.Replace(string(request.Version), old, changed, 1))
		return r
	}
	noLocation := request
	noLocation.Location = ""
	badSchema := request
	badSchema.Schema = []byte(`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"text"}]}`)
	badDefault := request
	badDefault.Schema = []byte(`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"long","write-default":"x"}]}`)
	tests := []struct {
		name    string
		request metadata.CreateView
		kind    moorage.Kind
		text    string
	}{
		{"no location", noLocation, moorage.KindIllegalArgument, "Invalid location: null"},
		{"no schema", metadata.CreateView{Location: "x", Version: request.Version}, moorage.KindBadRequest, "Cannot parse JSON"},
		{"no version", metadata.CreateView{Location: "x", Schema: request.Schema}, moorage.KindBadRequest, "Cannot parse JSON"},
		{"type", badSchema, moorage.KindBadRequest, "Cannot parse type string to primitive: text"},
		{"default", badDefault, moorage.KindIllegalArgument, "Cannot parse default as a long value"},
		{"no query", version(`{"type":"SQL","sql":"s","dialect":"trino"}`, ``), moorage.KindIllegalArgument, "Cannot create view without specifying a query"},
		{"two queries", version(`[{"type"`, `[{"type":"sql","sql":"t","dialect":"TRINO"},{"type"`), moorage.KindIllegalArgument, "Invalid view version: Cannot add multiple queries for dialect trino"},
		{"other representation", version(`[{"type"`, `[{"type":"Plan"},{"type"`), moorage.KindIllegalArgument, "Found unsupported view representations: [plan]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := metadata.NewView(tt.request, viewEnv())
			if moorage.KindOf(err) != tt.kind || !strings.HasPrefix(moorage.MessageOf(err), tt.text) {
				t.Errorf("NewView = %v %v, want %v %q", moorage.KindOf(err), err, tt.kind, tt.text)
			}
		})
	}
}

func TestApplyViewChangesOnlyWhatItMust(t *testing.T) {
	t.Parallel()
	schema := `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"n","required":false,"type":"INT"}]}}`
	tests := []struct {
		name    string
		updates []string
		changes []string // old, new, old, new …
	}{
		{"nothing", nil, nil},
		{"no change", []string{
			`{"action":"assign-uuid","uuid":"FA6506C3-7681-40C8-86DC-E36561F83385"}`,
			`{"action":"upgrade-format-version","format-version":1}`,
			`{"action":"set-location","location":"s3://bucket/view"}`,
			`{"action":"set-properties","updates":{}}`, `{"action":"remove-properties","removals":[]}`,
			setVersion(2),
		}, nil},
		{"location", []string{`{"action":"Set-Location","location":"s3://b/\"x\"/"}`}, []string{`s3://bucket/view/`, `s3://b/\"x\"`}},
		{
			"properties",
			[]string{`{"action":"set-properties","updates":{"z":"1","k":"w"}}`, `{"action":"remove-properties","removals":["absent"]}`},
			[]string{`{"comment":"caf\u00e9", "k":"v"}`, `{"comment":"caf\u00e9","k":"w","z":"1"}`},
		},
		{
			"properties by their old names",
			[]string{`{"action":"set-properties","updated":{"z":"1"}}`, `{"action":"remove-properties","removed":["k","comment"]}`},
			[]string{`{"comment":"caf\u00e9", "k":"v"}`, `{"z":"1"}`},
		},
		{
			"schema", []string{schema},
			[]string{
				`"schemas":[{"type":"struct","schema-id":0,"fields":[]},{`, `"schemas":[{"type":"struct","schema-id":0,"fields":[]},{`,
				`9223372036854775807}]}]`, `9223372036854775807}]},{"schema-id":2,"type":"struct","fields":[{"id":1,"name":"n","required":false,"type":"int"}]}]`,
			},
		},
		{
			"equal schema", []string{`{"action":"add-schema","schema":{"type":"struct","schema-id":5,"fields":[]}}`}, nil,
		},
		{
			"back to an earlier version", []string{setVersion(1)},
			[]string{
				`"current-version-id":2`, `"current-version-id":1`,
				`{"version-id":2,"timestamp-ms":2000}]`, `{"version-id":2,"timestamp-ms":2000},{"timestamp-ms":9000,"version-id":1}]`,
			},
		},
		{
			"new version", []string{addVersion(3, 0, "spark:select 3"), setVersion(-1)},
			[]string{
				`"current-version-id":2`, `"current-version-id":3`,
				`"y":[]}]}]`, `"y":[]}]},{"version-id":3,"timestamp-ms":3000,"schema-id":0,"summary":{},"default-namespace":[],"representations":[{"type":"sql","sql":"select 3","dialect":"spark"}]}]`,
				`"schema-id":1,"summary":{},"default-catalog"`, `"schema-id":1,"summary":{},"default-catalog"`,
				`{"version-id":2,"timestamp-ms":2000}]`, `{"version-id":2,"timestamp-ms":2000},{"timestamp-ms":3000,"version-id":3}]`,
			},
		},
	}
	d := mustView(t, viewDocument)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := strings.NewReplacer(tt.changes...).Replace(viewDocument)
			got := mustApplyView(t, d, tt.updates...)
			if tt.changes == nil && got != d {
				t.Errorf("a new document: %s", got.Raw())
			}
			if normalised(string(got.Raw())) != normalised(want) {
				t.Errorf("\n got %s\nwant %s", got.Raw(), want)
			}
		})
	}
}

// normalised removes the line breaks between elements of the test document, because a changed array
// is written without them.
func normalised(raw string) string {
	return strings.NewReplacer("[\n  {", "[{", ",\n  {", ",{").Replace(raw)
}

func TestViewVersionIDs(t *testing.T) {
	t.Parallel()
	d := mustView(t, viewDocument)
	same := strings.NewReplacer(`"version-id":2`, `"version-id":77`, `"timestamp-ms":2000`, `"timestamp-ms":3`).Replace(string(contentOf(t, d).Versions[1]))
	again := `{"action":"add-view-version","view-version":` + same + `}`
	sameSchema := `{"action":"add-schema","schema":` + string(contentOf(t, d).Schemas[1]) + `}`
	tests := []struct {
		name    string
		updates []string
		current int
	}{
		{"higher id stays", []string{addVersion(40, 0, "spark:x"), setVersion(-1)}, 40},
		{"taken id", []string{addVersion(2, 0, "spark:x"), setVersion(-1)}, 3},
		{"low id", []string{addVersion(0, 0, "spark:x"), setVersion(-1)}, 3},
		{"two of one id", []string{addVersion(3, 0, "spark:x"), addVersion(3, 0, "spark:y"), setVersion(-1)}, 4},
		{"the same twice", []string{addVersion(3, 0, "spark:x"), addVersion(9, 0, "spark:x"), setVersion(-1)}, 3},
		{"equal to the current", []string{again, setVersion(-1)}, 2},
		{"equal with last schema", []string{sameSchema, strings.Replace(again, `"schema-id":1`, `"schema-id":-1`, 1), setVersion(-1)}, 2},
		{"other schema", []string{strings.Replace(again, `"schema-id":1`, `"schema-id":0`, 1), setVersion(-1)}, 77},
		{"other summary", []string{strings.Replace(again, `"summary":{}`, `"summary":{"a":"b"}`, 1), setVersion(-1)}, 77},
		{"other catalog", []string{strings.Replace(again, `"default-catalog":"c"`, `"default-catalog":null`, 1), setVersion(-1)}, 77},
		{"other namespace", []string{strings.Replace(again, `"default-namespace":[]`, `"default-namespace":["x"]`, 1), setVersion(-1)}, 77},
		{"other sql", []string{strings.Replace(again, `select 2`, `select 3`, 1), setVersion(-1)}, 77},
		{"last of several", []string{addVersion(3, 0, "spark:x"), addVersion(4, 0, "spark:y"), setVersion(3)}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := mustApplyView(t, d, tt.updates...).CurrentVersionID(); got != tt.current {
				t.Errorf("current version %d, want %d", got, tt.current)
			}
		})
	}
}

func TestApplyViewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		updates []string
		kind    moorage.Kind
		text    string
	}{
		{"uuid", []string{`{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}`}, moorage.KindIllegalArgument, "Cannot reassign uuid"},
		{"downgrade", []string{`{"action":"upgrade-format-version","format-version":0}`}, moorage.KindIllegalArgument, "Cannot downgrade v1 view to v0"},
		{"upgrade", []string{`{"action":"upgrade-format-version","format-version":2}`}, moorage.KindIllegalArgument, "Unsupported format version: 2"},
		{"schema", []string{`{"action":"add-schema","schema":` + `{"identifier-field-ids":[1],"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"}]}` + `}`}, moorage.KindIllegalArgument, "Cannot add field c as an identifier field: not a required field"},
		{"last schema", []string{addVersion(3, -1, "spark:x")}, moorage.KindValidation, "Cannot set last added schema: no schema has been added"},
		{"unknown schema", []string{addVersion(3, 9, "spark:x")}, moorage.KindIllegalArgument, "Cannot add version with unknown schema: 9"},
		{"two queries", []string{addVersion(3, 0, "trino:x", "Trino:y")}, moorage.KindIllegalArgument, "Invalid view version: Cannot add multiple queries for dialect trino"},
		{"last version", []string{setVersion(-1)}, moorage.KindValidation, "Cannot set last version id: no current version id has been set"},
		{"unknown version", []string{setVersion(5)}, moorage.KindIllegalArgument, "Cannot set current version to unknown version: 5"},
		{"lost dialect", []string{addVersion(3, 0, "trino:x", "duckdb:x"), setVersion(-1)}, moorage.KindIllegalArgument, "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\nPrevious dialects: [spark]\nNew dialects: [duckdb, trino]"},
		{"history of none", []string{viewProperty("version.history.num-entries", "0")}, moorage.KindIllegalArgument, "version.history.num-entries must be positive but was 0"},
		{"history of text", []string{viewProperty("version.history.num-entries", "all")}, moorage.KindIllegalArgument, "Cannot parse property version.history.num-entries: all"},
	}
	d := mustView(t, viewDocument)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := applyView(t, d, tt.updates...)
			if moorage.KindOf(err) != tt.kind || moorage.MessageOf(err) != tt.text {
				t.Errorf("Apply = %v %v, want %v %q", moorage.KindOf(err), err, tt.kind, tt.text)
			}
		})
	}
	mustApplyView(t, d, viewProperty("replace.drop-dialect.allowed", "True"), addVersion(3, 0, "trino:x"), setVersion(-1))
	mustApplyView(t, d, addVersion(3, 0, "trino:x", "SPARK:y"), setVersion(-1))
	mustApplyView(t, d, addVersion(3, 0, "trino:x"))
}

func TestViewHistoryIsTrimmed(t *testing.T) {
	t.Parallel()
	entries := func(n int) string {
		return fmt.Sprintf(`{"action":"set-properties","updates":{"version.history.num-entries":"%d"}}`, n)
	}
	many := func(from, to int) []string {
		var updates []string
		for id := from; id <= to; id++ {
			updates = append(updates, addVersion(id, 0, fmt.Sprintf("spark:%d", id)), setVersion(id))
		}
		return updates
	}
	tests := []struct {
		name     string
		commits  [][]string
		versions string
		log      string
	}{
		{"default is ten, one entry per request", [][]string{many(3, 6), many(7, 10), many(11, 12)}, "[3 4 5 6 7 8 9 10 11 12]", "[6 10 12]"},
		{"all of one request stay", [][]string{append(many(3, 14), entries(1))}, "[3 4 5 6 7 8 9 10 11 12 13 14]", "[14]"},
		{"one", [][]string{{entries(1)}}, "[2]", "[2]"},
		{"two of four", [][]string{many(3, 3), many(4, 4), {entries(2)}}, "[3 4]", "[3 4]"},
		{"an old current version stays", [][]string{many(3, 3), many(4, 4), {setVersion(1)}, {entries(2)}}, "[1 4]", "[4 1]"},
		{"the log begins after the last that is gone", [][]string{many(3, 3), {setVersion(2)}, {setVersion(3)}, {setVersion(1)}, {entries(2)}}, "[1 3]", "[3 1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := mustView(t, viewDocument)
			for _, updates := range tt.commits {
				d = mustApplyView(t, d, updates...)
			}
			content := contentOf(t, d)
			versions, log := idsOf(t, content.Versions, "version-id"), idsOf(t, content.Log, "version-id")
			if fmt.Sprint(versions) != tt.versions || fmt.Sprint(log) != tt.log {
				t.Errorf("versions %v, log %v; want %s, %s", versions, log, tt.versions, tt.log)
			}
		})
	}
}

func TestDecodeViewUpdatesRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, text string }{
		{"object", `{}`, "Cannot parse JSON"},
		{"text behind the array", `[]x`, "data after the value"},
		{"element", `[1]`, "Cannot parse metadata update from non-object: 1"},
		{"no action", `[{}]`, "Cannot parse metadata update. Missing field: action"},
		{"table action", `[{"action":"set-current-schema","schema-id":1}]`, "Unrecognized view update: set-current-schema"},
		{"no uuid", `[{"action":"assign-uuid"}]`, "Cannot parse missing string: uuid"},
		{"no format", `[{"action":"upgrade-format-version"}]`, "Cannot parse missing int: format-version"},
		{"no schema", `[{"action":"add-schema"}]`, "Cannot parse missing field: schema"},
		{"null schema", `[{"action":"add-schema","schema":null}]`, "Cannot parse missing field: schema"},
		{"null location", `[{"action":"set-location","location":null}]`, "Cannot parse to a string value: location: null"},
		{"empty location", `[{"action":"set-location","location":""}]`, "Invalid view location"},
		{"no properties", `[{"action":"set-properties"}]`, "Cannot parse missing field: updates"},
		{"null property", `[{"action":"set-properties","updates":{"a":null}}]`, "Cannot parse to a string value: a: null"},
		{"no removals", `[{"action":"remove-properties"}]`, "Cannot parse missing field: removals"},
		{"no version", `[{"action":"add-view-version"}]`, "Cannot parse missing field: view-version"},
		{"version text", `[{"action":"add-view-version","view-version":"x"}]`, "Cannot parse view version from non-object"},
		{"no version id", `[{"action":"set-current-view-version"}]`, "Cannot parse missing int: view-version-id"},
		{"duplicate key", `[{"action":"set-location","location":"a","location":"b"}]`, "duplicate key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := metadata.StrictViewUpdates([]byte(tt.raw))
			kind := moorage.KindOf(err)
			if kind != moorage.KindBadRequest && kind != moorage.KindIllegalArgument || !strings.Contains(moorage.MessageOf(err), tt.text) {
				t.Errorf("metadata.StrictViewUpdates(%s) = %v %v, want %q", tt.raw, kind, err, tt.text)
			}
		})
	}
	updates, err := metadata.StrictViewUpdates([]byte(`[{"action":"Set-Current-View-Version","view-version-id":1}]`))
	if err != nil || len(updates) != 1 {
		t.Errorf("strictViewUpdates = %v, %v", updates, err)
	}
	for many, want := range map[int]error{metadata.ViewUpdatesMax: nil, metadata.ViewUpdatesMax + 1: moorage.Errorf(moorage.KindBadRequest, "")} {
		raw := "[" + strings.Repeat(setVersion(1)+",", many-1) + setVersion(1) + "]"
		if _, err := metadata.StrictViewUpdates([]byte(raw)); moorage.KindOf(err) != moorage.KindOf(want) {
			t.Errorf("%d updates: %v", many, err)
		}
	}
}

func TestCheckView(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		kind      moorage.Kind
		text      string
	}{
		{"none", `[]`, 0, ""},
		{"uuid", `[{"type":"ASSERT-view-uuid","uuid":"FA6506C3-7681-40C8-86DC-E36561F83385"}]`, 0, ""},
		{"other uuid", `[{"type":"assert-view-uuid","uuid":"x"}]`, moorage.KindCommitFailed, "Requirement failed: view UUID does not match: expected fa6506c3-7681-40c8-86dc-e36561f83385 != x"},
		{"of a table", `[{"type":"assert-table-uuid","uuid":"fa6506c3-7681-40c8-86dc-e36561f83385"}]`, moorage.KindValidation, "Cannot validate assert-table-uuid against a view"},
		{"create", `[{"type":"assert-create"}]`, moorage.KindValidation, "Cannot validate assert-create against a view"},
	}
	d := mustView(t, viewDocument)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requirements, err := checked(metadata.DecodeViewRequirements, tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			err = metadata.CheckView(d, requirements)
			if (err == nil) != (tt.text == "") || moorage.MessageOf(err) != tt.text || err != nil && moorage.KindOf(err) != tt.kind {
				t.Errorf("CheckView = %v %v, want %v %q", moorage.KindOf(err), err, tt.kind, tt.text)
			}
			if got := metadata.AssertsViewUUID(requirements); got != strings.HasSuffix(tt.name, "uuid") {
				t.Errorf("AssertsViewUUID = %t", got)
			}
		})
	}
	for _, raw := range []string{`{}`, `[{}]`, `[{"type":"assert-view-uuid"}]`, `[{"type":"assert-peace"}]`, `[{"type":"assert-table-uuid"}]`} {
		if _, err := metadata.StrictViewRequirements([]byte(raw)); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("metadata.StrictViewRequirements(%s) = %v, want a bad request", raw, err)
		}
	}
}
