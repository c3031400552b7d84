package rest_test

import (
	"fmt"
	"strings"
)

// newVersion has updates that give a view another query.
const newVersion = `{"action":"add-view-version","view-version":{"version-id":2,"timestamp-ms":1700000000001,"schema-id":0,"summary":{},"default-namespace":["ns"],` +
	`"representations":[{"type":"sql","sql":"select data, id from t","dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}`

// manyQueries returns the representations of n dialects, called d0 and so on, without the brackets
// around them.
func manyQueries(n int, sql string) string {
	var text strings.Builder
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"type":"sql","sql":"%s","dialect":"d%d"}`, sql, i)
	}
	return text.String()
}

// absentViewRows returns requests for views, or for objects that views need, that do not exist. A
// table is not found as a view, nor a view as a table.
func absentViewRows() (rows []bad) {
	add := func(fault, method, path, body, kind string) {
		rows = append(rows, bad{fault: fault, method: method, path: path, body: body, status: 404, kind: kind})
	}
	const register = `{"name":"new","metadata-location":"file:///x.metadata.json"}`
	for _, row := range []struct{ method, path, body string }{
		{"GET", "/namespaces/ns/views", ""}, {"POST", "/namespaces/ns/views", viewJSON("new")}, {"GET", "/namespaces/ns/views/view", ""},
		{"POST", "/namespaces/ns/views/view", `{"updates":[]}`}, {"DELETE", "/namespaces/ns/views/view", ""}, {"POST", "/namespaces/ns/register-view", register},
		{"POST", "/views/rename", rename(identifier("ns", "view"), identifier("ns", "new"))},
	} {
		add("warehouse", row.method, "/v1/missing"+row.path, row.body, noWarehouse)
	}
	add("namespace of a list of views", "GET", "/v1/namespaces/missing/views", "", noNamespace)
	add("namespace of a new view", "POST", "/v1/namespaces/missing/views", viewJSON("new"), noNamespace)
	add("namespace of a view to register", "POST", "/v1/namespaces/missing/register-view", register, noNamespace)
	add("namespace of a view to load", "GET", "/v1/namespaces/missing/views/view", "", noView)
	add("namespace of a view to replace", "POST", "/v1/namespaces/missing/views/view", `{"updates":[`+newVersion+`]}`, noView)
	add("namespace of a view to drop", "DELETE", "/v1/namespaces/missing/views/view", "", noView)
	add("view with a uuid", "POST", pathViews+"/missing", `{"requirements":[{"type":"assert-view-uuid","uuid":"x"}],"updates":[]}`, noView)
	add("view in another namespace", "GET", "/v1/namespaces/empty/views/view", "", noView)
	add("view to rename", "POST", pathRenameView, rename(identifier("ns", "missing"), identifier("ns", "new")), noView)
	add("namespace of a view to rename", "POST", pathRenameView, rename(identifier("missing", "view"), identifier("ns", "new")), noView)
	add("namespace to rename a view to", "POST", pathRenameView, rename(identifier("ns", "view"), identifier("missing", "view")), noNamespace)

	add("a table as a view", "GET", pathViews+"/t", "", noView)
	add("a table as a view", "POST", pathViews+"/t", `{"updates":[`+newVersion+`]}`, noView)
	add("a table as a view", "DELETE", pathViews+"/t", "", noView)
	add("a table as a view", "POST", pathRenameView, rename(identifier("ns", "t"), identifier("ns", "new")), noView)
	add("a view as a table", "GET", pathTables+"/view", "", noTable)
	add("a view as a table", "POST", pathTables+"/view", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`, noTable)
	add("a view as a table", "DELETE", pathTables+"/view", "", noTable)
	add("a view as a table", "DELETE", pathTables+"/view?purgeRequested=true", "", noTable)
	add("a view as a table", "POST", pathTables+"/view/unregister", "", noTable)
	add("a view as a table", "POST", pathRename, rename(identifier("ns", "view"), identifier("ns", "new")), noTable)
	add("a view as a table", "POST", pathTransact, `{"table-changes":[`+goodChange+`,{"identifier":`+identifier("ns", "view")+`,"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}]}`, noTable)
	return rows
}

