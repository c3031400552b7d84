package rest_test

import (
	"encoding/base64"
	"slices"
	"strings"
)

// longName is a byte too long for a name. deepNamespace is a level too deep for a namespace.
var (
	longName      = strings.Repeat("n", 1025)
	deepNamespace = strings.Repeat("n%1F", 32) + "n"
)

// pathNameRows returns requests with invalid names in the path.
func pathNameRows() (rows []bad) {
	add := func(fault, method, path, body string) {
		rows = append(rows, bad{fault: fault, method: method, path: path, body: body, status: 400, kind: badRequest})
	}
	const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`
	for _, name := range []struct{ fault, escaped string }{
		{"NUL", "%00"}, {"NUL at the end of a table's name", "t%00"}, {"NUL in a name", "a%00b"}, {"not UTF-8", "%ff"}, {"overlong slash", "%c0%af"},
		{"half of a character", "t%c3"}, {"separator", "%1F"}, {"separator in a name", "a%1Fb"}, {"separator at the end", "t%1F"}, {"too long", longName},
		{"too long once decoded", strings.Repeat("%C3%A9", 513)},
	} {
		add(name.fault, "GET", pathTables+"/"+name.escaped, "")
		add(name.fault, "POST", pathTables+"/"+name.escaped, commit)
		add(name.fault, "DELETE", pathTables+"/"+name.escaped, "")
		add(name.fault, "POST", pathTables+"/"+name.escaped+"/unregister", "")
		add(name.fault, "GET", pathViews+"/"+name.escaped, "")
		add(name.fault, "POST", pathViews+"/"+name.escaped, commit)
		add(name.fault, "DELETE", pathViews+"/"+name.escaped, "")
	}
	for _, ns := range []struct{ fault, escaped string }{
		{"namespace NUL", "%00"}, {"namespace with NUL", "ns%00"}, {"namespace not UTF-8", "%ff"}, {"first level empty", "%1Fns"}, {"last level empty", "ns%1F"},
		{"level between empty", "ns%1F%1Fchild"}, {"level too long", longName}, {"too many levels", deepNamespace},
	} {
		add(ns.fault, "GET", pathNamespaces+"/"+ns.escaped, "")
		add(ns.fault, "DELETE", pathNamespaces+"/"+ns.escaped, "")
		add(ns.fault, "GET", pathNamespaces+"?parent="+ns.escaped, "")
		add(ns.fault, "POST", pathNamespaces+"/"+ns.escaped+"/properties", `{"updates":{"a":"b"}}`)
		add(ns.fault, "POST", pathNamespaces+"/"+ns.escaped+"/tables", `{"name":"new","schema":`+schemaJSON+`}`)
		add(ns.fault, "GET", pathNamespaces+"/"+ns.escaped+"/views", "")
		add(ns.fault, "POST", pathNamespaces+"/"+ns.escaped+"/views", viewJSON("new"))
		add(ns.fault, "POST", pathNamespaces+"/"+ns.escaped+"/register-view", `{"name":"new","metadata-location":"file:///x"}`)
		add(ns.fault, "GET", pathNamespaces+"/"+ns.escaped+"/views/view", "")
	}
	for _, warehouse := range []struct{ fault, escaped string }{
		{"warehouse NUL", "%00"}, {"warehouse not UTF-8", "%ff"}, {"warehouse with separator", "w%1F"}, {"warehouse too long", longName}, {"warehouse longer than a store's key", strings.Repeat("w", 9000)},
	} {
		add(warehouse.fault, "GET", "/v1/"+warehouse.escaped+"/namespaces", "")
		add(warehouse.fault, "GET", "/v1/"+warehouse.escaped+"/namespaces/ns/tables/t", "")
		add(warehouse.fault, "POST", "/v1/"+warehouse.escaped+"/namespaces", `{"namespace":["a"]}`)
		add(warehouse.fault, "GET", "/v1/"+warehouse.escaped+"/namespaces/ns/views/view", "")
		add(warehouse.fault, "POST", "/v1/"+warehouse.escaped+"/views/rename", rename(identifier("ns", "view"), identifier("ns", "new")))
	}
	add("no namespace before a name that cannot be", "GET", "/v1/namespaces//tables/%00", "")
	add("empty levels before a table", "GET", "/v1/namespaces/%1F/tables/t", "")
	add("no namespace before tables", "GET", "/v1/namespaces//tables", "")
	add("no namespace before a new table", "POST", "/v1/namespaces//tables", `{"name":"new","schema":`+schemaJSON+`}`)
	return rows
}

// bodyNameRows returns requests with invalid names in the body.
func bodyNameRows() (rows []bad) {
	for _, name := range []struct{ fault, quoted string }{
		{"empty", `""`}, {"NUL", `"\u0000"`}, {"NUL in a name", `"a\u0000b"`}, {"separator", `"\u001f"`}, {"separator in a name", `"a\u001fb"`},
		{"too long", `"` + longName + `"`}, {"too long for its characters", `"` + strings.Repeat("é", 513) + `"`}, {"too long once unescaped", `"` + strings.Repeat(`\u00e9`, 513) + `"`},
	} {
		add := func(path, body string) {
			rows = append(rows, bad{fault: name.fault, method: "POST", path: path, body: strings.ReplaceAll(body, "NAME", name.quoted), status: 400, kind: badRequest})
		}
		add(pathNamespaces, `{"namespace":[NAME]}`)
		add(pathNamespaces, `{"namespace":["ns",NAME,"x"]}`)
		add(pathTables, `{"name":NAME,"schema":`+schemaJSON+`}`)
		add(pathTables, `{"name":NAME,"stage-create":true,"schema":`+schemaJSON+`}`)
		add(pathRegister, `{"name":NAME,"metadata-location":"file:///x.metadata.json"}`)
		add(pathRename, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns"],"name":NAME}}`)
		add(pathRename, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":["ns",NAME],"name":"v"}}`)
		add(pathRename, `{"source":{"namespace":["ns"],"name":NAME},"destination":{"namespace":["ns"],"name":"v"}}`)
		add(pathTable, `{"identifier":{"namespace":["ns"],"name":NAME},"requirements":[],"updates":[]}`)
		add(pathViews, `{"name":NAME,"schema":`+schemaJSON+`,"view-version":`+versionJSON+`}`)
		add(pathView, `{"identifier":{"namespace":["ns"],"name":NAME},"updates":[]}`)
		add(pathRegisterView, `{"name":NAME,"metadata-location":"file:///x.metadata.json"}`)
		add(pathRenameView, rename(identifier("ns", "view"), `{"namespace":["ns"],"name":NAME}`))
		add(pathRenameView, rename(identifier("ns", "view"), `{"namespace":["ns",NAME],"name":"new"}`))
		add(pathRenameView, rename(`{"namespace":["ns"],"name":NAME}`, identifier("ns", "new")))
	}
	add := func(fault, path, body string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: path, body: body, status: 400, kind: badRequest})
	}
	add("too many levels", pathNamespaces, `{"namespace":["n"`+strings.Repeat(`,"n"`, 32)+`]}`)
	add("no levels", pathNamespaces, `{"namespace":[]}`)
	add("no levels", pathRename, `{"source":{"namespace":["ns"],"name":"t"},"destination":{"namespace":[],"name":"v"}}`)
	add("another table than the path's", pathTable, `{"identifier":{"namespace":["ns"],"name":"u"},"requirements":[],"updates":[]}`)
	add("another table than the path's, by case", pathTable, `{"identifier":{"namespace":["ns"],"name":"T"},"requirements":[],"updates":[]}`)
	add("no levels", pathRenameView, rename(identifier("ns", "view"), `{"namespace":[],"name":"new"}`))
	add("another view than the path's", pathView, `{"identifier":`+identifier("ns", "view2")+`,"updates":[]}`)
	add("another namespace than the path's", pathView, `{"identifier":`+identifier("empty", "view")+`,"updates":[]}`)
	add("another namespace than the path's", pathTable, `{"identifier":{"namespace":["ns","child"],"name":"t"},"requirements":[],"updates":[]}`)
	return rows
}

