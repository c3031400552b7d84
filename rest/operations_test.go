package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moorage/catalog/warehouses"
	"moorage/rest"
)

// specifiedStatuses returns the statuses in the specification for each operation.
func specifiedStatuses(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../testdata/openapi.tsv")
	if err != nil {
		t.Fatal(err)
	}
	statuses := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		if columns := strings.Split(line, "\t"); len(columns) == 5 {
			statuses[columns[0]] = strings.Fields(columns[3])
		}
	}
	return statuses
}

var requestCount = regexp.MustCompile(`(?m)^moorage_http_requests_total\{operation="(\w+)",status="(\d+)"\} \d+$`)

// answered returns the statuses of the answers of server so far, by operation of the specification.
func answered(t *testing.T, server http.Handler) map[string][]string {
	t.Helper()
	statuses := make(map[string][]string)
	for _, line := range requestCount.FindAllStringSubmatch(sendTo(t, server, "GET", "/metrics", "").Body.String(), -1) {
		switch operation := line[1]; operation {
		case "unknown", "home", "health", "ready", "metrics", "check", "backup":
		default:
			statuses[operation] = append(statuses[operation], line[2])
		}
	}
	return statuses
}

// wantSpecifiedStatuses checks that server has answered only with statuses that the specification
// has for the operation, or that docs/divergences.md lists.
func wantSpecifiedStatuses(t *testing.T, server http.Handler) {
	t.Helper()
	specified := specifiedStatuses(t)
	for operation, statuses := range answered(t, server) {
		for _, status := range statuses {
			switch {
			case slices.Contains(specified[operation], status):
			case status == "413":
			case status == "404" && operation == "createNamespace": // no such warehouse
			default:
				t.Errorf("%s answers %s, the specification knows %q", operation, status, specified[operation])
			}
		}
	}
}

// All operations work with a prefix, and without one, which means the warehouse default. On success
// they answer with the status in the specification.
func TestOperationsWithAndWithoutPrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.catalog.Warehouses().Create(t.Context(), warehouses.Spec{Name: "other", Location: w.uri("../other")}); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"/v1", "/v1/default", "/v1/other"} {
		w.must("GET", "/v1/config?warehouse=other", "")
		elsewhere := "/v1/other/namespaces"
		if base == "/v1/other" {
			elsewhere = "/v1/namespaces"
		}
		w.lifeOfOperations(base, elsewhere)
	}
	specified := specifiedStatuses(t)
	got := answered(t, w)
	for operation, statuses := range got {
		want := "200"
		if slices.Contains(specified[operation], "204") {
			want = "204"
		}
		if !slices.Equal(statuses, []string{want}) {
			t.Errorf("%s answers %q, want %s", operation, statuses, want)
		}
	}
	if len(got) != 26 {
		t.Errorf("%d operations: %q", len(got), slices.Sorted(maps.Keys(got)))
	}
	w.wantClean()
}

