package metadata_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

func viewProperty(name, value string) string {
	return fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, name, value)
}

// viewWith returns viewDocument with each old text replaced. Each must occur exactly once.
func viewWith(t testing.TB, pairs ...string) *metadata.ViewDocument {
	t.Helper()
	raw := viewDocument
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(raw, pairs[i]) != 1 {
			t.Fatalf("%s is not in the document once", pairs[i])
		}
		raw = strings.Replace(raw, pairs[i], pairs[i+1], 1)
	}
	return mustView(t, raw)
}

// viewContent is a view document as read by package encoding/json.
type viewContent struct {
	UUID       string `json:"view-uuid"`
	Location   string
	CurrentID  int `json:"current-version-id"`
	Properties map[string]string
	Schemas    []json.RawMessage
	Versions   []json.RawMessage
	Log        []json.RawMessage `json:"version-log"`
}

func contentOf(t testing.TB, d *metadata.ViewDocument) (content viewContent) {
	t.Helper()
	if err := json.Unmarshal(d.Raw(), &content); err != nil {
		t.Fatalf("%s: %v", d.Raw(), err)
	}
	return content
}

// idsOf returns the ids of parts of a document. key is the member with the id.
func idsOf(t testing.TB, parts []json.RawMessage, key string) (ids []int) {
	t.Helper()
	for _, raw := range parts {
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, int(members[key].(float64)))
	}
	return ids
}

// viewIDs returns the ids of the versions, the schemas and the log of a view.
func viewIDs(t testing.TB, d *metadata.ViewDocument) string {
	t.Helper()
	content := contentOf(t, d)
	return fmt.Sprint(idsOf(t, content.Versions, "version-id"), idsOf(t, content.Schemas, "schema-id"), idsOf(t, content.Log, "version-id"))
}

const (
	someSchema  = `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"n","required":false,"type":"int"}]}}`
	otherSchema = `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"m","required":false,"type":"int"}]}}`
)

// A version is added even if it does not become the current one.
func TestVersionIsAdded(t *testing.T) {
	t.Parallel()
	d := mustApplyView(t, mustView(t, viewDocument), addVersion(3, 0, "spark:select 3"))
	if got, want := viewIDs(t, d), "[1 2 3] [0 1] [1 2]"; got != want || d.CurrentVersionID() != 2 {
		t.Errorf("ids %s, want %s; current is %d", got, want, d.CurrentVersionID())
	}
}

// The last schema is the last one in the request, even if an equal one already existed.
func TestLastSchema(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		updates []string
		schema  int
	}{
		{[]string{someSchema, otherSchema}, 3},
		{[]string{otherSchema, someSchema, otherSchema}, 2},
		{[]string{someSchema, `{"action":"add-schema","schema":{"type":"struct","fields":[]}}`}, 0},
	} {
		d := mustApplyView(t, mustView(t, viewDocument), append(tt.updates, addVersion(3, -1, "spark:x"))...)
		if got := idsOf(t, contentOf(t, d).Versions, "schema-id")[2]; got != tt.schema {
			t.Errorf("after %s the last schema is %d, want %d", tt.updates, got, tt.schema)
		}
	}
}

// Whatever the order in which another writer left versions and schemas, new ids follow the highest,
// and the oldest versions are dropped.
func TestViewsInOtherOrders(t *testing.T) {
	t.Parallel()
	d := viewWith(t, `"version-id":1,"timestamp-ms":1000,"schema-id":0`, `"version-id":7,"timestamp-ms":1000,"schema-id":4`,
		`"schema-id":0,"fields"`, `"schema-id":4,"fields"`, `{"timestamp-ms":1000,"version-id":1},`, ``)
	d = mustApplyView(t, d, someSchema, addVersion(0, -1, "spark:8"))
	if got, want := viewIDs(t, d), "[7 2 8] [4 1 5] [2]"; got != want {
		t.Errorf("ids %s, want %s", got, want)
	}
	d = mustApplyView(t, d, setVersion(8), viewProperty("version.history.num-entries", "2"))
	if got, want := viewIDs(t, d), "[7 8] [4 1 5] [8]"; got != want {
		t.Errorf("then ids %s, want %s", got, want)
	}
}

