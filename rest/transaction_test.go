package rest

import (
	"strings"
	"testing"
)

// What is wrong with one change of many is said with the table's name.
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
		w := send(New(Config{Catalog: fake}), "POST", "/v1/transactions/commit", body)
		if got := wantFailure(t, w, 400, "BadRequestException"); !strings.HasSuffix(got, row.want) {
			t.Errorf("%s: message is %q, want %q", row.members, got, row.want)
		}
		if len(fake.calls) != 0 {
			t.Errorf("%s: calls of the catalog: %v", row.members, fake.calls)
		}
	}
}