// takenViewRows returns requests for names that a table or a view already has. The location free
// belongs to no object.
func takenViewRows(free string) (rows []bad) {
	add := func(fault, path, body string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: 409, kind: alreadyExists})
	}
	const location = `"metadata-location":"file:///x.metadata.json"`
	add("view", pathViews, viewJSON("view"))
	add("view, spelled with escapes", pathViews, viewJSON(`v\u0069ew`))
	add("table, for a view", pathViews, viewJSON("t"))
	add("view to register", pathRegisterView, `{"name":"view",`+location+`}`)
	add("table, for a view to register", pathRegisterView, `{"name":"t",`+location+`}`)
	add("view to rename to", pathRenameView, rename(identifier("ns", "view"), identifier("ns", "view2")))
	add("view to rename to itself", pathRenameView, rename(identifier("ns", "view"), identifier("ns", "view")))
	add("table, for a view to rename", pathRenameView, rename(identifier("ns", "view"), identifier("ns", "t")))

	add("view, for a table", pathTables, `{"name":"view","schema":`+schemaJSON+`}`)
	add("view, for a table to stage", pathTables, `{"name":"view","stage-create":true,"schema":`+schemaJSON+`}`)
	add("view, for a table to register", pathRegister, `{"name":"view",`+location+`}`)
	add("view, for a table to register over it", pathRegister, `{"name":"view","overwrite":true,`+location+`}`)
	add("view, for a table that a commit makes", pathTables+"/view", `{"requirements":[{"type":"assert-create"}],"updates":[`+createUpdates(free)+`]}`)
	add("view, for a table that a transaction makes", pathTransact, `{"table-changes":[`+goodChange+`,{"identifier":`+identifier("ns", "view")+`,"requirements":[{"type":"assert-create"}],"updates":[`+createUpdates(free)+`]}]}`)
	add("view, for a table to rename", pathRename, rename(identifier("ns", "t"), identifier("ns", "view")))
	return rows
}

// viewVersionRows returns creates and replaces with schemas, versions and properties that no view
// can have.
func viewVersionRows() (rows []bad) {
	create := func(kind, fault, members string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: pathViews, body: `{"name":"new",` + members + `}`, status: 400, kind: kind})
	}
	version := `,"view-version":` + versionJSON
	create(badRequest, "schema of a view without type", `"schema":{"fields":[]}`+version)
	create(badRequest, "schema of a view without fields", `"schema":{"type":"struct"}`+version)
	create(badRequest, "field of a view without id", `"schema":{"type":"struct","fields":[{"name":"a","required":true,"type":"int"}]}`+version)
	create(badRequest, "unknown type in a view", `"schema":{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"integer"}]}`+version)
	create(validation, "same name twice in a view", `"schema":{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"a","required":true,"type":"int"}]}`+version)
	create(validation, "same id twice in a view", `"schema":{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"int"},{"id":1,"name":"b","required":true,"type":"int"}]}`+version)
	schema := `"schema":` + schemaJSON
	create(illegal, "history of no versions", schema+version+`,"properties":{"version.history.num-entries":"0"}`)
	create(illegal, "history of some versions", schema+version+`,"properties":{"version.history.num-entries":"some"}`)

	for _, row := range []struct{ fault, kind, old, changed string }{
		{"version without id", badRequest, `"version-id":1,`, ``},
		{"version's id is text", badRequest, `"version-id":1`, `"version-id":"1"`},
		{"version's id beyond 32 bits", badRequest, `"version-id":1`, `"version-id":4294967297`},
		{"version without schema", badRequest, `"schema-id":0,`, ``},
		{"version without time", badRequest, `"timestamp-ms":1700000000000,`, ``},
		{"version's time is a fraction", badRequest, `"timestamp-ms":1700000000000`, `"timestamp-ms":1.5`},
		{"version without summary", badRequest, `"summary":{"engine-name":"test"},`, ``},
		{"summary is text", badRequest, `{"engine-name":"test"}`, `"test"`},
		{"summary with a number", badRequest, `{"engine-name":"test"}`, `{"engine-name":1}`},
		{"version without default namespace", badRequest, `"default-namespace":["ns"],`, ``},
		{"default namespace is text", badRequest, `["ns"]`, `"ns"`},
		{"default namespace with null", badRequest, `["ns"]`, `["ns",null]`},
		{"default catalog is a list", badRequest, `"schema-id":0,`, `"schema-id":0,"default-catalog":[],`},
		{"version without representations", badRequest, `"representations"`, `"representation"`},
		{"representations is an object", badRequest, `[{"type":"sql","sql":"select id, data from t","dialect":"spark"}]`, `{"type":"sql"}`},
		{"representation is text", badRequest, `{"type":"sql","sql":"select id, data from t","dialect":"spark"}`, `"select 1"`},
		{"query without type", badRequest, `{"type":"sql",`, `{`},
		{"query without sql", badRequest, `"sql":"select id, data from t",`, ``},
		{"query is a number", badRequest, `"select id, data from t"`, `1`},
		{"query without dialect", badRequest, `,"dialect":"spark"`, ``},
		{"representation of another type", illegal, `"type":"sql"`, `"type":"plan"`},
		{"two queries for a dialect", illegal, `"dialect":"spark"}`, `"dialect":"spark"},{"type":"sql","sql":"select 1","dialect":"SPARK"}`},
	} {
		changed := strings.Replace(versionJSON, row.old, row.changed, 1)
		if changed == versionJSON {
			panic(row.fault)
		}
		create(row.kind, row.fault, schema+`,"view-version":`+changed)
		rows = append(rows, bad{fault: row.fault, method: "POST", path: pathView, status: 400, kind: row.kind,
			body: `{"updates":[{"action":"add-view-version","view-version":` + changed + `}]}`})
	}
	create(illegal, "version without a query", schema+`,"view-version":`+strings.Replace(versionJSON, `{"type":"sql","sql":"select id, data from t","dialect":"spark"}`, ``, 1))
	return rows
}

