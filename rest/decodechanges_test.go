package rest

import (
	"fmt"
	"strings"
	"testing"

	"moorage/catalog"
	"moorage/internal/web"
)

func TestDecodeChanges(t *testing.T) {
	t.Parallel()
	const commit = `,"requirements":[],"updates":[]}`
	table := func(namespace, name string) string {
		return `{"identifier":{"namespace":` + namespace + `,"name":"` + name + `"}` + commit
	}
	for _, row := range []struct{ name, changes, want string }{
		{"of one namespace", table(`["a"]`, "t") + "," + table(`["a"]`, "u") + "," + table(`[ "\u0061" ]`, "v"), `["a"] t; ["a"] u; ["a"] v`},
		{"of several", table(`["a"]`, "t") + "," + table(`["a","b"]`, "t") + "," + table(`["a","c"]`, "t") + "," + table(`["a"]`, "t") + "," + table(`["b"]`, "t"),
			`["a"] t; ["a" "b"] t; ["a" "c"] t; ["a"] t; ["b"] t`},
		{"the second without a namespace", table(`["a"]`, "t") + "," + table(`null`, "t"), `table change 2, member "identifier": member "namespace" is missing`},
		{"the second of no level", table(`["a"]`, "t") + "," + table(`[]`, "t"), `table change 2, member "identifier": Invalid namespace: it must have at least one level`},
		{"the second of a text", table(`["a"]`, "t") + "," + table(`"a"`, "t"), `table change 2, member "identifier": member "namespace" must be an array, not a string`},
		{"the second of a level too many, which is none", table(`["a"]`, "t") + "," + table(`["a",null]`, "t"), `table change 2, member "identifier": member "namespace" must be an array of strings`},
		{"two faults", `{"identifier":{"namespace":["a"]}` + commit + `,{}`, `table change 1, member "identifier": member "name" is missing`},
		{"a fault before what is no object", `{},5`, `table change 2: it must be a JSON object, not a number`},
		{"a fault in too many", `{}` + strings.Repeat(`,{}`, catalog.TransactionChangesMax), `257 table changes, at most 256 are allowed`},
		{"what is no object in too many", `[]` + strings.Repeat(`,{}`, catalog.TransactionChangesMax), `table change 1: it must be a JSON object, not an array`},
		{"what is no object behind too many", strings.Repeat(`{},`, catalog.TransactionChangesMax) + `5`, `257 table changes, at most 256 are allowed`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f, err := web.ParseFields([]byte(`{"table-changes":[`+row.changes+`]}`), "request")
			if err != nil {
				t.Fatal(err)
			}
			changes, err := decodeChanges(f, "main")
			var got []string
			for _, change := range changes {
				got = append(got, fmt.Sprintf("%q %s", []string(change.Ident.Namespace), change.Ident.Name))
			}
			if err != nil {
				got = append(got, err.Error())
			}
			if got := strings.Join(got, "; "); got != row.want && (err == nil || !strings.HasSuffix(got, row.want)) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// BenchmarkDecodeChanges decodes the body of a transaction over ten tables. Each change in "small"
// sets a property. Each change in "append" is one that an engine sends after it has written data.
func BenchmarkDecodeChanges(b *testing.B) {
	for _, row := range []struct{ name, commit string }{
		{"small", `"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"}}]`},
		{"append", `"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3055729675574597004},{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}],` +
			`"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":3055729675574597005,"parent-snapshot-id":3055729675574597004,"sequence-number":7,"timestamp-ms":1700000000007,` +
			`"manifest-list":"s3://warehouse/ns/t/metadata/snap-3055729675574597005-1-aef2c5b8-0b8b-4f1b-9f5c-5c1b7a3f0d11.avro","summary":{"operation":"append","added-data-files":"4",` +
			`"added-records":"1000","added-files-size":"482113","total-records":"7000","total-data-files":"28","total-delete-files":"0"},"schema-id":0}},` +
			`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":3055729675574597005}]`},
	} {
		b.Run(row.name, func(b *testing.B) {
			var changes []string
			for table := range 10 {
				changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["ns"],"name":"t%d"},%s}`, table, row.commit))
			}
			body := []byte(`{"table-changes":[` + strings.Join(changes, ",") + `]}`)
			b.ReportAllocs()
			for b.Loop() {
				f, err := web.ParseFields(body, "transaction request")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := decodeChanges(f, "main"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
