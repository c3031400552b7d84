package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"moorage/rest"
	"moorage/testkit/scale"
)

// bad is a request that must be refused, and must change nothing.
type bad struct {
	// fault describes the fault. The same fault in several operations has the same text, so that it
	// counts once.
	fault              string
	method, path, body string
	status             int
	kind               string
	limited            bool   // sent to a server that accepts at most limitedBytes
	names              string // text that the message must contain; may be empty
}

// badCategory is a group of rows about one kind of fault.
type badCategory struct {
	name string
	rows []bad
}

// limitedBytes is the longest body that a world's limited server reads.
const limitedBytes = 8 << 20

// answerBytesMax is more than any refusal needs, however long the refused value is.
const answerBytesMax = 8 << 10

// Types of failures.
const (
	badRequest    = "BadRequestException"
	illegal       = "IllegalArgumentException"
	validation    = "ValidationException"
	noWarehouse   = "NoSuchWarehouseException"
	noNamespace   = "NoSuchNamespaceException"
	noTable       = "NoSuchTableException"
	noView        = "NoSuchViewException"
	notFound      = "NotFoundException"
	noRoute       = "NoSuchRouteException"
	noMethod      = "MethodNotAllowedException"
	alreadyExists = "AlreadyExistsException"
	commitFailed  = "CommitFailedException"
	unprocessable = "UnprocessableEntityException"
	tooLarge      = "RequestTooLargeException"
)

// Paths of operations with a body.
const (
	pathNamespaces   = "/v1/namespaces"
	pathProperties   = "/v1/namespaces/ns/properties"
	pathTables       = "/v1/namespaces/ns/tables"
	pathTable        = "/v1/namespaces/ns/tables/t"
	pathRegister     = "/v1/namespaces/ns/register"
	pathRename       = "/v1/tables/rename"
	pathMetrics      = "/v1/namespaces/ns/tables/t/metrics"
	pathTransact     = "/v1/transactions/commit"
	pathViews        = "/v1/namespaces/ns/views"
	pathView         = "/v1/namespaces/ns/views/view"
	pathRegisterView = "/v1/namespaces/ns/register-view"
	pathRenameView   = "/v1/views/rename"
)

// pathsWithBody returns the paths of all operations with a body.
func pathsWithBody() []string {
	return []string{
		pathNamespaces, pathProperties, pathTables, pathTable, pathRegister, pathRename, pathMetrics, pathTransact,
		pathViews, pathView, pathRegisterView, pathRenameView,
	}
}

func parseURL(t testing.TB, path string) *url.URL {
	t.Helper()
	parsed, err := url.ParseRequestURI(path)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// faultsMin is the minimum number of different faults in the table. The same fault in another
// operation does not count again.
const faultsMin = 200

// Each row is refused with its status and its type, and leaves no trace.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	uuid, view := w.fill(), w.viewUUID()
	limited := rest.NewServer(rest.TestConfig{Catalog: w.catalog, BodyBytesMax: limitedBytes})
	categories := []badCategory{
		{"malformed JSON", malformedRows()},
		{"duplicate keys", duplicateRows()},
		{"deep nesting", deepRows()},
		{"20 MB bodies", largeRows(uuid)},
		{"missing members", missingMemberRows()},
		{"wrong types", wrongTypeRows()},
		{"values out of bounds", outOfBoundsRows()},
		{"names in paths", pathNameRows()},
		{"names in bodies", bodyNameRows()},
		{"names that are not there", absentRows()},
		{"names that are taken", takenRows(w.uri("free"))},
		{"routes", routeRows()},
		{"parameters", parameterRows()},
		{"page tokens", w.tokenRows()},
		{"schemas", schemaRows()},
		{"locations", w.locationRows(uuid)},
		{"unknown updates and requirements", unknownRows(uuid)},
		{"updates", updateRows(uuid)},
		{"requirements", requirementRows(uuid)},
		{"transactions", transactionRows(uuid)},
		{"versions of views", viewVersionRows()},
		{"locations of views", w.viewLocationRows(view)},
		{"unknown updates and requirements of views", unknownViewRows(view)},
		{"updates of views", viewUpdateRows(view)},
		{"requirements of views", viewRequirementRows()},
	}
	wantManyFaults(t, categories)
	before := w.dump()
	drawn, all := scale.Sample(t), true
	for _, category := range categories {
		for i, row := range category.rows {
			if !drawn() {
				all = false
				continue
			}
			t.Run(fmt.Sprintf("%s/%d %s %.60s", category.name, i, row.method, row.fault), func(t *testing.T) {
				server := http.Handler(w)
				if row.limited {
					server = limited
				}
				wantRefused(t, server, row)
				if after := w.dump(); after != before {
					t.Errorf("%s %.200s %.200s changed\n%s\nto\n%s", row.method, row.path, row.body, before, after)
					before = after
				}
			})
		}
	}
	wantSpecifiedStatuses(t, w)
	wantSpecifiedStatuses(t, limited)
	if got := len(answered(t, w)); all && got != 28-3 { // the answer to HEAD has no body for a message
		t.Errorf("%d operations were asked", got)
	}
	w.wantClean()
}