// absentRows returns requests for valid names that do not exist. Several are similar to ns.t, which
// exists.
func absentRows() (rows []bad) {
	for _, name := range []struct{ fault, escaped string }{
		{"plain", "missing"}, {"slash", "%2F"}, {"slash in a name", "a%2Fb"}, {"path below a table", "t%2Fmetadata"}, {"dot", "%2E"}, {"dot, bare", "."}, {"dots", "%2E%2E"}, {"dots, bare", ".."},
		{"way out", "%2E%2E%2F%2E%2E%2Fetc"}, {"way to a table", ".%2Ft"}, {"way around", "x%2F..%2Ft"}, {"percent", "%25"}, {"escaped twice", "%2574"}, {"escaped slash, escaped", "%252F"}, {"space", "%20"}, {"plus for a space", "+"},
		{"plus", "%2B"}, {"backslash", "%5C"}, {"question mark", "%3F"}, {"hash", "%23"}, {"quote", "%22"}, {"upper case", "T"}, {"trailing space", "t%20"}, {"leading space", "%20t"},
		{"trailing dot", "t."}, {"trailing slash", "t%2F"}, {"accent", "%C3%A9"}, {"accent on its own", "t%CC%81"}, {"emoji", "%F0%9F%98%80"}, {"fullwidth", "%EF%BD%94"},
		{"zero width", "t%E2%80%8B"}, {"right to left", "%E2%80%AEt"}, {"metadata table", "t.files"}, {"delete character", "%7F"}, {"line break", "%0A"}, {"longest", longName[1:]},
	} {
		add := func(method, path, body string, kind string) {
			rows = append(rows, bad{fault: name.fault, method: method, path: strings.ReplaceAll(path, "NAME", name.escaped), body: body, status: 404, kind: kind})
		}
		add("GET", pathTables+"/NAME", "", noTable)
		add("DELETE", pathTables+"/NAME", "", noTable)
		add("POST", pathTables+"/NAME", `{"requirements":[],"updates":[]}`, noTable)
		add("GET", pathViews+"/NAME", "", noView)
		add("DELETE", pathViews+"/NAME", "", noView)
		add("POST", pathViews+"/NAME", `{"requirements":[],"updates":[]}`, noView)
		add("GET", pathNamespaces+"/NAME", "", noNamespace)
		add("DELETE", pathNamespaces+"/NAME", "", noNamespace)
		add("GET", pathNamespaces+"?parent=NAME", "", noNamespace)
		add("GET", "/v1/config?warehouse=NAME", "", noWarehouse)
	}
	table := `{"name":"new","schema":` + schemaJSON + `}`
	rows = append(rows, absentViewRows()...)
	return append(rows, []bad{
		{fault: "warehouse", method: "GET", path: "/v1/missing/namespaces", status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "POST", path: "/v1/missing/namespaces", body: `{"namespace":["a"]}`, status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "GET", path: "/v1/missing/namespaces/ns", status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "GET", path: "/v1/missing/namespaces/ns/tables", status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "POST", path: "/v1/missing/namespaces/ns/tables", body: table, status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "GET", path: "/v1/missing/namespaces/ns/tables/t", status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "DELETE", path: "/v1/missing/namespaces/ns/tables/t", status: 404, kind: noWarehouse},
		{fault: "warehouse", method: "POST", path: "/v1/missing/tables/rename", body: rename(identifier("ns", "t"), identifier("ns", "v")), status: 404, kind: noWarehouse},
		{fault: "warehouse by case", method: "GET", path: "/v1/Default/namespaces", status: 404, kind: noWarehouse},
		{fault: "child of a namespace", method: "GET", path: "/v1/namespaces?parent=ns%1Fmissing", status: 404, kind: noNamespace},
		{fault: "child of a namespace", method: "DELETE", path: "/v1/namespaces/ns%1Fmissing", status: 404, kind: noNamespace},
		{fault: "namespace with a dot for the separator", method: "GET", path: "/v1/namespaces/ns.child", status: 404, kind: noNamespace},
		{fault: "child on its own", method: "GET", path: "/v1/namespaces/child", status: 404, kind: noNamespace},
		{fault: "namespace whose properties change", method: "POST", path: "/v1/namespaces/missing/properties", body: `{"updates":{"a":"b"}}`, status: 404, kind: noNamespace},
		{fault: "namespace of a new table", method: "POST", path: "/v1/namespaces/missing/tables", body: table, status: 404, kind: noNamespace},
		{fault: "namespace of a staged table", method: "POST", path: "/v1/namespaces/missing/tables", body: `{"name":"new","stage-create":true,"schema":` + schemaJSON + `}`, status: 404, kind: noNamespace},
		{fault: "namespace of a table to register", method: "POST", path: "/v1/namespaces/missing/register", body: `{"name":"new","metadata-location":"file:///x.metadata.json"}`, status: 404, kind: noNamespace},
		{fault: "namespace of a created commit", method: "POST", path: "/v1/namespaces/missing/tables/new", body: `{"requirements":[{"type":"assert-create"}],"updates":[]}`, status: 404, kind: noNamespace},
		{fault: "namespace of a list", method: "GET", path: "/v1/namespaces/missing/tables", status: 404, kind: noNamespace},
		// A client that looks for the metadata table ns.t.files first requests the table files in
		// ns.t, and continues only if the failure has this type.
		{fault: "namespace of a metadata table", method: "GET", path: "/v1/namespaces/ns%1Ft/tables/files", status: 404, kind: noTable},
		{fault: "no namespace before a table, for a metadata table", method: "GET", path: "/v1/namespaces//tables/ns", status: 404, kind: noTable},
		{fault: "no namespace before a table, with prefix", method: "GET", path: "/v1/default/namespaces//tables/ns", status: 404, kind: noTable},
		{fault: "no namespace before a table to commit to", method: "POST", path: "/v1/namespaces//tables/ns", body: `{"requirements":[],"updates":[]}`, status: 404, kind: noTable},
		{fault: "no namespace before a view", method: "GET", path: "/v1/namespaces//views/ns", status: 404, kind: noView},
		{fault: "namespace of a table to load", method: "GET", path: "/v1/namespaces/missing/tables/t", status: 404, kind: noTable},
		{fault: "table with a uuid", method: "POST", path: "/v1/namespaces/ns/tables/missing", body: `{"requirements":[{"type":"assert-table-uuid","uuid":"x"}],"updates":[]}`, status: 404, kind: noTable},
		{fault: "table to unregister", method: "POST", path: "/v1/namespaces/ns/tables/missing/unregister", status: 404, kind: noTable},
		{fault: "table in another namespace", method: "GET", path: "/v1/namespaces/empty/tables/t", status: 404, kind: noTable},
		{fault: "table to rename", method: "POST", path: pathRename, body: rename(identifier("ns", "missing"), identifier("ns", "v")), status: 404, kind: noTable},
		{fault: "namespace of a table to rename", method: "POST", path: pathRename, body: rename(identifier("missing", "t"), identifier("ns", "v")), status: 404, kind: noTable},
		{fault: "namespace to rename to", method: "POST", path: pathRename, body: rename(identifier("ns", "t"), identifier("missing", "t")), status: 404, kind: noNamespace},
	}...)
}

