package management

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/registry"
)

// fakeLabels records its calls. The object has the label team, in the version 07.
type fakeLabels struct {
	*fake

	caller moorage.Caller
	key    *catalog.Key
}

var fakeVersion = registry.ID{15: 7}

func (f fakeLabels) Load(_ context.Context, kind access.Kind, ident moorage.Identifier) (registry.Labels, registry.ID, error) {
	return registry.Labels{
		Object: map[string]string{"team": "billing"},
		Fields: []registry.FieldLabels{{Field: 3, Labels: map[string]string{"classification": "pii"}}},
	}, fakeVersion, f.call(fmt.Sprint("Load ", kind, " ", ident))
}

func (f fakeLabels) Put(_ context.Context, kind access.Kind, ident moorage.Identifier, labels registry.Labels,
	match func(registry.ID) bool) (registry.ID, error) {
	key := "none"
	if f.key != nil {
		key = f.key.ID
	}
	if !match(fakeVersion) {
		return registry.ID{}, moorage.Errorf(moorage.KindPreconditionFailed, "changed")
	}
	return registry.ID{15: 8}, f.call(fmt.Sprint("Put ", kind, " ", ident, " ", labels.Object, labels.Fields, " key ", key))
}

// The operations on labels call the catalog with the values in the request, and refuse malformed
// requests. Versions are in ETag and If-Match.
func TestLabelOperations(t *testing.T) {
	t.Parallel()
	const table, view = "?warehouse=w&namespace=a%1Fb&table=t", "?warehouse=w&namespace=a&view=v"
	const key = "0190f3a0-1234-7abc-8def-0123456789ab"
	present, other := `"00000000000000000000000000000007"`, `"00000000000000000000000000000009"`
	for name, tt := range map[string]struct {
		method, query, body string
		headers             []string
		status              int
		call, tag, answer   string
	}{
		"load": {"GET", table, "", nil, 200, "Load table", present, `{"object-labels":{"team":"billing"},"fields":[{"field-id":3,"labels":{"classification":"pii"}}]}`},
		"put": {
			"PUT", view, `{"object-labels":{"a":"b"},"fields":[{"field-id":3,"labels":{"c":"d"}}]}`, []string{"Idempotency-Key", key},
			200, "Put view a.v map[a:b] [{3 map[c:d]}] key " + key, `"00000000000000000000000000000008"`, `{"object-labels":{"a":"b"},"fields":[{"field-id":3,"labels":{"c":"d"}}]}`,
		},
		"put for a version":       {"PUT", table, `{}`, []string{"If-Match", other + ", " + present}, 200, "Put table", `"00000000000000000000000000000008"`, `{"object-labels":{},"fields":[]}`},
		"put for another version": {"PUT", table, `{}`, []string{"If-Match", other}, 412, "", "", "PreconditionFailedException"},
		"put for any version":     {"PUT", table, `{}`, []string{"If-Match", "*"}, 200, "Put table", `"00000000000000000000000000000008"`, ""},
		"delete":                  {"DELETE", table, "", nil, 200, "map[] []", "", "{}"},
		"delete for another":      {"DELETE", table, "", []string{"If-Match", other}, 412, "", "", "PreconditionFailedException"},
		"none match":              {"PUT", table, `{}`, []string{"If-None-Match", "*"}, 400, "", "", "If-Match"},
		"a namespace":             {"GET", "?warehouse=w&namespace=a", "", nil, 400, "", "", "table or a view"},
		"the server":              {"GET", "?object=server", "", nil, 400, "", "", "table or a view"},
		"nothing":                 {"GET", "", "", nil, 400, "", "", "Name an object"},
		"no text":                 {"PUT", table, `{"object-labels":{"a":1}}`, nil, 400, "", "", "strings as values"},
		"no id":                   {"PUT", table, `{"fields":[{"labels":{}}]}`, nil, 400, "", "", "field-id"},
		"no labels":               {"PUT", table, `{"fields":[{"field-id":1}]}`, nil, 400, "", "", "labels"},
		"an id too large":         {"PUT", table, `{"fields":[{"field-id":3000000000,"labels":{}}]}`, nil, 400, "", "", "not the id of a field"},
		"too many":                {"PUT", table, `{"fields":[` + strings.Repeat(`{"field-id":1,"labels":{}},`, 1000) + `{"field-id":1,"labels":{}}]}`, nil, 413, "", "", "at most 1000"},
		"a bad key":               {"PUT", table, `{}`, []string{"Idempotency-Key", "x"}, 400, "", "", "Idempotency-Key"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), tt.method, "/management/v1/labels"+tt.query, tt.body, tt.headers...)
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || !strings.Contains(calls, tt.call) || tt.call == "" && calls != "" || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", name, w.Code, w.Body, calls)
		}
		if got := w.Header()["ETag"]; strings.Join(got, " ") != tt.tag {
			t.Errorf("%s: the ETag is %q, want %q", name, got, tt.tag)
		}
		if w.Code == http.StatusOK && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}