// lifeOfOperations calls every operation below base at least once, and leaves nothing behind. The
// objects that it creates must not appear at elsewhere, a list of namespaces.
func (w *world) lifeOfOperations(base, elsewhere string) {
	w.t.Helper()
	ns, table := base+"/namespaces/ns", base+"/namespaces/ns/tables/t"
	w.must("POST", base+"/namespaces", `{"namespace":["ns"],"properties":{"k":"v"}}`)
	if got := w.page(base + "/namespaces").names(); !slices.Equal(got, []string{"ns"}) {
		w.t.Errorf("%s lists %q", base, got)
	}
	if got := w.page(elsewhere).names(); len(got) > 0 {
		w.t.Errorf("%s made %q at %s", base, got, elsewhere)
	}
	w.must("GET", ns, "")
	w.must("HEAD", ns, "")
	w.must("POST", ns+"/properties", `{"removals":["k"],"updates":{"l":"w"}}`)
	w.must("POST", ns+"/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	if got := w.page(ns + "/tables").names(); !slices.Equal(got, []string{"t"}) {
		w.t.Errorf("%s lists %q", ns, got)
	}
	w.must("GET", table, "")
	w.must("HEAD", table, "")
	w.must("POST", table, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`)
	w.must("POST", table+"/metrics", rest.ScanReportJSON)
	w.must("POST", base+"/tables/rename", rename(identifier("ns", "t"), identifier("ns", "u")))
	w.must("POST", base+"/tables/rename", rename(identifier("ns", "u"), identifier("ns", "t")))
	w.must("POST", base+"/transactions/commit", `{"table-changes":[{"identifier":`+identifier("ns", "t")+`,"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"c"}}]}]}`)
	var last loaded
	if err := json.Unmarshal(w.must("POST", table+"/unregister", "").Body.Bytes(), &last); err != nil {
		w.t.Fatal(err)
	}
	w.must("POST", ns+"/register", fmt.Sprintf(`{"name":"t","metadata-location":%q}`, last.MetadataLocation))
	w.must("DELETE", table+"?purgeRequested=true", "")
	w.lifeOfViews(base)
	w.must("DELETE", ns, "")
}

// lifeOfViews calls every operation on views below base, in the namespace ns, and leaves nothing
// behind.
func (w *world) lifeOfViews(base string) {
	w.t.Helper()
	ns, view := base+"/namespaces/ns", base+"/namespaces/ns/views/v"
	w.must("POST", ns+"/views", viewJSON("v"))
	if got := w.page(ns + "/views").names(); !slices.Equal(got, []string{"v"}) {
		w.t.Errorf("%s lists the views %q", ns, got)
	}
	if got := w.page(ns + "/tables").names(); len(got) > 0 {
		w.t.Errorf("%s lists the tables %q", ns, got)
	}
	w.must("GET", view, "")
	w.must("HEAD", view, "")
	w.must("POST", view, `{"updates":[`+newVersion+`]}`)
	w.must("POST", base+"/views/rename", rename(identifier("ns", "v"), identifier("ns", "w")))
	location := w.metadataLocation(ns + "/views/w")
	w.must("DELETE", ns+"/views/w", "")
	w.must("POST", ns+"/register-view", fmt.Sprintf(`{"name":"v","metadata-location":%q}`, location))
	if got := w.metadataLocation(view); got != location {
		w.t.Errorf("registered is %s, want %s", got, location)
	}
	w.must("DELETE", view, "")
}

// Clients and their tests compare these messages.
func TestMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	uuid, view := w.fill(), w.viewUUID()
	requirement := func(text string) string {
		return `{"requirements":[` + text + `],"updates":[]}`
	}
	const other = "00000000-0000-0000-0000-000000000000"
	for _, row := range []struct{ method, path, body, want string }{
		{"POST", pathNamespaces, `{"namespace":["ns","child"]}`, "Namespace already exists: ns.child"},
		{"GET", "/v1/namespaces/missing/tables", "", "Namespace does not exist: missing"},
		{"DELETE", "/v1/namespaces/ns", "", "Namespace ns is not empty"},
		{"GET", "/v1/missing/namespaces", "", "Warehouse does not exist: missing"},
		{"POST", pathTables, `{"name":"t","schema":` + schemaJSON + `}`, "Table already exists: ns.t"},
		{"GET", pathTables + "/missing", "", "Table does not exist: ns.missing"},
		{"DELETE", pathTables + "/missing", "", "Table does not exist: ns.missing"},
		{"POST", pathTables + "/missing", `{"requirements":[],"updates":[]}`, "Table does not exist: ns.missing"},
		{"POST", pathRename, rename(identifier("ns", "t"), identifier("ns", "u")), "Cannot rename ns.t to ns.u. Table already exists"},
		{"POST", pathRename, rename(identifier("ns", "missing"), identifier("ns", "v")), "Table does not exist: ns.missing"},
		{"POST", pathRename, rename(identifier("ns", "t"), identifier("missing", "t")), "Namespace does not exist: missing"},
		{"POST", pathRegister, fmt.Sprintf(`{"name":"new","metadata-location":%q}`, w.uri("no.metadata.json")), "Failed to open input stream for file: " + w.uri("no.metadata.json")},
		{"POST", pathTable, requirement(`{"type":"assert-create"}`), "Requirement failed: table already exists"},
		{"POST", pathTable, requirement(assertUUID(other)), "Requirement failed: UUID does not match: expected " + uuid + " != " + other},
		{"POST", pathTable, requirement(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}`), "Requirement failed: branch main was created concurrently"},
		{"POST", pathTable, requirement(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}`), fmt.Sprintf("Requirement failed: branch main has changed: expected id 7 != %d", snapshotID)},
		{"POST", pathTable, requirement(`{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":7}`), "Requirement failed: branch or tag b is missing, expected 7"},
		{"POST", pathTable, requirement(`{"type":"assert-current-schema-id","current-schema-id":7}`), "Requirement failed: current schema changed: expected id 7 != 0"},
		{"POST", pathTable, requirement(`{"type":"assert-last-assigned-field-id","last-assigned-field-id":7}`), "Requirement failed: last assigned field id changed: expected id 7 != 2"},
		{"POST", pathTable, requirement(`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":7}`), "Requirement failed: last assigned partition id changed: expected id 7 != 999"},
		{"POST", pathTable, requirement(`{"type":"assert-default-spec-id","default-spec-id":7}`), "Requirement failed: default partition spec changed: expected id 7 != 0"},
		{"POST", pathViews, viewJSON("view"), "View already exists: ns.view"},
		{"POST", pathViews, viewJSON("t"), "Table with same name already exists: ns.t"},
		{"POST", pathViews, strings.Replace(viewJSON("new"), `"dialect":"spark"`, `"dialect":"trino"},{"type":"sql","sql":"select 1","dialect":"Trino"`, 1), "Invalid view version: Cannot add multiple queries for dialect trino"},
		{"POST", pathTables, `{"name":"view","schema":` + schemaJSON + `}`, "View with same name already exists: ns.view"},
		{"GET", pathViews + "/missing", "", "View does not exist: ns.missing"},
		{"GET", "/v1/namespaces/missing/views/view", "", "View does not exist: missing.view"},
		{"GET", "/v1/namespaces/missing/views", "", "Namespace does not exist: missing"},
		{"GET", pathViews + "/t", "", "View does not exist: ns.t"},
		{"GET", pathTables + "/view", "", "Table does not exist: ns.view"},
		{"DELETE", pathViews + "/missing", "", "View does not exist: ns.missing"},
		{"POST", pathViews + "/missing", `{"updates":[]}`, "View does not exist: ns.missing"},
		{"POST", pathView, `{"requirements":[` + assertViewUUID(other) + `],"updates":[]}`, "Requirement failed: view UUID does not match: expected " + view + " != " + other},
		{"POST", pathView, requirement(`{"type":"assert-create"}`), "Cannot validate assert-create against a view"},
		{"POST", pathRenameView, rename(identifier("ns", "view"), identifier("ns", "view2")), "Cannot rename ns.view to ns.view2. View already exists"},
		{"POST", pathRenameView, rename(identifier("ns", "view"), identifier("ns", "t")), "Cannot rename ns.view to ns.t. Table already exists"},
		{"POST", pathRename, rename(identifier("ns", "t"), identifier("ns", "view")), "Cannot rename ns.t to ns.view. View already exists"},
		{"POST", pathRenameView, rename(identifier("ns", "missing"), identifier("ns", "new")), "View does not exist: ns.missing"},
		{"POST", pathRenameView, rename(identifier("ns", "view"), identifier("missing", "view")), "Namespace does not exist: missing"},
		{"POST", pathRegisterView, `{"name":"view","metadata-location":"` + w.uri("no.metadata.json") + `"}`, "View already exists: ns.view"},
		{"POST", pathRegisterView, `{"name":"t","metadata-location":"` + w.uri("no.metadata.json") + `"}`, "Table with same name already exists: ns.t"},
		{"POST", pathRegisterView, fmt.Sprintf(`{"name":"new","metadata-location":%q}`, w.uri("no.metadata.json")), "Failed to open input stream for file: " + w.uri("no.metadata.json")},
		{"POST", pathTable, requirement(`{"type":"assert-default-sort-order-id","default-sort-order-id":7}`), "Requirement failed: default sort order changed: expected id 7 != 0"},
	} {
		var got failure
		answer := w.do(row.method, row.path, row.body)
		err := json.Unmarshal(answer.Body.Bytes(), &got)
		message := got.Error.Message
		if strings.HasPrefix(row.want, "Requirement failed: ") {
			last := lastCommit.FindString(message) // after the words that clients compare
			if message = strings.TrimSuffix(message, last); last == "" && row.want != "Requirement failed: table already exists" {
				t.Errorf("%s: the last commit is not in %q", row.body, got.Error.Message)
			}
		}
		if err != nil || message != row.want {
			t.Errorf("%s %s %s\n%d %s\nwant %q", row.method, row.path, row.body, answer.Code, answer.Body, row.want)
		}
	}
}

// lastCommit matches the end of the message of a requirement that does not hold.
var lastCommit = regexp.MustCompile(`; the last commit was by anonymous at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// A table or view whose metadata file is gone cannot be loaded, not even by a client that has the
// current version. It can be dropped.
func TestLoadWithoutItsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	tag := tagOf(t, w.get(pathTable))
	for _, path := range []string{pathTable, pathView} {
		location := w.metadataLocation(path)
		if err := os.Remove(strings.TrimPrefix(location, "file://")); err != nil {
			t.Fatal(err)
		}
		for _, headers := range [][]string{nil, {"If-None-Match", tag}, {"If-None-Match", "*"}} {
			var got failure
			answer := w.get(path, headers...)
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != 404 || got.Error.Type != notFound ||
				got.Error.Message != "Failed to open input stream for file: "+location {
				t.Errorf("%q: %d %s", headers, answer.Code, answer.Body)
			}
		}
		w.must("DELETE", path, "")
	}
	w.wantClean()
}
