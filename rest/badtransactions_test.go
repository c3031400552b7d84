package rest_test

import (
	"slices"
	"strings"

	"moorage/catalog"
)

// goodChange is a change to ns.u that would succeed.
const goodChange = `{"identifier":{"namespace":["ns"],"name":"u"},"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`

// transactionRows returns transactions in which the second change has a fault that a commit to one
// table can have. The message must name that table. It also returns faults that only a transaction
// can have.
func transactionRows(uuid string) (rows []bad) {
	for _, row := range slices.Concat(unknownRows(uuid), updateRows(uuid), requirementRows(uuid)) {
		name, ok := strings.CutPrefix(row.path, pathTables+"/")
		if !ok {
			continue
		}
		row.path, row.names = pathTransact, "ns."+name
		row.body = `{"table-changes":[` + goodChange + `,{"identifier":{"namespace":["ns"],"name":"` + name + `"},` + strings.TrimPrefix(row.body, "{") + `]}`
		rows = append(rows, row)
	}
	add := func(fault, changes string, status int, kind string) {
		rows = append(rows, bad{fault: fault, method: "POST", path: pathTransact, body: `{"table-changes":` + changes + `}`, status: status, kind: kind})
	}
	change := func(identifier string) string {
		return `[` + goodChange + `,{"identifier":` + identifier + `,"requirements":[],"updates":[]}]`
	}
	add("no table changes", `[]`, 400, badRequest)
	add("table changes null", `null`, 400, badRequest)
	add("table changes are an object", `{}`, 400, badRequest)
	add("a table change is text", `[`+goodChange+`,"x"]`, 400, badRequest)
	add("a table change is null", `[`+goodChange+`,null]`, 400, badRequest)
	add("a table change is a list", `[`+goodChange+`,[]]`, 400, badRequest)
	add("table change without identifier", `[`+goodChange+`,{"requirements":[],"updates":[]}]`, 400, badRequest)
	add("table change without requirements", `[`+goodChange+`,{"identifier":{"namespace":["ns"],"name":"t"},"updates":[]}]`, 400, badRequest)
	add("table change without updates", `[`+goodChange+`,{"identifier":{"namespace":["ns"],"name":"t"},"requirements":[]}]`, 400, badRequest)
	add("identifier of a change is text", change(`"ns.t"`), 400, badRequest)
	add("identifier of a change without name", change(`{"namespace":["ns"]}`), 400, badRequest)
	add("identifier of a change without namespace", change(`{"name":"t"}`), 400, badRequest)
	add("change of a table that is not there", change(`{"namespace":["ns"],"name":"missing"}`), 404, noTable)
	add("change of a table whose namespace is not there", change(`{"namespace":["missing"],"name":"t"}`), 404, noTable)
	add("more table changes than allowed", `[`+strings.Repeat(goodChange+",", catalog.TransactionChangesMax)+goodChange+`]`, 400, badRequest)
	create := func(name, location string) string {
		return `{"identifier":{"namespace":["ns"],"name":"` + name + `"},"requirements":[{"type":"assert-create"}],"updates":[{"action":"set-location","location":"` + location + `"}]}`
	}
	add("create without schema in a transaction", `[`+goodChange+`,`+create("new", "file:///x")+`]`, 400, illegal)
	rows = append(rows, bad{fault: "transaction in a warehouse that is not there", method: "POST", path: "/v1/nowhere/transactions/commit",
		body: `{"table-changes":[` + goodChange + `]}`, status: 404, kind: noWarehouse})
	return rows
}
