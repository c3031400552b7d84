package rest_test

import (
	"fmt"
	"strings"

	"moorage/rest"
)

// bodyRow returns a row that is refused with 400 because of its body. The fault is the body itself.
func bodyRow(path, body string) bad {
	operation := path[strings.LastIndexByte(path, '/')+1:]
	return bad{fault: fmt.Sprintf("%s %.100s", operation, body), method: "POST", path: path, body: body, status: 400, kind: badRequest}
}

// missingMemberRows returns bodies in which a required member is missing, null, or misspelled.
func missingMemberRows() (rows []bad) {
	add := func(path string, bodies ...string) {
		for _, body := range bodies {
			rows = append(rows, bodyRow(path, body))
		}
	}
	add(pathNamespaces, `{}`, `{"namespace":null}`, `{"Namespace":["a"]}`, `{"properties":{"k":"v"}}`)
	add(pathTables, `{}`, `{"name":"new"}`, `{"schema":`+schemaJSON+`}`, `{"name":null,"schema":`+schemaJSON+`}`, `{"name":"new","schema":null}`, `{"Name":"new","schema":`+schemaJSON+`}`)
	add(pathTable, `{}`, `{"updates":[]}`, `{"requirements":[]}`, `{"requirements":[],"update":[{"action":"set-properties","updates":{"a":"b"}}]}`,
		`{"requirement":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`,
		`{"identifier":{},"requirements":[],"updates":[]}`, `{"identifier":{"namespace":["ns"]},"requirements":[],"updates":[]}`, `{"identifier":{"name":"t"},"requirements":[],"updates":[]}`)
	add(pathRegister, `{}`, `{"name":"new"}`, `{"metadata-location":"file:///x"}`, `{"name":"new","metadata-location":null}`, `{"name":null,"metadata-location":"file:///x"}`, `{"name":"new","metadata_location":"file:///x"}`)
	add(pathRename, `{}`, `{"source":{"namespace":["ns"],"name":"t"}}`, `{"destination":{"namespace":["ns"],"name":"v"}}`, `{"source":null,"destination":null}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{}}`, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"]}}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{"name":"v"}}`, `{"source":{"name":"t"},"destination":{"namespace":["ns"],"name":"v"}}`)
	add(pathMetrics, `{}`, `{"report-type":null}`, `{"table-name":"ns.t","snapshot-id":1}`)
	for _, report := range []string{rest.ScanReportJSON, rest.CommitReportJSON} {
		for _, m := range membersOf(report) {
			add(pathMetrics, strings.Replace(report, m, `"other":1`, 1), strings.Replace(report, m, m[:strings.IndexByte(m, ':')]+`:null`, 1))
		}
	}
	schema, version := `"schema":`+schemaJSON, `"view-version":`+versionJSON
	add(pathViews, `{}`, `{"name":"new",`+schema+`}`, `{"name":"new",`+version+`}`, `{`+schema+`,`+version+`}`, `{"name":null,`+schema+`,`+version+`}`, `{"name":"new","schema":null,`+version+`}`,
		`{"name":"new",`+schema+`,"view-version":null}`, `{"name":"new",`+schema+`,"version":`+versionJSON+`}`)
	add(pathView, `{}`, `{"requirements":[]}`, `{"update":[{"action":"set-properties","updates":{"a":"b"}}]}`, `{"requirements":[],"Updates":[{"action":"set-properties","updates":{"a":"b"}}]}`,
		`{"identifier":{},"updates":[]}`, `{"identifier":{"namespace":["ns"]},"updates":[]}`, `{"identifier":{"name":"view"},"updates":[]}`)
	add(pathRegisterView, `{}`, `{"name":"new"}`, `{"metadata-location":"file:///x"}`, `{"name":"new","metadata-location":null}`, `{"name":null,"metadata-location":"file:///x"}`, `{"name":"new","metadata_location":"file:///x"}`)
	add(pathRenameView, `{}`, `{"source":`+identifier("ns", "view")+`}`, `{"destination":`+identifier("ns", "new")+`}`, `{"source":null,"destination":null}`,
		rename(identifier("ns", "view"), `{}`), rename(identifier("ns", "view"), `{"namespace":["ns"]}`), rename(identifier("ns", "view"), `{"name":"new"}`), rename(`{"name":"view"}`, identifier("ns", "new")))
	return rows
}

// membersOf returns the text of the members of an object. No value in it may contain a comma.
func membersOf(object string) []string {
	return strings.Split(object[1:len(object)-1], ",")
}

// wrongTypeRows returns bodies with a member of the wrong type.
func wrongTypeRows() (rows []bad) {
	add := func(path string, bodies ...string) {
		for _, body := range bodies {
			rows = append(rows, bodyRow(path, body))
		}
	}
	add(pathNamespaces, `{"namespace":"a"}`, `{"namespace":{}}`, `{"namespace":5}`, `{"namespace":true}`, `{"namespace":[1]}`, `{"namespace":["a",null]}`, `{"namespace":[["a"]]}`, `{"namespace":[{"a":"b"}]}`,
		`{"namespace":["a"],"properties":[]}`, `{"namespace":["a"],"properties":"x"}`, `{"namespace":["a"],"properties":{"k":1}}`,
		`{"namespace":["a"],"properties":{"k":null}}`, `{"namespace":["a"],"properties":{"k":{}}}`, `{"namespace":["a"],"properties":{"k":false}}`)
	add(pathProperties, `{"removals":"k"}`, `{"removals":{}}`, `{"removals":[1]}`, `{"removals":[null]}`, `{"removals":[["k"]]}`, `{"updates":[]}`, `{"updates":"k"}`, `{"updates":{"k":1}}`, `{"updates":{"k":null}}`, `{"updates":{"k":["v"]}}`,
		`{"removals":["k"],"updates":{"a":1}}`)
	schema := `"schema":` + schemaJSON
	add(pathTables, `{"name":1,`+schema+`}`, `{"name":["new"],`+schema+`}`, `{"name":{"name":"new"},`+schema+`}`, `{"name":"new","schema":"struct"}`, `{"name":"new","schema":[]}`, `{"name":"new","schema":5}`,
		`{"name":"new",`+schema+`,"location":5}`, `{"name":"new",`+schema+`,"location":["file:///x"]}`, `{"name":"new",`+schema+`,"partition-spec":[]}`, `{"name":"new",`+schema+`,"partition-spec":"id"}`,
		`{"name":"new",`+schema+`,"write-order":"id"}`, `{"name":"new",`+schema+`,"write-order":[]}`, `{"name":"new",`+schema+`,"stage-create":"true"}`, `{"name":"new",`+schema+`,"stage-create":1}`,
		`{"name":"new",`+schema+`,"properties":["a"]}`, `{"name":"new",`+schema+`,"properties":{"a":true}}`, `{"name":"new",`+schema+`,"properties":{"format-version":2}}`)
	add(pathTable, `{"requirements":{},"updates":[]}`, `{"requirements":[],"updates":{}}`, `{"requirements":"x","updates":[]}`, `{"requirements":[],"updates":5}`, `{"requirements":true,"updates":[]}`, `{"requirements":[],"updates":{"action":"set-properties"}}`,
		`{"identifier":"ns.t","requirements":[],"updates":[]}`, `{"identifier":["ns","t"],"requirements":[],"updates":[]}`, `{"identifier":{"namespace":"ns","name":"t"},"requirements":[],"updates":[]}`,
		`{"identifier":{"namespace":["ns"],"name":["t"]},"requirements":[],"updates":[]}`)
	add(pathRegister, `{"name":"new","metadata-location":5}`, `{"name":"new","metadata-location":["file:///x"]}`, `{"name":["new"],"metadata-location":"file:///x"}`, `{"name":5,"metadata-location":"file:///x"}`,
		`{"name":"new","metadata-location":"file:///x","overwrite":"yes"}`, `{"name":"new","metadata-location":"file:///x","overwrite":1}`)
	add(pathRename, `{"source":"ns.t","destination":"ns.v"}`, `{"source":["ns","t"],"destination":["ns","v"]}`, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":"ns","name":"v"}}`,
		`{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":5}}`, `{"source":{"namespace":[5],"name":"t"},"destination":{"namespace":["ns"],"name":"v"}}`)
	add(pathMetrics, `{"report-type":5}`, `{"report-type":["scan-report"]}`, `{"report-type":{}}`)
	for _, report := range []string{rest.ScanReportJSON, rest.CommitReportJSON} {
		for _, m := range membersOf(report) {
			name := m[:strings.IndexByte(m, ':')]
			wrong := []string{`[[]]`, `1.5`, `{"a":1}`}
			for _, value := range wrong {
				add(pathMetrics, strings.Replace(report, m, name+":"+value, 1))
			}
		}
		for _, metric := range []string{`1`, `null`, `[]`, `{}`, `{"unit":"count"}`, `{"value":1}`, `{"unit":1,"value":1}`, `{"unit":"count","value":"1"}`, `{"unit":"count","value":null}`,
			`{"time-unit":"ms","count":1}`, `{"time-unit":1,"count":1,"total-duration":1}`, `{"time-unit":"ms","count":1.5,"total-duration":1}`, `{"time-unit":"ms","count":1,"total-duration":9223372036854775808}`} {
			add(pathMetrics, strings.Replace(report, `"metrics":{}`, `"metrics":{"m":`+metric+`}`, 1))
		}
		add(pathMetrics, strings.Replace(report, `"metrics":{}`, `"metrics":{},"metadata":{"k":1}`, 1), strings.Replace(report, `"metrics":{}`, `"metrics":{},"metadata":[]`, 1))
	}
	add(pathMetrics, strings.Replace(rest.ScanReportJSON, `ids":[]`, `ids":["1"]`, 1), strings.Replace(rest.ScanReportJSON, `names":[]`, `names":[1]`, 1),
		strings.Replace(rest.ScanReportJSON, "true", `"true"`, 1), strings.Replace(rest.ScanReportJSON, "true", `{}`, 1), strings.Replace(rest.ScanReportJSON, "true", `{"type":1}`, 1))
	version := `"view-version":` + versionJSON
	both := schema + `,` + version
	add(pathViews, `{"name":1,`+both+`}`, `{"name":["new"],`+both+`}`, `{"name":"new","schema":"struct",`+version+`}`, `{"name":"new","schema":[],`+version+`}`, `{"name":"new",`+schema+`,"view-version":[]}`,
		`{"name":"new",`+schema+`,"view-version":"select 1"}`, `{"name":"new",`+schema+`,"view-version":1}`, `{"name":"new",`+both+`,"location":5}`, `{"name":"new",`+both+`,"location":["file:///x"]}`,
		`{"name":"new",`+both+`,"properties":["a"]}`, `{"name":"new",`+both+`,"properties":"a"}`, `{"name":"new",`+both+`,"properties":{"a":true}}`, `{"name":"new",`+both+`,"properties":{"a":null}}`)
	add(pathView, `{"updates":{}}`, `{"updates":5}`, `{"updates":"x"}`, `{"updates":{"action":"set-properties"}}`, `{"requirements":{},"updates":[]}`, `{"requirements":"x","updates":[]}`, `{"requirements":true,"updates":[]}`,
		`{"identifier":"ns.view","updates":[]}`, `{"identifier":["ns","view"],"updates":[]}`, `{"identifier":{"namespace":"ns","name":"view"},"updates":[]}`, `{"identifier":{"namespace":["ns"],"name":["view"]},"updates":[]}`)
	add(pathRegisterView, `{"name":"new","metadata-location":5}`, `{"name":"new","metadata-location":["file:///x"]}`, `{"name":["new"],"metadata-location":"file:///x"}`, `{"name":5,"metadata-location":"file:///x"}`)
	add(pathRenameView, `{"source":"ns.view","destination":"ns.new"}`, `{"source":["ns","view"],"destination":["ns","new"]}`, rename(identifier("ns", "view"), `{"namespace":"ns","name":"new"}`),
		rename(identifier("ns", "view"), `{"namespace":["ns"],"name":5}`), rename(`{"namespace":[5],"name":"view"}`, identifier("ns", "new")))
	return rows
}

// outOfBoundsRows returns bodies with a member of the right type and an invalid value.
func outOfBoundsRows() (rows []bad) {
	rows = append(rows, bodyRow(pathRegister, `{"name":"new","metadata-location":""}`), bodyRow(pathRegisterView, `{"name":"new","metadata-location":""}`),
		bodyRow(pathMetrics, `{"report-type":""}`), bodyRow(pathMetrics, `{"report-type":"other-report"}`), bodyRow(pathMetrics, `{"report-type":"SCAN-REPORT"}`))
	row := bodyRow(pathProperties, `{"removals":["k"],"updates":{"k":"w"}}`)
	row.status, row.kind = 422, unprocessable
	rows = append(rows, row)
	row = bodyRow(pathProperties, `{"removals":["a","k","k"],"updates":{"b":"w","k":"w"}}`)
	row.status, row.kind = 422, unprocessable
	rows = append(rows, row)
	for _, version := range []string{"0", "4", "99", "-1", "x", "", "2.0", "２", "9999999999999999999999"} {
		row := bodyRow(pathTables, `{"name":"new","properties":{"format-version":"`+version+`"},"schema":`+schemaJSON+`}`)
		row.kind = illegal
		rows = append(rows, row)
	}
	return rows
}
