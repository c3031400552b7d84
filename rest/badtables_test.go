package rest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// schemaRows returns requests with invalid schemas, partition specs and sort orders.
func schemaRows() (rows []bad) {
	add := func(kind, fault, members string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: pathTables, body: `{"name":"new",` + members + `}`, status: 400, kind: kind})
	}
	fields := func(fields string) string { return `"schema":{"type":"struct","fields":[` + fields + `]}` }
	field := func(kind string) string { return fields(`{"id":1,"name":"a","required":false,"type":` + kind + `}`) }
	schema := `"schema":` + schemaJSON + `,`
	add(badRequest, "schema without type", `"schema":{"fields":[]}`)
	add(badRequest, "schema without fields", `"schema":{"type":"struct"}`)
	add(badRequest, "schema is a list", `"schema":{"type":"list","element-id":1,"element":"int","element-required":true}`)
	add(badRequest, "fields is an object", `"schema":{"type":"struct","fields":{}}`)
	add(badRequest, "a field is text", fields(`"a"`))
	add(badRequest, "field without id", fields(`{"name":"a","required":true,"type":"int"}`))
	add(badRequest, "field without name", fields(`{"id":1,"required":true,"type":"int"}`))
	add(badRequest, "field without type", fields(`{"id":1,"name":"a","required":true}`))
	add(badRequest, "field without required", fields(`{"id":1,"name":"a","type":"int"}`))
	add(badRequest, "id is text", fields(`{"id":"1","name":"a","required":true,"type":"int"}`))
	add(badRequest, "id is a fraction", fields(`{"id":1.5,"name":"a","required":true,"type":"int"}`))
	add(badRequest, "id beyond 32 bits", fields(`{"id":4294967297,"name":"a","required":true,"type":"int"}`))
	add(badRequest, "required is text", fields(`{"id":1,"name":"a","required":"yes","type":"int"}`))
	add(validation, "same name twice", fields(`{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"a","required":true,"type":"int"}`))
	add(validation, "same id twice", fields(`{"id":1,"name":"a","required":true,"type":"int"},{"id":1,"name":"b","required":true,"type":"int"}`))
	add(badRequest, "unknown type", field(`"integer"`))
	add(badRequest, "type is a number", field(`5`))
	add(badRequest, "unknown nested type", field(`{"type":"set","element":"int"}`))
	add(badRequest, "list without element", field(`{"type":"list","element-id":2,"element-required":true}`))
	add(badRequest, "map without key", field(`{"type":"map","value-id":2,"value":"int","value-required":true}`))
	add(badRequest, "decimal too wide", field(`"decimal(39,2)"`))
	add(badRequest, "decimal without scale", field(`"decimal(9)"`))
	add(badRequest, "fixed without length", field(`"fixed[]"`))
	add(illegal, "variant in version 2", field(`"variant"`))
	add(illegal, "nanoseconds in version 2", field(`"timestamp_ns"`))
	add(illegal, "default in version 2", fields(`{"id":1,"name":"a","required":false,"type":"int","initial-default":5}`))
	add(illegal, "identifier field unknown", `"schema":{"type":"struct","identifier-field-ids":[9],"fields":[{"id":1,"name":"a","required":true,"type":"int"}]}`)
	add(illegal, "identifier field optional", `"schema":{"type":"struct","identifier-field-ids":[1],"fields":[{"id":1,"name":"a","required":false,"type":"int"}]}`)
	spec := func(members string) string {
		return schema + `"partition-spec":{"spec-id":0,"fields":[{` + members + `}]}`
	}
	add(badRequest, "partition without fields", schema+`"partition-spec":{"spec-id":0}`)
	add(validation, "partition source unknown", spec(`"source-id":9,"field-id":1000,"name":"p","transform":"identity"`))
	add(badRequest, "partition source missing", spec(`"field-id":1000,"name":"p","transform":"identity"`))
	add(illegal, "partition name is a column", spec(`"source-id":1,"field-id":1000,"name":"data","transform":"bucket[4]"`))
	add(validation, "partition transform for another type", spec(`"source-id":1,"field-id":1000,"name":"p","transform":"day"`))
	add(badRequest, "partition of no width", spec(`"source-id":1,"field-id":1000,"name":"p","transform":"bucket[0]"`))
	order := func(members string) string {
		return schema + `"write-order":{"order-id":1,"fields":[{` + members + `}]}`
	}
	add(validation, "sort source unknown", order(`"source-id":9,"transform":"identity","direction":"asc","null-order":"nulls-first"`))
	add(badRequest, "sort direction unknown", order(`"source-id":1,"transform":"identity","direction":"up","null-order":"nulls-first"`))
	add(badRequest, "sort without direction", order(`"source-id":1,"transform":"identity","null-order":"nulls-first"`))
	add(badRequest, "sort of nulls unknown", order(`"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-between"`))
	return rows
}

