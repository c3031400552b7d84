package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"moorage/rest"
)

// FuzzBody checks that, whatever a body contains, the answer is a success or a refusal with the
// usual error object, and the catalog stays sound.
func FuzzBody(f *testing.F) {
	paths := []string{pathNamespaces, pathProperties, pathTables, pathTable, pathRegister, pathRename, pathMetrics, pathViews, pathView, pathRegisterView, pathRenameView}
	seeds := []string{
		`{"namespace":["a","b"],"properties":{"k":"v"}}`, `{"removals":["k"],"updates":{"l":"v"}}`, `{"name":"new","schema":` + schemaJSON + `,"stage-create":true}`,
		`{"requirements":[{"type":"assert-current-schema-id","current-schema-id":0}],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`,
		`{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":2,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}]}`,
		`{"name":"new","metadata-location":"file:///x"}`, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":"t"}}`, rest.ScanReportJSON, rest.CommitReportJSON,
		viewJSON("new"), `{"name":"new","schema":` + schemaJSON + `,"view-version":` + versionJSON + `,"properties":{"write.metadata.compression-codec":"none"},"location":"file:///x"}`,
		`{"updates":[` + newVersion + `]}`, `{"identifier":` + identifier("ns", "view") + `,"requirements":[{"type":"assert-view-uuid","uuid":"x"}],"updates":[]}`, rename(identifier("ns", "view"), identifier("ns", "t")),
		`[]`, `"x"`, `5`, ``, `{"name":"\ud800"}`,
	}
	for i := range paths {
		for _, seed := range seeds {
			f.Add(uint8(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, operation uint8, body string) {
		w := newMemoryWorld(t)
		w.fill()
		path := paths[int(operation)%len(paths)]
		answer := w.do(http.MethodPost, path, body)
		if !slices.Contains([]int{200, 204, 400, 404, 406, 409, 422}, answer.Code) {
			t.Fatalf("%s %q: %d %s", path, body, answer.Code, answer.Body)
		}
		if answer.Code == 204 != (answer.Body.Len() == 0) {
			t.Fatalf("%s %q: %d with %d bytes", path, body, answer.Code, answer.Body.Len())
		}
		if answer.Code >= 400 {
			var got failure
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Error.Code != answer.Code || strings.TrimSpace(got.Error.Type) == "" {
				t.Fatalf("%s %q: %d %s", path, body, answer.Code, answer.Body)
			}
		}
		w.wantClean()
	})
}
