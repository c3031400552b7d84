package rest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"moorage/rest"
)

// bad is a request that must be refused and change nothing.
type bad struct {
	name, method, path, body string
	status                   int
	kind                     string
}

const (
	badRequest    = "BadRequestException"
	illegal       = "IllegalArgumentException"
	validation    = "ValidationException"
	noWarehouse   = "NoSuchWarehouseException"
	noNamespace   = "NoSuchNamespaceException"
	noTable       = "NoSuchTableException"
	alreadyExists = "AlreadyExistsException"
	commitFailed  = "CommitFailedException"
	tooLarge      = "RequestTooLargeException"
)

// Paths of the operations that take a body.
const (
	pathNamespaces = "/v1/namespaces"
	pathProperties = "/v1/namespaces/ns/properties"
	pathTables     = "/v1/namespaces/ns/tables"
	pathTable      = "/v1/namespaces/ns/tables/t"
	pathRegister   = "/v1/namespaces/ns/register"
	pathRename     = "/v1/tables/rename"
	pathMetrics    = "/v1/namespaces/ns/tables/t/metrics"
)

func parseURL(t testing.TB, path string) *url.URL {
	t.Helper()
	parsed, err := url.ParseRequestURI(path)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// malformedRows: bodies that are no JSON object, for every operation that takes one.
func malformedRows() (rows []bad) {
	bodies := []struct{ name, body string }{
		{"empty", ""}, {"spaces", " \n"}, {"torn", `{"name":`}, {"array", `[]`}, {"string", `"x"`}, {"number", `5`}, {"null", `null`}, {"not JSON", `name=t`},
		{"trailing text", `{"name":"n","namespace":["n"]} x`}, {"two objects", `{}{}`}, {"duplicate member", `{"name":"a","name":"b"}`},
		{"nested duplicate", `{"x":{"a":1,"\u0061":2}}`}, {"deep", `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`},
		{"not UTF-8", "{\"name\":\"\xff\"}"}, {"lone surrogate", `{"name":"\ud800"}`}, {"comment", `{/**/}`}, {"byte order mark", "\ufeff{}"},
	}
	for _, path := range []string{pathNamespaces, pathProperties, pathTables, pathTable, pathRegister, pathRename, pathMetrics} {
		for _, body := range bodies {
			rows = append(rows, bad{body.name, "POST", path, body.body, 400, badRequest})
		}
	}
	return rows
}

// nameRows: names that cannot be, and names that are not there, in paths.
func nameRows() (rows []bad) {
	for _, name := range []string{"%00", "a%00b", "%ff", "a%1Fb", "%1F", strings.Repeat("n", 1025)} {
		rows = append(rows,
			bad{"name " + name, "GET", "/v1/namespaces/ns/tables/" + name, "", 400, badRequest},
			bad{"commit to name " + name, "POST", "/v1/namespaces/ns/tables/" + name, `{"requirements":[],"updates":[]}`, 400, badRequest},
			bad{"drop name " + name, "DELETE", "/v1/namespaces/ns/tables/" + name, "", 400, badRequest},
		)
	}
	for _, ns := range []string{"%00", "ns%00", "%ff", "%1Fns", "ns%1F", "ns%1F%1Fchild", strings.Repeat("n", 1025), strings.Repeat("n%1F", 32) + "n"} {
		rows = append(rows,
			bad{"namespace " + ns, "GET", "/v1/namespaces/" + ns, "", 400, badRequest},
			bad{"tables of namespace " + ns, "GET", "/v1/namespaces/" + ns + "/tables", "", 400, badRequest},
			bad{"parent " + ns, "GET", "/v1/namespaces?parent=" + ns, "", 400, badRequest},
			bad{"drop namespace " + ns, "DELETE", "/v1/namespaces/" + ns, "", 400, badRequest},
		)
	}
	for _, warehouse := range []string{"%00", "%ff", "w%1F", strings.Repeat("w", 1025), strings.Repeat("w", 9000)} {
		rows = append(rows,
			bad{"warehouse " + warehouse, "GET", "/v1/" + warehouse + "/namespaces", "", 400, badRequest},
			bad{"table in warehouse " + warehouse, "GET", "/v1/" + warehouse + "/namespaces/ns/tables/t", "", 400, badRequest},
			bad{"namespace in warehouse " + warehouse, "POST", "/v1/" + warehouse + "/namespaces", `{"namespace":["a"]}`, 400, badRequest},
		)
	}
	for _, name := range []string{"missing", "%2F", "a%2Fb", ".", "..", "%2E%2E", "%2E%2E%2F%2E%2E%2Fetc", "%25", "%2525", "%20", "+", "%2B", "T", "t%20", "%C3%A9", "%F0%9F%98%80", "t.files", "%7F", "%0A"} {
		rows = append(rows,
			bad{"no table " + name, "GET", "/v1/namespaces/ns/tables/" + name, "", 404, noTable},
			bad{"no table to drop " + name, "DELETE", "/v1/namespaces/ns/tables/" + name, "", 404, noTable},
			bad{"no namespace " + name, "GET", "/v1/namespaces/" + name, "", 404, noNamespace},
		)
	}
	return rows
}

// missingRows: what a request names is not there, or is there already.
func missingRows() []bad {
	table := `{"name":"new","schema":` + schemaJSON + `}`
	identifier := func(ns, name string) string { return `{"namespace":["` + ns + `"],"name":"` + name + `"}` }
	rename := func(source, destination string) string {
		return `{"source":` + source + `,"destination":` + destination + `}`
	}
	return []bad{
		{"config", "GET", "/v1/config?warehouse=missing", "", 404, noWarehouse},
		{"list, warehouse", "GET", "/v1/missing/namespaces", "", 404, noWarehouse},
		{"create namespace, warehouse", "POST", "/v1/missing/namespaces", `{"namespace":["a"]}`, 404, noWarehouse},
		{"tables, warehouse", "GET", "/v1/missing/namespaces/ns/tables", "", 404, noWarehouse},
		{"create table, warehouse", "POST", "/v1/missing/namespaces/ns/tables", table, 404, noWarehouse},
		{"parent", "GET", "/v1/namespaces?parent=missing", "", 404, noNamespace},
		{"nested parent", "GET", "/v1/namespaces?parent=ns%1Fmissing", "", 404, noNamespace},
		{"drop namespace", "DELETE", "/v1/namespaces/missing", "", 404, noNamespace},
		{"drop child", "DELETE", "/v1/namespaces/ns%1Fmissing", "", 404, noNamespace},
		{"properties", "POST", "/v1/namespaces/missing/properties", `{"updates":{"a":"b"}}`, 404, noNamespace},
		{"list tables", "GET", "/v1/namespaces/missing/tables", "", 404, noNamespace},
		{"create table", "POST", "/v1/namespaces/missing/tables", table, 404, noNamespace},
		{"stage table", "POST", "/v1/namespaces/missing/tables", `{"name":"new","stage-create":true,"schema":` + schemaJSON + `}`, 404, noNamespace},
		{"register", "POST", "/v1/namespaces/missing/register", `{"name":"new","metadata-location":"file:///x.metadata.json"}`, 404, noNamespace},
		{"load in missing namespace", "GET", "/v1/namespaces/missing/tables/t", "", 404, noTable},
		{"load of a metadata table", "GET", "/v1/namespaces/ns%1Ft/tables/files", "", 404, noTable},
		{"commit", "POST", "/v1/namespaces/ns/tables/missing", `{"requirements":[],"updates":[]}`, 404, noTable},
		{"commit with uuid", "POST", "/v1/namespaces/ns/tables/missing", `{"requirements":[{"type":"assert-table-uuid","uuid":"x"}],"updates":[]}`, 404, noTable},
		{"commit of a create", "POST", "/v1/namespaces/missing/tables/new", `{"requirements":[{"type":"assert-create"}],"updates":[]}`, 404, noNamespace},
		{"unregister", "POST", "/v1/namespaces/ns/tables/missing/unregister", "", 404, noTable},
		{"rename source", "POST", pathRename, rename(identifier("ns", "missing"), identifier("ns", "v")), 404, noTable},
		{"rename source namespace", "POST", pathRename, rename(identifier("missing", "t"), identifier("ns", "v")), 404, noTable},
		{"rename destination namespace", "POST", pathRename, rename(identifier("ns", "t"), identifier("missing", "t")), 404, noNamespace},
		{"rename onto a table", "POST", pathRename, rename(identifier("ns", "t"), identifier("ns", "u")), 409, alreadyExists},
		{"create namespace again", "POST", pathNamespaces, `{"namespace":["ns"]}`, 409, alreadyExists},
		{"create child again", "POST", pathNamespaces, `{"namespace":["ns","child"],"properties":{"a":"b"}}`, 409, alreadyExists},
		{"create table again", "POST", pathTables, `{"name":"t","schema":` + schemaJSON + `}`, 409, alreadyExists},
		{"stage table again", "POST", pathTables, `{"name":"t","stage-create":true,"schema":` + schemaJSON + `}`, 409, alreadyExists},
		{"register again", "POST", pathRegister, `{"name":"t","metadata-location":"file:///x.metadata.json"}`, 409, alreadyExists},
		{"load, warehouse", "GET", "/v1/missing/namespaces/ns/tables/t", "", 404, noWarehouse},
		{"drop table, warehouse", "DELETE", "/v1/missing/namespaces/ns/tables/t", "", 404, noWarehouse},
		{"rename, warehouse", "POST", "/v1/missing/tables/rename", rename(identifier("ns", "t"), identifier("ns", "v")), 404, noWarehouse},
		{"no name", "GET", "/v1/namespaces/ns/tables/", "", 404, "NoSuchRouteException"},
		{"no name to drop", "DELETE", "/v1/namespaces/ns/tables/", "", 404, "NoSuchRouteException"},
		{"no namespace", "GET", "/v1/namespaces/", "", 404, "NoSuchRouteException"},
		{"no namespace of a table", "GET", "/v1/namespaces//tables/t", "", 400, badRequest},
		{"no route", "GET", "/v1/namespaces/ns/views", "", 404, "NoSuchRouteException"},
		{"transactions", "POST", "/v1/default/transactions/commit", `{"table-changes":[]}`, 404, "NoSuchRouteException"},
		{"no method", "PUT", "/v1/namespaces/ns", "{}", 405, "MethodNotAllowedException"},
	}
}

// queryRows: parameters.
func queryRows() []bad {
	return []bad{
		{"pageSize 0", "GET", "/v1/namespaces?pageSize=0", "", 400, badRequest},
		{"pageSize negative", "GET", "/v1/namespaces/ns/tables?pageToken=&pageSize=-5", "", 400, badRequest},
		{"pageSize word", "GET", "/v1/namespaces/ns/tables?pageSize=ten", "", 400, badRequest},
		{"pageSize too large", "GET", "/v1/namespaces/ns/tables?pageSize=99999999999999999999999", "", 400, badRequest},
		{"pageToken word", "GET", "/v1/namespaces/ns/tables?pageToken=xyz", "", 400, badRequest},
		{"pageToken number", "GET", "/v1/namespaces?pageToken=1", "", 400, badRequest},
		{"pageToken NUL", "GET", "/v1/namespaces?pageToken=%00", "", 400, badRequest},
		{"pageToken twice", "GET", "/v1/namespaces?pageToken=&pageToken=", "", 400, badRequest},
		{"parent twice", "GET", "/v1/namespaces?parent=ns&parent=empty", "", 400, badRequest},
		{"malformed escape", "GET", "/v1/namespaces?parent=%zz", "", 400, badRequest},
		{"semicolon", "GET", "/v1/namespaces?parent=a;b", "", 400, badRequest},
		{"snapshots unknown", "GET", pathTable + "?snapshots=some", "", 400, badRequest},
		{"snapshots empty", "GET", pathTable + "?snapshots=", "", 400, badRequest},
		{"snapshots upper case", "GET", pathTable + "?snapshots=REFS", "", 400, badRequest},
		{"snapshots twice", "GET", pathTable + "?snapshots=refs&snapshots=all", "", 400, badRequest},
		{"purge word", "DELETE", pathTable + "?purgeRequested=maybe", "", 400, badRequest},
		{"purge empty", "DELETE", pathTable + "?purgeRequested=", "", 400, badRequest},
		{"warehouse twice", "GET", "/v1/config?warehouse=a&warehouse=b", "", 400, badRequest},
	}
}

// memberRows: members that are missing or of the wrong type.
func memberRows() (rows []bad) {
	long, deep := strings.Repeat("n", 1025), `["n"`+strings.Repeat(`,"n"`, 32)+`]`
	add := func(path string, bodies ...string) {
		for _, body := range bodies {
			rows = append(rows, bad{fmt.Sprintf("%.60s", body), "POST", path, body, 400, badRequest})
		}
	}
	add(pathNamespaces, `{}`, `{"namespace":null}`, `{"namespace":"a"}`, `{"namespace":{}}`, `{"namespace":[]}`, `{"namespace":[1]}`, `{"namespace":["a",null]}`,
		`{"namespace":[["a"]]}`, `{"namespace":[""]}`, `{"namespace":["a",""]}`, `{"namespace":["a\u0000"]}`, `{"namespace":["a\u001fb"]}`, `{"namespace":["`+long+`"]}`,
		`{"namespace":`+deep+`}`, `{"namespace":["a"],"properties":[]}`, `{"namespace":["a"],"properties":"x"}`, `{"namespace":["a"],"properties":{"k":1}}`,
		`{"namespace":["a"],"properties":{"k":null}}`, `{"namespace":["a"],"properties":{"k":{}}}`, `{"Namespace":["a"]}`)
	add(pathProperties, `{"removals":"k"}`, `{"removals":{}}`, `{"removals":[1]}`, `{"removals":[null]}`, `{"updates":[]}`, `{"updates":"k"}`, `{"updates":{"k":1}}`, `{"updates":{"k":null}}`, `{"updates":{"k":["v"]}}`)
	add(pathTables, `{}`, `{"name":"new"}`, `{"schema":`+schemaJSON+`}`, `{"name":null,"schema":`+schemaJSON+`}`, `{"name":1,"schema":`+schemaJSON+`}`, `{"name":"","schema":`+schemaJSON+`}`,
		`{"name":"a\u0000","schema":`+schemaJSON+`}`, `{"name":"a\u001fb","schema":`+schemaJSON+`}`, `{"name":"`+long+`","schema":`+schemaJSON+`}`,
		`{"name":"new","schema":null}`, `{"name":"new","schema":"struct"}`, `{"name":"new","schema":[]}`,
		`{"name":"new","schema":`+schemaJSON+`,"location":5}`, `{"name":"new","schema":`+schemaJSON+`,"partition-spec":[]}`, `{"name":"new","schema":`+schemaJSON+`,"write-order":"id"}`,
		`{"name":"new","schema":`+schemaJSON+`,"stage-create":"true"}`, `{"name":"new","schema":`+schemaJSON+`,"stage-create":1}`,
		`{"name":"new","schema":`+schemaJSON+`,"properties":["a"]}`, `{"name":"new","schema":`+schemaJSON+`,"properties":{"a":true}}`)
	add(pathTable, `{}`, `{"updates":[]}`, `{"requirements":[]}`, `{"requirements":{},"updates":[]}`, `{"requirements":[],"updates":{}}`, `{"requirements":"x","updates":[]}`, `{"requirements":[],"updates":5}`,
		`{"identifier":"ns.t","requirements":[],"updates":[]}`, `{"identifier":{},"requirements":[],"updates":[]}`, `{"identifier":{"namespace":["ns"]},"requirements":[],"updates":[]}`,
		`{"identifier":{"namespace":"ns","name":"t"},"requirements":[],"updates":[]}`, `{"identifier":{"namespace":["ns"],"name":"u"},"requirements":[],"updates":[]}`,
		`{"identifier":{"namespace":["ns","child"],"name":"t"},"requirements":[],"updates":[]}`)
	add(pathRegister, `{}`, `{"name":"new"}`, `{"metadata-location":"file:///x"}`, `{"name":"new","metadata-location":null}`, `{"name":"new","metadata-location":""}`, `{"name":"new","metadata-location":5}`,
		`{"name":["new"],"metadata-location":"file:///x"}`, `{"name":"","metadata-location":"file:///x"}`, `{"name":"new","metadata-location":"file:///x","overwrite":"yes"}`)
	add(pathRename, `{}`, `{"source":{"namespace":["ns"],"name":"t"}}`, `{"destination":{"namespace":["ns"],"name":"v"}}`, `{"source":null,"destination":null}`, `{"source":"ns.t","destination":"ns.v"}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"]}}`, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"name":"v"}}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":[],"name":"v"}}`, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":""}}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":"a\u0000"}}`)
	add(pathMetrics, `{}`, `{"report-type":null}`, `{"report-type":5}`, `{"report-type":"other-report"}`, `{"report-type":""}`)
	return append(rows, bad{"key in both lists", "POST", pathProperties, `{"removals":["k"],"updates":{"k":"w"}}`, 422, "UnprocessableEntityException"})
}