// identifier and rename return parts of rename requests.
func identifier(ns, name string) string { return `{"namespace":["` + ns + `"],"name":"` + name + `"}` }

func rename(source, destination string) string {
	return `{"source":` + source + `,"destination":` + destination + `}`
}

// takenRows returns requests for names that are already taken. The location free belongs to no
// table.
func takenRows(free string) []bad {
	return append(takenViewRows(free), []bad{
		{fault: "namespace", method: "POST", path: pathNamespaces, body: `{"namespace":["ns"]}`, status: 409, kind: alreadyExists},
		{fault: "namespace with equal properties", method: "POST", path: pathNamespaces, body: `{"namespace":["ns"],"properties":{"k":"v"}}`, status: 409, kind: alreadyExists},
		{fault: "child", method: "POST", path: pathNamespaces, body: `{"namespace":["ns","child"],"properties":{"a":"b"}}`, status: 409, kind: alreadyExists},
		{fault: "table", method: "POST", path: pathTables, body: `{"name":"t","schema":` + schemaJSON + `}`, status: 409, kind: alreadyExists},
		{fault: "table, spelled with escapes", method: "POST", path: pathTables, body: `{"name":"\u0074","schema":` + schemaJSON + `}`, status: 409, kind: alreadyExists},
		{fault: "table to stage", method: "POST", path: pathTables, body: `{"name":"t","stage-create":true,"schema":` + schemaJSON + `}`, status: 409, kind: alreadyExists},
		{fault: "table to register", method: "POST", path: pathRegister, body: `{"name":"t","metadata-location":"file:///x.metadata.json"}`, status: 409, kind: alreadyExists},
		{fault: "table to rename to", method: "POST", path: pathRename, body: rename(identifier("ns", "t"), identifier("ns", "u")), status: 409, kind: alreadyExists},
	}...)
}