// createUpdates returns the updates of a commit that creates a table at location.
func createUpdates(location string) string {
	return `{"action":"assign-uuid","uuid":"5c9f5b0a-54b5-4b4e-9f0f-6a0f6f0f6f0f"},{"action":"upgrade-format-version","format-version":2},` +
		`{"action":"add-schema","schema":` + schemaJSON + `},{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},` +
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},{"action":"set-location","location":"` + location + `"}`
}

// locationRows returns requests with locations outside the warehouse, or inside another table, for
// each operation with a location.
func (w *world) locationRows(uuid string) (rows []bad) {
	w.t.Helper()
	outside := filepath.Dir(w.warehouse)
	if err := os.Symlink(outside, filepath.Join(w.warehouse, "link")); err != nil {
		w.t.Fatal(err)
	}
	add := func(fault, path, body string, status int, kind string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: status, kind: kind})
	}
	for _, place := range []struct{ fault, location string }{
		{"the disk", "file:///"}, {"another folder", "file:///etc"}, {"another folder, bare", "/etc"}, {"beside the warehouse", w.uri("") + "-sibling/t"}, {"above the warehouse", "file://" + outside},
		{"way out", w.uri("") + "/../outside"}, {"long way out", w.uri("") + "/a/../../../etc"}, {"through a link", w.uri("") + "/link/t"}, {"another scheme", "s3://bucket/t"}, {"unknown scheme", "gopher://x/t"},
		{"another host", "file://elsewhere" + w.warehouse + "/x"}, {"no scheme and not absolute", "not a location"}, {"scheme and not absolute", "file:relative"}, {"NUL", w.uri("") + `/x\u0000y`},
		{"query", w.uri("") + "/x?y"}, {"fragment", w.uri("") + "/x#y"}, {"a name that no folder has", w.uri("/" + strings.Repeat("n", 300))},
		{"the warehouse itself", w.uri("")}, {"a namespace's folder, with tables in it", w.uri("ns")}, {"another table's", w.uri("ns/u")}, {"another table's, spelled with a slash", w.uri("ns/u") + "/"},
		{"another table's, spelled with two slashes", w.uri("") + "/ns//u"}, {"another table's, spelled with one", "file:" + w.warehouse + "/ns/u"}, {"another table's, bare", w.warehouse + "/ns/u"},
		{"inside another table", w.uri("ns/u/inner")}, {"inside another table's metadata", w.uri("ns/u/metadata")}, {"far inside another table", w.uri("ns/u/a/b/c/d")},
	} {
		location := `"` + place.location + `"`
		add(place.fault, pathTables, `{"name":"new","schema":`+schemaJSON+`,"location":`+location+`}`, 400, badRequest)
		add(place.fault, pathTables, `{"name":"new","stage-create":true,"schema":`+schemaJSON+`,"location":`+location+`}`, 400, badRequest)
		add(place.fault, pathTable, `{"requirements":[{"type":"assert-table-uuid","uuid":"`+uuid+`"}],"updates":[{"action":"set-properties","updates":{"a":"b"}},{"action":"set-location","location":`+location+`}]}`, 400, badRequest)
		add(place.fault, pathTables+"/new", `{"requirements":[{"type":"assert-create"}],"updates":[`+createUpdates(place.location)+`]}`, 400, badRequest)
	}
	// No folder can have such a name, so a retry would not help.
	add("metadata folder with a name that none has", pathTables, `{"name":"new","schema":`+schemaJSON+`,"properties":{"write.metadata.path":"`+w.uri(strings.Repeat("n", 300))+`"}}`, 400, badRequest)
	add("metadata codec that is not known", pathTables, `{"name":"new","schema":`+schemaJSON+`,"properties":{"write.metadata.compression-codec":"zstd"}}`, 400, illegal)
	add("metadata folder outside", pathTables, `{"name":"new","schema":`+schemaJSON+`,"properties":{"write.metadata.path":"file:///etc"}}`, 400, badRequest)
	add("metadata of no table", pathRegister, `{"name":"new","metadata-location":"`+w.uri("ns/gone/metadata/00000-x.metadata.json")+`"}`, 404, notFound)
	add("metadata is a folder", pathRegister, `{"name":"new","metadata-location":"`+w.uri("ns/t/metadata")+`"}`, 404, notFound)
	add("metadata outside", pathRegister, `{"name":"new","metadata-location":"file:///etc/passwd"}`, 400, badRequest)
	add("metadata outside, through a link", pathRegister, `{"name":"new","metadata-location":"`+w.uri("link/secret.metadata.json")+`"}`, 400, badRequest)
	add("metadata by a way out", pathRegister, `{"name":"new","metadata-location":"`+w.uri("")+`/../secret.metadata.json"}`, 400, badRequest)
	add("metadata elsewhere", pathRegister, `{"name":"new","metadata-location":"http://127.0.0.1:1/x.metadata.json"}`, 400, badRequest)
	add("metadata of a live table", pathRegister, `{"name":"new","metadata-location":"`+w.metadataLocation(pathTable)+`"}`, 409, alreadyExists)
	add("metadata of another live table, to overwrite", pathRegister, `{"name":"u","overwrite":true,"metadata-location":"`+w.metadataLocation(pathTable)+`"}`, 409, alreadyExists)
	return rows
}

// commitRow returns a commit to ns.t with a change that would succeed, followed by the given ones.
func commitRow(fault, kind string, status int, requirements, updates string) bad {
	return bad{fault: fault, method: "POST", path: pathTable, status: status, kind: kind,
		body: `{"requirements":[` + requirements + `],"updates":[{"action":"set-properties","updates":{"a":"b"}}` + updates + `]}`}
}

func assertUUID(uuid string) string { return `{"type":"assert-table-uuid","uuid":"` + uuid + `"}` }

// unknownRows returns commits with updates and requirements that do not exist, or not for tables.
func unknownRows(uuid string) (rows []bad) {
	for _, text := range []string{
		`{"action":"do-nothing"}`, `{"action":""}`, `{"action":"set_properties","updates":{"a":"b"}}`, `{"action":"set-properties ","updates":{"a":"b"}}`, `{"action":"enable-row-lineage"}`,
		`{"action":"add-view-version","view-version":{}}`, `{"action":"set-current-view-version","view-version-id":1}`, `{"action":"append-files","files":[]}`,
	} {
		rows = append(rows, commitRow("update "+text, badRequest, 400, assertUUID(uuid), ","+text))
	}
	for _, text := range []string{`{"type":"assert-nothing"}`, `{"type":""}`, `{"type":"assert_create"}`, `{"type":"assert-table-does-not-exist"}`} {
		rows = append(rows, commitRow("requirement "+text, badRequest, 400, text, ""))
	}
	rows = append(rows,
		commitRow("requirement of views", validation, 400, `{"type":"assert-view-uuid","uuid":"`+uuid+`"}`, ""),
		commitRow("unknown requirement behind one that fails", badRequest, 400, `{"type":"assert-create"},{"type":"assert-nothing"}`, ""),
		commitRow("unknown update and a requirement that fails", badRequest, 400, `{"type":"assert-create"}`, `,{"action":"do-nothing"}`))
	missing := commitRow("unknown update of a table that is not there", badRequest, 400, "", `,{"action":"do-nothing"}`)
	missing.path = pathTables + "/missing"
	return append(rows, missing)
}

// updateRows returns commits with an update that can be applied, followed by one that cannot.
func updateRows(uuid string) (rows []bad) {
	add := func(kind string, status int, texts ...string) {
		for _, text := range texts {
			rows = append(rows, commitRow(text, kind, status, assertUUID(uuid), ","+text))
		}
	}
	snapshot := func(text string) string {
		return strings.ReplaceAll(text, "SNAPSHOT", fmt.Sprint(snapshotID))
	}
	add(badRequest, 400,
		`5`, `null`, `"x"`, `[]`, `{}`, `{"action":5}`, `{"action":null}`, `{"action":"assign-uuid"}`, `{"action":"assign-uuid","uuid":5}`, `{"action":"upgrade-format-version"}`,
		`{"action":"upgrade-format-version","format-version":"3"}`, `{"action":"add-schema"}`, `{"action":"add-schema","schema":[]}`, `{"action":"set-current-schema"}`,
		`{"action":"remove-schemas","schema-ids":"0"}`, `{"action":"add-spec"}`, `{"action":"set-default-spec"}`, `{"action":"remove-partition-specs"}`,
		`{"action":"add-sort-order","sort-order":{}}`, `{"action":"set-default-sort-order"}`, `{"action":"add-snapshot"}`, `{"action":"add-snapshot","snapshot":{}}`,
		`{"action":"add-snapshot","snapshot":{"snapshot-id":"5"}}`,
		`{"action":"add-snapshot","snapshot":{"snapshot-id":9223372036854775808,"sequence-number":9,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`,
		snapshot(`{"action":"set-snapshot-ref","ref-name":"b","snapshot-id":SNAPSHOT}`), snapshot(`{"action":"set-snapshot-ref","type":"branch","snapshot-id":SNAPSHOT}`),
		`{"action":"remove-snapshots"}`, `{"action":"remove-snapshots","snapshot-ids":["5"]}`, `{"action":"remove-snapshot-ref"}`, `{"action":"set-location"}`,
		`{"action":"set-location","location":5}`, `{"action":"set-properties"}`, `{"action":"set-properties","updates":[]}`, `{"action":"set-properties","updates":{"a":1}}`,
		`{"action":"remove-properties"}`, `{"action":"remove-properties","removals":{}}`, `{"action":"remove-properties","removals":[1]}`, `{"action":"set-statistics"}`,
		`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1}}`, `{"action":"remove-statistics"}`,
		`{"action":"remove-statistics","snapshot-id":"1"}`, `{"action":"set-partition-statistics","partition-statistics":{}}`, `{"action":"remove-partition-statistics"}`,
		`{"action":"add-encryption-key"}`, `{"action":"remove-encryption-key"}`,
	)
	add(illegal, 400,
		`{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}`, `{"action":"assign-uuid","uuid":"x"}`, `{"action":"upgrade-format-version","format-version":1}`,
		`{"action":"upgrade-format-version","format-version":4}`, `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":9,"name":"v","required":false,"type":"variant"}]}}`,
		`{"action":"set-current-schema","schema-id":7}`, `{"action":"remove-schemas","schema-ids":[0]}`, `{"action":"set-default-spec","spec-id":7}`,
		`{"action":"remove-partition-specs","spec-ids":[0]}`, `{"action":"set-default-sort-order","sort-order-id":7}`,
		`{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":9,"timestamp-ms":99999999999999,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`,
		`{"action":"set-properties","updates":{"write.metadata.compression-codec":"zstd"}}`,
		snapshot(`{"action":"set-snapshot-ref","ref-name":"b","type":"twig","snapshot-id":SNAPSHOT}`),
		snapshot(`{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":SNAPSHOT,"min-snapshots-to-keep":0}`),
		snapshot(`{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":SNAPSHOT,"max-ref-age-ms":-1}`),
		snapshot(`{"action":"set-snapshot-ref","ref-name":"b","type":"tag","snapshot-id":SNAPSHOT,"min-snapshots-to-keep":1}`), `{"action":"set-location","location":""}`,
	)
	add(validation, 400,
		`{"action":"set-current-schema","schema-id":-1}`, `{"action":"add-spec","spec":{"fields":[{"source-id":9,"name":"p","transform":"identity"}]}}`,
		`{"action":"set-default-spec","spec-id":-1}`, `{"action":"set-default-sort-order","sort-order-id":-1}`,
		snapshot(`{"action":"add-snapshot","snapshot":{"snapshot-id":SNAPSHOT,"sequence-number":9,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`),
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}`, snapshot(`{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":SNAPSHOT}`),
	)
	add(commitFailed, 409,
		`{"action":"add-snapshot","snapshot":{"snapshot-id":8,"parent-snapshot-id":7,"sequence-number":1,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}`,
		`{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":2,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}},{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8}`)
	return rows
}