// viewLocationRows returns requests with locations outside the warehouse, or inside a table or
// another view, for each operation on views with a location. The rows use the link in the warehouse
// that locationRows creates.
func (w *world) viewLocationRows(uuid string) (rows []bad) {
	w.t.Helper()
	add := func(fault, path, body string, status int, kind string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: status, kind: kind})
	}
	create := strings.TrimSuffix(viewJSON("new"), "}")
	for _, place := range []struct{ fault, location string }{
		{"the disk", "file:///"}, {"another folder", "file:///etc"}, {"another folder, bare", "/etc"}, {"beside the warehouse", w.uri("") + "-sibling/v"},
		{"way out", w.uri("") + "/../outside"}, {"through a link", w.uri("") + "/link/v"}, {"another scheme", "s3://bucket/v"}, {"no scheme and not absolute", "not a location"},
		{"NUL", w.uri("") + `/x\u0000y`}, {"query", w.uri("") + "/x?y"}, {"a name that no folder has", w.uri("/" + strings.Repeat("n", 300))},
		{"the warehouse itself", w.uri("")}, {"a namespace's folder, with tables in it", w.uri("ns")}, {"a table's", w.uri("ns/u")}, {"a table's, bare", w.warehouse + "/ns/u"},
		{"inside a table", w.uri("ns/u/inner")}, {"inside a table's metadata", w.uri("ns/u/metadata")}, {"another view's", w.uri("ns/view2")}, {"inside another view", w.uri("ns/view2/inner")},
	} {
		location := `"location":"` + place.location + `"`
		add(place.fault, pathViews, create+`,`+location+`}`, 400, badRequest)
		add(place.fault, pathView, `{"requirements":[`+assertViewUUID(uuid)+`],"updates":[{"action":"set-properties","updates":{"a":"b"}},{"action":"set-location",`+location+`}]}`, 400, badRequest)
	}
	add("a view's, for a table", pathTables, `{"name":"new","schema":`+schemaJSON+`,"location":"`+w.uri("ns/view")+`"}`, 400, badRequest)
	add("inside a view, for a table", pathTables, `{"name":"new","schema":`+schemaJSON+`,"location":"`+w.uri("ns/view/inner")+`"}`, 400, badRequest)
	add("metadata folder outside", pathViews, create+`,"properties":{"write.metadata.path":"file:///etc"}}`, 400, badRequest)
	add("metadata folder with a name that none has", pathViews, create+`,"properties":{"write.metadata.path":"`+w.uri(strings.Repeat("n", 300))+`"}}`, 400, badRequest)

	register := func(fault, location string, status int, kind string) {
		add(fault, pathRegisterView, `{"name":"new","metadata-location":"`+location+`"}`, status, kind)
	}
	register("metadata of no view", w.uri("ns/gone/metadata/00000-x.metadata.json"), 404, notFound)
	register("metadata is a folder", w.uri("ns/view/metadata"), 404, notFound)
	register("metadata outside", "file:///etc/passwd", 400, badRequest)
	register("metadata outside, through a link", w.uri("link/secret.metadata.json"), 400, badRequest)
	register("metadata by a way out", w.uri("")+"/../secret.metadata.json", 400, badRequest)
	register("metadata elsewhere", "http://127.0.0.1:1/x.metadata.json", 400, badRequest)
	register("metadata of a live view", w.metadataLocation(pathView), 409, alreadyExists)
	register("metadata of a table, for a view", w.metadataLocation(pathTable), 400, badRequest)
	add("metadata of a view, for a table", pathRegister, `{"name":"new","metadata-location":"`+w.metadataLocation(pathView)+`"}`, 400, badRequest)
	return rows
}

// replaceRow returns a change to ns.view with a part that would succeed, followed by the given one.
func replaceRow(fault, kind string, status int, requirements, updates string) bad {
	return bad{fault: fault, method: "POST", path: pathView, status: status, kind: kind,
		body: `{"requirements":[` + requirements + `],"updates":[{"action":"set-properties","updates":{"a":"b"}}` + updates + `]}`}
}

func assertViewUUID(uuid string) string { return `{"type":"assert-view-uuid","uuid":"` + uuid + `"}` }