// routeRows returns requests with paths and methods that have no route.
func routeRows() (rows []bad) {
	add := func(fault, method, path, body string, status int, kind string) {
		rows = append(rows, bad{fault: fault, method: method, path: path, body: body, status: status, kind: kind})
	}
	for _, path := range []string{"/", "/v1", "/v2/namespaces", "/v1/", "/V1/namespaces", "/v1/oauth", "/v1/namespaces/ns/functions", "/v1/views", "/v1/namespaces/ns/view", "/v1/a/b/namespaces"} {
		add("no route "+path, "GET", path, "", 404, noRoute)
	}
	add("no name of a table", "DELETE", "/v1/namespaces/ns/tables/", "", 405, noMethod)
	add("no name of a namespace", "DELETE", "/v1/namespaces/", "", 405, noMethod)
	add("way up", "DELETE", "/v1/namespaces/ns/tables/t/../u", "", 404, noRoute)
	add("way up from a folder of the server", "GET", "/metrics/../../etc/passwd", "", 404, noRoute)
	add("no name of a view", "DELETE", "/v1/namespaces/ns/views/", "", 405, noMethod)
	add("below a view", "POST", pathView+"/unregister", "", 404, noRoute)
	add("scan planning", "POST", pathTable+"/plan", `{}`, 404, noRoute)
	add("credentials of a warehouse without", "GET", pathTable+"/credentials", "", 400, badRequest)
	add("signature in a warehouse without", "POST", pathTable+"/sign",
		`{"region":"us-east-1","uri":"http://s3/b/k","method":"GET","headers":{}}`, 400, badRequest)
	for _, row := range []struct{ method, path string }{
		{"PUT", "/v1/namespaces/ns"}, {"PATCH", pathTable}, {"DELETE", pathNamespaces}, {"POST", "/v1/config"}, {"DELETE", pathTables},
		{"GET", pathRegister}, {"GET", pathProperties}, {"DELETE", pathMetrics}, {"OPTIONS", pathTable}, {"POST", "/healthz"},
		{"PUT", pathView}, {"DELETE", pathViews}, {"GET", pathRegisterView}, {"GET", pathRenameView},
	} {
		add("no method "+row.method+" "+row.path, row.method, row.path, "{}", 405, noMethod)
	}
	return rows
}