// createRows: tables that cannot be. w gives locations.
func (w *world) createRows() (rows []bad) {
	// No folder has such a name, and trying again will not help.
	long := w.uri("/" + strings.Repeat("n", 300))
	for _, member := range []string{`"location":"` + long + `"`, `"stage-create":true,"location":"` + long + `"`, `"properties":{"write.metadata.path":"` + long + `"}`} {
		rows = append(rows, bad{"too long " + member, "POST", pathTables, `{"name":"new","schema":` + schemaJSON + `,` + member + `}`, 400, badRequest})
	}
	add := func(name, members string, kinds ...string) {
		rows = append(rows, bad{name, "POST", pathTables, `{"name":"new",` + members + `}`, 400, strings.Join(kinds, " ")})
	}
	field := func(fields string) string { return `"schema":{"type":"struct","fields":[` + fields + `]}` }
	schema := `"schema":` + schemaJSON + `,`
	add("schema without type", `"schema":{"fields":[]}`, badRequest, illegal, validation)
	add("schema is a list", `"schema":{"type":"list","element-id":1,"element":"int","element-required":true}`, badRequest, illegal, validation)
	add("fields is an object", `"schema":{"type":"struct","fields":{}}`, badRequest, illegal, validation)
	add("field without name", field(`{"id":1,"required":true,"type":"int"}`), badRequest, illegal, validation)
	add("field without type", field(`{"id":1,"name":"a","required":true}`), badRequest, illegal, validation)
	add("unknown type", field(`{"id":1,"name":"a","required":true,"type":"integer"}`), badRequest, illegal, validation)
	add("decimal too wide", field(`{"id":1,"name":"a","required":true,"type":"decimal(39,2)"}`), badRequest, illegal, validation)
	add("id is text", field(`{"id":"1","name":"a","required":true,"type":"int"}`), badRequest, illegal, validation)
	add("same name twice", field(`{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"a","required":true,"type":"int"}`), badRequest, illegal, validation)
	add("same id twice", field(`{"id":1,"name":"a","required":true,"type":"int"},{"id":1,"name":"b","required":true,"type":"int"}`), badRequest, illegal, validation)
	add("variant in v2", field(`{"id":1,"name":"a","required":false,"type":"variant"}`), badRequest, illegal, validation)
	add("identifier field unknown", `"schema":{"type":"struct","identifier-field-ids":[9],"fields":[{"id":1,"name":"a","required":true,"type":"int"}]}`, badRequest, illegal, validation)
	add("partition source unknown", schema+`"partition-spec":{"spec-id":0,"fields":[{"source-id":9,"field-id":1000,"name":"p","transform":"identity"}]}`, badRequest, illegal, validation)
	add("partition name is a column", schema+`"partition-spec":{"spec-id":0,"fields":[{"source-id":1,"field-id":1000,"name":"data","transform":"bucket[4]"}]}`, badRequest, illegal, validation)
	add("sort source unknown", schema+`"write-order":{"order-id":1,"fields":[{"source-id":9,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}`, badRequest, illegal, validation)
	add("sort direction unknown", schema+`"write-order":{"order-id":1,"fields":[{"source-id":1,"transform":"identity","direction":"up","null-order":"nulls-first"}]}`, badRequest, illegal, validation)
	for _, version := range []string{"0", "4", "99", "-1", "x", ""} {
		add("format version "+version, schema+`"properties":{"format-version":"`+version+`"}`, badRequest, illegal, validation)
	}
	for _, location := range []string{
		"file:///etc", "file:///", "/etc", "file://" + w.warehouse + "/../outside", w.uri("") + "/../../etc", w.uri("") + "-sibling/t", "s3://bucket/t", "gopher://x", "not a location", "file:relative",
		w.uri(""), w.uri("ns/t"), w.uri("ns/t/inner"), w.uri("ns/t/metadata"), w.uri("ns"), "file:" + w.warehouse + "/ns/t/inner", w.warehouse + "/ns//t",
	} {
		add("location "+strings.ReplaceAll(location, w.warehouse, "W"), schema+`"location":"`+location+`"`, badRequest, illegal, validation)
	}
	return rows
}