// The current version and versions added by the request stay, however few should be kept. If no
// version is dropped, the log is unchanged.
func TestTrimKeeps(t *testing.T) {
	t.Parallel()
	d := mustApplyView(t, mustView(t, viewDocument), setVersion(1), addVersion(3, 0, "spark:3"), addVersion(4, 0, "spark:4"), viewProperty("version.history.num-entries", "1"))
	if got, want := viewIDs(t, d), "[1 3 4] [0 1] [1]"; got != want {
		t.Errorf("ids %s, want %s", got, want)
	}
	d = mustApplyView(t, viewWith(t, `{"timestamp-ms":1000,"version-id":1}`, `{"timestamp-ms":1000,"version-id":6}`), setVersion(1), viewProperty("version.history.num-entries", "2"))
	if got, want := viewIDs(t, d), "[1 2] [0 1] [6 2 1]"; got != want {
		t.Errorf("ids %s, want %s", got, want)
	}
}

// A representation that is not SQL has no dialect that could be lost. A duplicate query has one.
func TestDialectsOfOtherWriters(t *testing.T) {
	t.Parallel()
	current := `{"type":"sql","sql":"select 2","dialect":"Spark","y":[]}`
	plan := viewWith(t, current, `{"type":"plan"},`+current)
	mustApplyView(t, plan, addVersion(3, 0, "spark:x"), setVersion(-1))
	twice := viewWith(t, current, current+`,`+current)
	_, err := applyView(t, twice, addVersion(3, 0, "trino:x"), setVersion(-1))
	if want := "Previous dialects: [spark]\nNew dialects: [trino]"; !strings.HasSuffix(moorage.MessageOf(err), want) {
		t.Errorf("Apply = %v, want %s", err, want)
	}
}

// If a view has reached a limit, the error reports that.
func TestApplyViewAtLimits(t *testing.T) {
	t.Parallel()
	highest := fmt.Sprint(math.MaxInt32)
	dialect := []string{addVersion(3, 0, "trino:x"), setVersion(-1)}
	tests := []struct {
		name    string
		d       *metadata.ViewDocument
		updates []string
		text    string
	}{
		{"highest version", mustApplyView(t, mustView(t, viewDocument), addVersion(math.MaxInt32, 0, "spark:x")), []string{addVersion(3, 0, "spark:y")}, "Cannot add a version above the highest possible id: " + highest},
		{"highest schema", viewWith(t, `"schema-id":0,"fields"`, `"schema-id":`+highest+`,"fields"`), []string{someSchema}, "Cannot add a schema above the highest possible id: " + highest},
		{"too long a history", mustView(t, viewDocument), []string{viewProperty("version.history.num-entries", "2147483648")}, "Cannot parse property version.history.num-entries: 2147483648"},
		{"loss of dialects not allowed", mustView(t, viewDocument), append(dialect, viewProperty("replace.drop-dialect.allowed", "false")), "Cannot replace view due to loss of view dialects"},
		{"loss of dialects not allowed any more", mustApplyView(t, mustView(t, viewDocument), viewProperty("replace.drop-dialect.allowed", "true")), append(dialect, viewProperty("replace.drop-dialect.allowed", "no")), "Cannot replace view due to loss of view dialects"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := applyView(t, tt.d, tt.updates...)
			if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.HasPrefix(moorage.MessageOf(err), tt.text) {
				t.Errorf("Apply = %v %v, want %q", moorage.KindOf(err), err, tt.text)
			}
		})
	}
	longest := mustApplyView(t, mustView(t, viewDocument), viewProperty("version.history.num-entries", highest), addVersion(3, 0, "spark:x"))
	if got, want := viewIDs(t, longest), "[1 2 3] [0 1] [1 2]"; got != want {
		t.Errorf("ids %s, want %s", got, want)
	}
}

// An update that changes something still counts if later updates change nothing.
func TestChangeStaysAChange(t *testing.T) {
	t.Parallel()
	nothing := []string{
		`{"action":"set-location","location":"s3://bucket/view"}`, `{"action":"remove-properties","removals":[]}`, `{"action":"set-properties","updates":{}}`,
		`{"action":"assign-uuid","uuid":"` + viewUUID + `"}`, `{"action":"upgrade-format-version","format-version":1}`,
		`{"action":"add-schema","schema":{"type":"struct","fields":[]}}`, setVersion(1),
	}
	for _, after := range nothing {
		if d := mustApplyView(t, mustView(t, viewDocument), setVersion(1), after); d.CurrentVersionID() != 1 {
			t.Errorf("lost with %s", after)
		}
	}
}