// parameterRows returns requests with invalid query strings.
func parameterRows() (rows []bad) {
	add := func(fault, method, path string) {
		rows = append(rows, bad{fault: fault, method: method, path: path, status: 400, kind: badRequest})
	}
	for _, list := range []string{pathNamespaces, pathTables, pathViews} {
		for _, size := range []string{"0", "-5", "ten", "", "1.5", "1e3", "0x10", "%201", "99999999999999999999999", "1&pageSize=2"} {
			add("pageSize "+size, "GET", list+"?pageSize="+size)
			add("pageSize "+size, "GET", list+"?pageToken=&pageSize="+size)
		}
	}
	add("parent twice", "GET", "/v1/namespaces?parent=ns&parent=empty")
	add("malformed escape", "GET", "/v1/namespaces?parent=%zz")
	add("half an escape", "GET", "/v1/namespaces?parent=%2")
	add("semicolon", "GET", "/v1/namespaces?parent=a;b")
	for _, mode := range []string{"some", "", "REFS", "all,refs", "refs&snapshots=all", "%00"} {
		add("snapshots "+mode, "GET", pathTable+"?snapshots="+mode)
	}
	for _, purge := range []string{"maybe", "", "1", "yes", "true&purgeRequested=false", "true%00"} {
		add("purgeRequested "+purge, "DELETE", pathTable+"?purgeRequested="+purge)
	}
	add("malformed beside a purge", "DELETE", pathTable+"?purgeRequested=true&x=%zz")
	add("warehouse twice", "GET", "/v1/config?warehouse=a&warehouse=b")
	return rows
}