// wantManyFaults checks that no request is in the table twice, and that the table has enough
// different faults.
func wantManyFaults(t *testing.T, categories []badCategory) {
	t.Helper()
	faults, requests := make(map[string]bool), make(map[string]bool)
	for _, category := range categories {
		for _, row := range category.rows {
			faults[category.name+": "+row.fault] = true
			request := fmt.Sprint(row.method, " ", row.path, " ", row.limited, " ", row.body)
			if requests[request] {
				t.Errorf("%s, %s: the request stands there twice: %.300s", category.name, row.fault, request)
			}
			requests[request] = true
		}
	}
	t.Logf("%d faults in %d requests", len(faults), len(requests))
	if len(faults) < faultsMin {
		t.Errorf("%d different faults, want %d", len(faults), faultsMin)
	}
}

// wantRefused sends a row and checks its answer.
func wantRefused(t *testing.T, server http.Handler, row bad) {
	t.Helper()
	answer := sendTo(t, server, row.method, row.path, row.body)
	var got failure
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v in %d %s", err, answer.Code, answer.Body)
	}
	if size := answer.Body.Len(); size > answerBytesMax {
		t.Errorf("%s %.200s %.200s: the answer has %d bytes", row.method, row.path, row.body, size)
	}
	if answer.Code != row.status || got.Error.Code != row.status || got.Error.Type != row.kind || got.Error.Message == "" {
		t.Errorf("%s %.200s %.200s\ngot  %d %.500s\nwant %d %s", row.method, row.path, row.body, answer.Code, answer.Body, row.status, row.kind)
	}
	if !strings.Contains(got.Error.Message, row.names) {
		t.Errorf("%s %.200s %.200s: the message does not name %s: %s", row.method, row.path, row.body, row.names, got.Error.Message)
	}
}

// malformedRows returns bodies that are not a JSON object, for every operation with a body.
func malformedRows() (rows []bad) {
	for _, body := range []struct{ fault, text string }{
		{"empty", ""},
		{"nothing but spaces", " \n"},
		{"an array", `[]`},
		{"a string", `"x"`},
		{"a number", `5`},
		{"null", `null`},
		{"a form", `name=t&schema=x`},
		{"XML", `<name>t</name>`},
		{"torn in a value", `{"name":`},
		{"torn in a string", `{"name":"t`},
		{"torn in an array", `{"updates":[`},
		{"trailing text", `{"name":"n","namespace":["n"]} x`},
		{"two objects", `{}{}`},
		{"a comma too many", `{"name":"t",}`},
		{"a comma too few", `{"name":"t" "x":1}`},
		{"no colon", `{"name" "t"}`},
		{"a name without quotes", `{name:"t"}`},
		{"single quotes", `{'name':'t'}`},
		{"a comment", `{/**/}`},
		{"a leading zero", `{"x":01}`},
		{"a fraction without digits", `{"x":1.}`},
		{"not a number", `{"x":NaN}`},
		{"a Python literal", `{"x":True}`},
		{"an unknown escape", `{"name":"\x41"}`},
		{"a line break in a string", "{\"name\":\"a\nb\"}"},
		{"not UTF-8", "{\"name\":\"\xff\"}"},
		{"overlong UTF-8", "{\"name\":\"\xc0\xaf\"}"},
		{"a surrogate in UTF-8", "{\"name\":\"\xed\xa0\x80\"}"},
		{"UTF-16", "\xff\xfe{\x00}\x00"},
		{"a byte order mark", "\ufeff{}"},
		{"a lone surrogate", `{"name":"\ud800"}`},
		{"surrogates in the wrong order", `{"name":"\udc00\ud800"}`},
	} {
		for _, path := range pathsWithBody() {
			rows = append(rows, bad{fault: body.fault, method: "POST", path: path, body: body.text, status: 400, kind: badRequest})
		}
	}
	return rows
}