// requirementRows returns commits with malformed requirements, and with some that do not hold.
func requirementRows(uuid string) (rows []bad) {
	add := func(kind string, status int, texts ...string) {
		for _, text := range texts {
			rows = append(rows, commitRow(text, kind, status, text, ""))
		}
	}
	add(badRequest, 400,
		`5`, `null`, `"x"`, `[]`, `{}`, `{"type":5}`, `{"type":null}`, `{"type":"assert-table-uuid"}`, `{"type":"assert-table-uuid","uuid":5}`, `{"type":"assert-ref-snapshot-id"}`,
		`{"type":"assert-ref-snapshot-id","ref":5,"snapshot-id":1}`, `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":"1"}`,
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1.5}`, `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":99999999999999999999}`,
		`{"type":"assert-current-schema-id"}`, `{"type":"assert-current-schema-id","current-schema-id":null}`, `{"type":"assert-default-spec-id","default-spec-id":"0"}`,
		`{"type":"assert-last-assigned-field-id","last-assigned-field-id":[2]}`, `{"type":"assert-default-sort-order-id"}`, `{"type":"assert-last-assigned-partition-id"}`,
	)
	add(illegal, 400,
		`{"type":"assert-create"},`+assertUUID(uuid),
	)
	add(commitFailed, 409,
		`{"type":"assert-create"}`, assertUUID("00000000-0000-0000-0000-000000000000"), assertUUID(""), `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}`,
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}`, `{"type":"assert-ref-snapshot-id","ref":"other","snapshot-id":7}`, `{"type":"assert-current-schema-id","current-schema-id":7}`,
		`{"type":"assert-last-assigned-field-id","last-assigned-field-id":7}`, `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":7}`,
		`{"type":"assert-default-spec-id","default-spec-id":7}`, `{"type":"assert-default-sort-order-id","default-sort-order-id":7}`)
	return rows
}