// unknownViewRows returns changes with updates and requirements that do not exist, or only for
// tables.
func unknownViewRows(uuid string) (rows []bad) {
	for _, text := range []string{
		`{"action":"do-nothing"}`, `{"action":""}`, `{"action":"set_properties","updates":{"a":"b"}}`, `{"action":"add-snapshot","snapshot":{}}`, `{"action":"remove-schemas","schema-ids":[0]}`,
		`{"action":"set-current-schema","schema-id":0}`, `{"action":"add-spec","spec":{"spec-id":0,"fields":[]}}`, `{"action":"remove-snapshot-ref","ref-name":"main"}`,
	} {
		rows = append(rows, replaceRow("view update "+text, badRequest, 400, assertViewUUID(uuid), ","+text))
	}
	for _, text := range []string{`{"type":"assert-nothing"}`, `{"type":""}`, `{"type":"assert_view_uuid","uuid":"x"}`} {
		rows = append(rows, replaceRow("view requirement "+text, badRequest, 400, text, ""))
	}
	rows = append(rows,
		replaceRow("requirement of tables", validation, 400, assertUUID(uuid), ""),
		replaceRow("requirement of new tables", validation, 400, `{"type":"assert-create"}`, ""),
		replaceRow("unknown requirement behind one that fails", badRequest, 400, assertViewUUID("x")+`,{"type":"assert-nothing"}`, ""),
		replaceRow("unknown update and a requirement that fails", badRequest, 400, assertViewUUID("x"), `,{"action":"do-nothing"}`))
	missing := replaceRow("unknown update of a view that is not there", badRequest, 400, "", `,{"action":"do-nothing"}`)
	missing.path = pathViews + "/missing"
	return append(rows, missing)
}

// viewUpdateRows returns changes with an update that can be applied, followed by one that cannot.
func viewUpdateRows(uuid string) (rows []bad) {
	add := func(kind string, texts ...string) {
		for _, text := range texts {
			rows = append(rows, replaceRow("view "+text, kind, 400, assertViewUUID(uuid), ","+text))
		}
	}
	add(badRequest,
		`5`, `null`, `"x"`, `[]`, `{}`, `{"action":5}`, `{"action":null}`, `{"action":"assign-uuid"}`, `{"action":"assign-uuid","uuid":5}`, `{"action":"upgrade-format-version"}`,
		`{"action":"upgrade-format-version","format-version":"1"}`, `{"action":"add-schema"}`, `{"action":"add-schema","schema":[]}`, `{"action":"set-location"}`, `{"action":"set-location","location":5}`,
		`{"action":"set-properties"}`, `{"action":"set-properties","updates":[]}`, `{"action":"set-properties","updates":{"a":1}}`, `{"action":"remove-properties"}`,
		`{"action":"remove-properties","removals":{}}`, `{"action":"remove-properties","removals":[1]}`, `{"action":"add-view-version"}`, `{"action":"add-view-version","view-version":[]}`,
		`{"action":"add-view-version","view-version":{}}`, `{"action":"set-current-view-version"}`, `{"action":"set-current-view-version","view-version-id":"1"}`,
	)
	version := func(old, changed string) string {
		return `{"action":"add-view-version","view-version":` + strings.Replace(versionJSON, old, changed, 1) + `}`
	}
	add(illegal,
		`{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}`, `{"action":"upgrade-format-version","format-version":0}`, `{"action":"upgrade-format-version","format-version":2}`,
		`{"action":"set-location","location":""}`, `{"action":"set-current-view-version","view-version-id":7}`, version(`"schema-id":0`, `"schema-id":7`),
		`{"action":"set-properties","updates":{"version.history.num-entries":"0"}}`, `{"action":"set-properties","updates":{"write.metadata.compression-codec":"zstd"}}`,
		version(`"spark"`, `"trino"`)+`,{"action":"set-current-view-version","view-version-id":-1}`, // what Spark reads the view by would be lost
	)
	add(validation, `{"action":"set-current-view-version","view-version-id":-1}`, version(`"schema-id":0`, `"schema-id":-1`))
	return rows
}

// viewRequirementRows returns changes with malformed requirements, and with some that do not hold.
func viewRequirementRows() (rows []bad) {
	add := func(kind string, status int, texts ...string) {
		for _, text := range texts {
			rows = append(rows, replaceRow("view "+text, kind, status, text, ""))
		}
	}
	add(badRequest, 400, `5`, `null`, `"x"`, `[]`, `{}`, `{"type":5}`, `{"type":null}`, `{"type":"assert-view-uuid"}`, `{"type":"assert-view-uuid","uuid":5}`, `{"type":"assert-view-uuid","uuid":null}`)
	add(commitFailed, 409, assertViewUUID("00000000-0000-0000-0000-000000000000"), assertViewUUID(""), assertViewUUID("x"))
	return rows
}