// commitRows: commits that can never be, and some that lost.
func (w *world) commitRows(uuid string) (rows []bad) {
	requirement := func(kind string, status int, text string) {
		rows = append(rows, bad{"requirement " + text, "POST", pathTable, `{"requirements":[` + text + `],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`, status, kind})
	}
	for _, text := range []string{`5`, `null`, `"x"`, `[]`, `{}`, `{"type":5}`, `{"type":null}`, `{"type":"assert-nothing"}`, `{"type":"assert-table-uuid"}`, `{"type":"assert-table-uuid","uuid":5}`,
		`{"type":"assert-ref-snapshot-id"}`, `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":"1"}`, `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1.5}`,
		`{"type":"assert-current-schema-id"}`, `{"type":"assert-default-spec-id","default-spec-id":"0"}`, `{"type":"assert-view-uuid","uuid":"x"}`,
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":99999999999999999999}`, `{"type":"assert-create"},{"type":"assert-table-uuid","uuid":"` + uuid + `"}`,
	} {
		requirement(badRequest+" "+illegal+" "+validation, 400, text)
	}
	for _, text := range []string{`{"type":"assert-create"}`, `{"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}`, `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}`,
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}`, `{"type":"assert-ref-snapshot-id","ref":"other","snapshot-id":7}`, `{"type":"assert-current-schema-id","current-schema-id":7}`,
		`{"type":"assert-last-assigned-field-id","last-assigned-field-id":7}`, `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":7}`,
		`{"type":"assert-default-spec-id","default-spec-id":7}`, `{"type":"assert-default-sort-order-id","default-sort-order-id":7}`,
	} {
		requirement(commitFailed, 409, text)
	}
	update := func(kind string, status int, text string) {
		rows = append(rows, bad{"update " + strings.ReplaceAll(text, w.warehouse, "W"), "POST", pathTable,
			`{"requirements":[{"type":"assert-table-uuid","uuid":"` + uuid + `"}],"updates":[{"action":"set-properties","updates":{"a":"b"}},` + text + `]}`, status, kind})
	}
	for _, text := range []string{`5`, `null`, `"x"`, `[]`, `{}`, `{"action":5}`, `{"action":null}`, `{"action":"do-nothing"}`, `{"action":"enable-row-lineage"}`, `{"action":"add-view-version","view-version":{}}`,
		`{"action":"set-current-view-version","view-version-id":1}`, `{"action":"assign-uuid"}`, `{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}`, `{"action":"upgrade-format-version"}`,
		`{"action":"upgrade-format-version","format-version":1}`, `{"action":"upgrade-format-version","format-version":4}`, `{"action":"upgrade-format-version","format-version":"3"}`,
		`{"action":"add-schema"}`, `{"action":"add-schema","schema":[]}`, `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":9,"name":"v","required":false,"type":"variant"}]}}`,
		`{"action":"set-current-schema","schema-id":7}`, `{"action":"set-current-schema","schema-id":-1}`, `{"action":"set-current-schema"}`, `{"action":"remove-schemas","schema-ids":[0]}`, `{"action":"remove-schemas","schema-ids":"0"}`,
		`{"action":"add-spec","spec":{"fields":[{"source-id":9,"name":"p","transform":"identity"}]}}`, `{"action":"set-default-spec","spec-id":7}`, `{"action":"set-default-spec","spec-id":-1}`, `{"action":"remove-partition-specs","spec-ids":[0]}`,
		`{"action":"add-sort-order","sort-order":{}}`, `{"action":"set-default-sort-order","sort-order-id":7}`, `{"action":"set-default-sort-order","sort-order-id":-1}`,
		`{"action":"add-snapshot"}`, `{"action":"add-snapshot","snapshot":{}}`, `{"action":"add-snapshot","snapshot":{"snapshot-id":"5"}}`,
		fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":9,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`, snapshotID),
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}`, fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":%d}`, snapshotID),
		fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"b","type":"twig","snapshot-id":%d}`, snapshotID), fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":%d,"min-snapshots-to-keep":0}`, snapshotID),
		fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"b","type":"tag","snapshot-id":%d,"min-snapshots-to-keep":1}`, snapshotID), fmt.Sprintf(`{"action":"set-snapshot-ref","type":"branch","snapshot-id":%d}`, snapshotID),
		`{"action":"remove-snapshots"}`, `{"action":"remove-snapshots","snapshot-ids":["5"]}`, `{"action":"remove-snapshot-ref"}`, `{"action":"set-location"}`, `{"action":"set-location","location":""}`,
		`{"action":"set-location","location":"file:///etc"}`, `{"action":"set-location","location":"` + w.uri("ns/u") + `"}`, `{"action":"set-location","location":"` + w.uri("ns/u/inner") + `"}`, `{"action":"set-location","location":"` + w.uri("ns") + `"}`,
		`{"action":"set-properties"}`, `{"action":"set-properties","updates":[]}`, `{"action":"set-properties","updates":{"a":1}}`, `{"action":"remove-properties"}`, `{"action":"remove-properties","removals":{}}`,
		`{"action":"set-statistics"}`, `{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1}}`, `{"action":"remove-statistics"}`,
		`{"action":"set-partition-statistics","partition-statistics":{}}`, `{"action":"add-encryption-key"}`, `{"action":"remove-encryption-key"}`,
	} {
		update(badRequest+" "+illegal+" "+validation, 400, text)
	}
	update(commitFailed, 409, `{"action":"add-snapshot","snapshot":{"snapshot-id":8,"parent-snapshot-id":7,"sequence-number":1,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`)
	update(commitFailed, 409, `{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":2,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}},{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8}`)
	return rows
}

// Each row is refused with its status and one of its types (which exception a rule of the metadata
// raises is held by the tests of package metadata), and leaves no trace.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const bodyBytesMax = 8 << 20
	w := newWorld(t, func(c *rest.Config) { c.BodyBytesMax = bodyBytesMax })
	uuid := w.fill()
	rows := append(malformedRows(), nameRows()...)
	rows = append(rows, missingRows()...)
	rows = append(rows, queryRows()...)
	rows = append(rows, memberRows()...)
	rows = append(rows, w.createRows()...)
	rows = append(rows, w.commitRows(uuid)...)
	for _, path := range []string{pathNamespaces, pathTables, pathTable} {
		rows = append(rows, bad{"20 MB", "POST", path, `{"x":"` + strings.Repeat("x", 20<<20) + `"}`, 413, tooLarge})
	}
	if len(rows) < 150 {
		t.Errorf("%d rows", len(rows))
	}
	before := w.dump()
	for i, row := range rows {
		t.Run(fmt.Sprintf("%d %s %.40s %.60s", i, row.method, row.path, row.name), func(t *testing.T) {
			answer := w.do(row.method, row.path, row.body)
			var got failure
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v in %d %s", err, answer.Code, answer.Body)
			}
			if answer.Code != row.status || got.Error.Code != row.status || !strings.Contains(row.kind, got.Error.Type) || got.Error.Message == "" {
				t.Errorf("%s %.200s %.200s\ngot  %d %s\nwant %d %s", row.method, row.path, row.body, answer.Code, answer.Body, row.status, row.kind)
			}
			if after := w.dump(); after != before {
				t.Errorf("%s %.200s %.200s changed\n%s\nto\n%s", row.method, row.path, row.body, before, after)
				before = after
			}
		})
	}
	w.wantClean()
}

// Dropping a namespace that is not empty marks it and puts it back, so its version changes, but nothing
// that a client can see.
func TestDropNamespaceThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	visible := func() string {
		var text strings.Builder
		for _, path := range []string{"/v1/namespaces", "/v1/namespaces?parent=ns", "/v1/namespaces/ns", "/v1/namespaces/ns%1Fchild", pathTables, pathTable} {
			text.WriteString(w.must("GET", path, "").Body.String())
		}
		return text.String()
	}
	before := visible()
	w.must("POST", pathNamespaces, `{"namespace":["parent","child"]}`)
	for _, ns := range []string{"ns", "parent"} {
		answer := w.do("DELETE", "/v1/namespaces/"+ns, "")
		if answer.Code != 409 || !strings.Contains(answer.Body.String(), "NamespaceNotEmptyException") || !strings.Contains(answer.Body.String(), "is not empty") {
			t.Errorf("%s: %d %s", ns, answer.Code, answer.Body)
		}
	}
	w.must("DELETE", "/v1/namespaces/parent%1Fchild", "")
	w.must("DELETE", "/v1/namespaces/parent", "")
	if after := visible(); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
	w.wantClean()
}