// tokenRows returns requests with invalid page tokens, and with tokens of other lists.
func (w *world) tokenRows() (rows []bad) {
	w.t.Helper()
	lists := []string{pathNamespaces + "?pageToken=", pathTables + "?pageToken=", pathViews + "?pageToken="}
	add := func(fault, token string) {
		for _, list := range lists {
			rows = append(rows, bad{fault: fault, method: "GET", path: list + token, status: 400, kind: badRequest})
		}
	}
	add("word", "xyz")
	add("number", "1")
	add("null", "null")
	add("JSON", "%7B%7D")
	add("NUL", "%00")
	add("not UTF-8", "%ff")
	add("space", "%20")
	add("slash", "%2F")
	add("zeros", strings.Repeat("A", 40))
	add("very long", strings.Repeat("A", 100_000))
	for i, list := range lists {
		token := *w.page(list + "&pageSize=1").Next
		content, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			w.t.Fatal(err)
		}
		sealed := func(change func([]byte) []byte) string {
			return base64.RawURLEncoding.EncodeToString(change(slices.Clone(content)))
		}
		for _, forged := range []struct{ fault, token string }{
			{"padded", token + "%3D"},
			{"cut short", token[:len(token)-1]},
			{"text behind", token + "AAAA"},
			{"given twice", token + "&pageToken=" + token},
			{"another version", sealed(func(c []byte) []byte { c[0]++; return c })},
			{"another list", sealed(func(c []byte) []byte { c[1]++; return c })},
			{"no name", sealed(func(c []byte) []byte { return c[:9] })},
			{"name with NUL", sealed(func(c []byte) []byte { return append(c, 0) })},
			{"name not UTF-8", sealed(func(c []byte) []byte { return append(c, 0xff) })},
			{"name too long", sealed(func(c []byte) []byte { return append(c, longName...) })},
		} {
			rows = append(rows, bad{fault: forged.fault, method: "GET", path: list + forged.token, status: 400, kind: badRequest})
		}
		for _, other := range []string{
			lists[(i+1)%3], lists[(i+2)%3], "/v1/namespaces?parent=ns&pageToken=", "/v1/namespaces/ns%1Fchild/tables?pageToken=", "/v1/namespaces/empty/tables?pageToken=",
			"/v1/namespaces/ns%1Fchild/views?pageToken=", "/v1/namespaces/empty/views?pageToken=",
		} {
			rows = append(rows, bad{fault: "token of " + list + " for " + other, method: "GET", path: other + token, status: 400, kind: badRequest})
		}
	}
	return rows
}