// duplicateRows returns objects in which a name occurs twice. Readers of a metadata file would
// disagree about which counts.
func duplicateRows() (rows []bad) {
	add := func(fault, path, body string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: 400, kind: badRequest})
	}
	for _, path := range pathsWithBody() {
		add("in a member that nobody asks for", path, `{"x":{"a":1,"a":2}}`)
	}
	add("the name of a table", pathTables, `{"name":"a","name":"b","schema":`+schemaJSON+`}`)
	add("equal values", pathTables, `{"name":"a","name":"a","schema":`+schemaJSON+`}`)
	add("one of them escaped", pathTables, `{"name":"a","n\u0061me":"b","schema":`+schemaJSON+`}`)
	add("one of them null", pathTables, `{"name":"a","name":null,"schema":`+schemaJSON+`}`)
	add("a namespace", pathNamespaces, `{"namespace":["a"],"namespace":["b"]}`)
	add("a property", pathNamespaces, `{"namespace":["a"],"properties":{"k":"1","k":"2"}}`)
	add("a property to update", pathProperties, `{"updates":{"k":"1","k":"2"}}`)
	add("far apart", pathProperties, `{"updates":{"k":"1",`+manyMembers(100, "v")+`,"k":"2"}}`)
	add("a table's property", pathTables, `{"name":"a","schema":`+schemaJSON+`,"properties":{"k":"1","k":"2"}}`)
	add("in a schema", pathTables, `{"name":"a","schema":{"type":"struct","type":"struct","fields":[]}}`)
	add("in a field", pathTables, `{"name":"a","schema":{"type":"struct","fields":[{"id":1,"id":2,"name":"x","required":true,"type":"int"}]}}`)
	add("list of updates", pathTable, `{"requirements":[],"updates":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`)
	add("list of requirements", pathTable, `{"requirements":[{"type":"assert-create"}],"requirements":[],"updates":[]}`)
	add("in an update", pathTable, `{"requirements":[],"updates":[{"action":"set-location","action":"remove-properties","removals":["a"]}]}`)
	add("in an update's content", pathTable, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b","a":"c"}}]}`)
	add("in a snapshot's summary", pathTable, `{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"summary":{"operation":"append","operation":"delete"}}}]}`)
	add("in a requirement", pathTable, `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","ref":"x","snapshot-id":null}],"updates":[]}`)
	add("in a view's version", pathViews, `{"name":"new","schema":`+schemaJSON+`,"view-version":{"version-id":1,"version-id":1}}`)
	add("a view's property", pathViews, `{"name":"new","schema":`+schemaJSON+`,"view-version":`+versionJSON+`,"properties":{"k":"1","k":"2"}}`)
	add("list of updates", pathView, `{"updates":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`)
	add("in an update", pathView, `{"updates":[{"action":"set-location","action":"remove-properties","removals":["a"]}]}`)
	add("in an identifier", pathRenameView, `{"source":{"namespace":["ns"],"name":"view","name":"view2"},"destination":{"namespace":["ns"],"name":"new"}}`)
	add("a location of metadata", pathRegisterView, `{"name":"new","metadata-location":"file:///x","metadata-location":"file:///y"}`)
	add("in an identifier", pathRename, `{"source":{"namespace":["ns"],"name":"t","name":"u"},"destination":{"namespace":["ns"],"name":"v"}}`)
	add("a destination", pathRename, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":"v"},"destination":{"namespace":["ns"],"name":"w"}}`)
	return rows
}

// manyMembers returns n members with the string value, without the braces around them.
func manyMembers(n int, value string) string {
	var text strings.Builder
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"m%d":"%s"`, i, value)
	}
	return text.String()
}

// deepRows returns bodies that nest too deeply for a reader of metadata, or for a stack.
func deepRows() (rows []bad) {
	add := func(fault, path, body string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: 400, kind: badRequest})
	}
	nested := func(open, inner, shut string, depth int) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(shut, depth)
	}
	const deep = 100_000
	for _, path := range pathsWithBody() {
		add("arrays", path, `{"x":`+nested("[", "", "]", deep)+`}`)
		add("objects", path, nested(`{"x":`, "1", "}", deep))
	}
	add("one level too many", pathNamespaces, `{"namespace":["a"],"x":`+nested("[", "", "]", 512)+`}`)
	add("arrays and objects by turns", pathTables, nested(`{"x":[`, "1", "]}", deep))
	add("arrays that do not end", pathTables, `{"name":`+strings.Repeat("[", deep))
	add("objects that do not end", pathTable, strings.Repeat(`{"x":`, deep))
	add("in a namespace", pathNamespaces, `{"namespace":`+nested("[", `"a"`, "]", deep)+`}`)
	add("in properties", pathNamespaces, `{"namespace":["a"],"properties":`+nested(`{"k":`, `"v"`, "}", deep)+`}`)
	field := func(kind string) string {
		return `{"name":"a","schema":{"type":"struct","fields":[{"id":1,"name":"f","required":false,"type":` + kind + `}]}}`
	}
	add("lists of lists", pathTables, field(nested(`{"type":"list","element-id":2,"element-required":false,"element":`, `"int"`, "}", deep)))
	add("structs in structs", pathTables, field(nested(`{"type":"struct","fields":[{"id":2,"name":"f","required":false,"type":`, `"int"`, "}]}", deep)))
	add("maps of maps", pathTables, field(nested(`{"type":"map","key-id":2,"key":"int","value-id":3,"value-required":false,"value":`, `"int"`, "}", deep)))
	lists := `"int"`
	for id := range 150 {
		lists = fmt.Sprintf(`{"type":"list","element-id":%d,"element-required":false,"element":%s}`, id+2, lists)
	}
	add("types that JSON could carry", pathTables, field(lists))
	add("lists of lists", pathViews, strings.TrimSuffix(field(nested(`{"type":"list","element-id":2,"element-required":false,"element":`, `"int"`, "}", deep)), "}")+`,"view-version":`+versionJSON+`}`)
	add("in a view's version", pathViews, `{"name":"new","schema":`+schemaJSON+`,"view-version":`+nested(`{"summary":`, "1", "}", deep)+`}`)
	add("in an update", pathView, `{"updates":[`+nested(`{"action":`, `"x"`, "}", deep)+`]}`)
	add("in a requirement", pathTable, `{"requirements":[`+nested(`{"type":`, `"x"`, "}", deep)+`],"updates":[]}`)
	add("in an update", pathTable, `{"requirements":[],"updates":[`+nested(`{"action":`, `"x"`, "}", deep)+`]}`)
	add("in what an update would keep", pathTable, `{"requirements":[],"updates":[{"action":"set-statistics","statistics":{"x":`+nested("[", "", "]", 505)+`}}]}`)
	return rows
}

// largeRows returns bodies of 20 MB. They exceed the limit of one server but not that of another,
// which must read them.
func largeRows(uuid string) (rows []bad) {
	const size = 20 << 20
	for _, path := range pathsWithBody() {
		rows = append(rows,
			bad{fault: "over the bound", method: "POST", path: path, body: `{"x":"` + strings.Repeat("x", size) + `"}`, status: 413, kind: tooLarge, limited: true},
			bad{fault: "over the bound, and malformed", method: "POST", path: path, body: strings.Repeat("[", size), status: 413, kind: tooLarge, limited: true})
	}
	add := func(fault, path, body string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: 400, kind: badRequest})
	}
	kilobyte := strings.Repeat("x", 1<<10)
	add("spaces", pathTables, strings.Repeat(" ", size))
	add("brackets", pathTables, strings.Repeat("[", size))
	add("a level of a namespace", pathNamespaces, `{"namespace":["`+strings.Repeat("n", size)+`"]}`)
	add("levels of a namespace", pathNamespaces, `{"namespace":["n"`+strings.Repeat(`,"`+kilobyte+`"`, size>>10)+`]}`)
	add("the name of a table", pathTables, `{"name":"`+strings.Repeat("é", size/2)+`","schema":`+schemaJSON+`}`)
	add("a number for a name", pathTables, `{"name":`+strings.Repeat("9", size)+`,"schema":`+schemaJSON+`}`)
	add("a location", pathTables, `{"name":"new","schema":`+schemaJSON+`,"location":"file:///`+strings.Repeat("x", size)+`"}`)
	add("a location of many folders", pathTables, `{"name":"new","schema":`+schemaJSON+`,"location":"file://`+strings.Repeat("/x", size/2)+`"}`)
	add("a name that stands twice", pathProperties, `{"updates":{`+manyMembers(size>>10, kilobyte)+`,"m7":"x"}}`)
	add("the last value of the wrong type", pathProperties, `{"updates":{`+manyMembers(size>>10, kilobyte)+`,"x":1}}`)
	add("the last byte not UTF-8", pathNamespaces, `{"namespace":["a"],"x":"`+strings.Repeat("x", size)+"\xff\"}")
	add("torn before the last bracket", pathNamespaces, `{"namespace":["a"],"x":"`+strings.Repeat("x", size)+`"`)
	add("an unknown update behind many", pathTable, `{"requirements":[],"updates":[`+strings.Repeat(`{"action":"set-properties","updates":{"a":"`+kilobyte+`"}},`, size>>10)+`{"action":"x"}]}`)
	add("queries of a view, the last for a dialect that has one", pathViews, `{"name":"new","schema":`+schemaJSON+`,"view-version":{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":[],`+
		`"representations":[`+manyQueries(size>>10, kilobyte)+`,{"type":"sql","sql":"select 1","dialect":"D7"}]}}`)
	rows[len(rows)-1].kind = illegal
	rows = append(rows, bad{fault: "a requirement that fails behind many", method: "POST", path: pathTable, status: 409, kind: commitFailed,
		body: `{"requirements":[` + strings.Repeat(`{"type":"assert-table-uuid","uuid":"`+uuid+`","x":"`+kilobyte+`"},`, size>>10) + `{"type":"assert-current-schema-id","current-schema-id":7}],"updates":[]}`})
	return rows
}
