package rest

import (
	"strings"
	"testing"
)

// The message about a fault in one of several changes names the table.
func TestTransactionNamesTheTable(t *testing.T) {
	t.Parallel()
	const good = `{"identifier":{"namespace":["a"],"name":"good"},"requirements":[],"updates":[]}`
	for _, row := range []struct{ members, want string }{
		{`"requirements":[],"updates":[{"action":"mend"}]`, "Unrecognized table update: mend (table a.b)"},
		{`"requirements":[{"type":"assert-peace"}],"updates":[]`, "Unrecognized update requirement: assert-peace (table a.b)"},
		{`"updates":[]`, `table change 2: member "requirements" is missing (table a.b)`},
	} {
		fake := &fakeCatalog{}
		body := `{"table-changes":[` + good + `,{"identifier":{"namespace":["a"],"name":"b"},` + row.members + `}]}`
		w := send(NewServer(TestConfig{Catalog: fake}), "POST", "/v1/transactions/commit", body)
		if got := wantFailure(t, w, 400, "BadRequestException"); !strings.HasSuffix(got, row.want) {
			t.Errorf("%s: message is %q, want %q", row.members, got, row.want)
		}
		if len(fake.calls) != 0 {
			t.Errorf("%s: calls of the catalog: %v", row.members, fake.calls)
		}
	}
}

// The message about a fault in an inner object gives its place.
func TestFailuresSayWhere(t *testing.T) {
	t.Parallel()
	const good = `{"identifier":{"namespace":["a"],"name":"good"},"requirements":[],"updates":[]}`
	for change, want := range map[string]string{
		`{"identifier":{"namespace":["a"],"name":5}}`:      `Cannot parse transaction request, table change 2, member "identifier": member "name" must be a string, not a number`,
		`{"identifier":{"namespace":["a",5],"name":"b"}}`:  `Cannot parse transaction request, table change 2, member "identifier": member "namespace" must be an array of strings`,
		`{"identifier":{"name":"b"}}`:                      `Cannot parse transaction request, table change 2, member "identifier": member "namespace" is missing`,
		`{"identifier":{"namespace":["a"],"name":""}}`:     `Cannot parse transaction request, table change 2, member "identifier": Invalid name: it must not be empty`,
		`{"identifier":{"namespace":["a",""],"name":"b"}}`: `Cannot parse transaction request, table change 2, member "identifier": Invalid namespace level: it must not be empty`,
		`{"identifier":{"namespace":[],"name":"b"}}`:       `Cannot parse transaction request, table change 2, member "identifier": Invalid namespace: it must have at least one level`,
		`{"identifier":[]}`:                                `Cannot parse transaction request, table change 2: member "identifier" must be an object, not an array`,
		`5`:                                                `Cannot parse transaction request, table change 2: it must be a JSON object, not a number`,
	} {
		w := send(NewServer(TestConfig{Catalog: &fakeCatalog{}}), "POST", "/v1/transactions/commit", `{"table-changes":[`+good+`,`+change+`]}`)
		if got := wantFailure(t, w, 400, "BadRequestException"); got != want {
			t.Errorf("%s: message is %q, want %q", change, got, want)
		}
	}
}
