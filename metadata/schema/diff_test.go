package schema_test

import (
	"encoding/json"
	"testing"

	"moorage/metadata/schema"
)

func mustParse(t *testing.T, fields string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(`{"type":"struct","schema-id":0,"fields":[` + fields + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDiff: fields are matched by id, at any depth, and each difference is reported once.
func TestDiff(t *testing.T) {
	t.Parallel()
	const a = `{"id":1,"name":"a","required":true,"type":"int"}`
	for _, c := range []struct{ name, from, to, want string }{
		{"equal", a, a, `{}`},
		{"added", a, a + `,{"id":2,"name":"b","required":false,"type":"decimal(10,2)","doc":"price"}`,
			`{"added":[{"id":2,"path":"b","type":"decimal(10, 2)","required":false,"doc":"price"}]}`},
		{"removed", a + `,{"id":2,"name":"b","required":false,"type":"string"}`, a,
			`{"removed":[{"id":2,"path":"b","type":"string","required":false}]}`},
		{"renamed, promoted, optional", a, `{"id":1,"name":"c","required":false,"type":"long"}`,
			`{"changed":[{"id":1,"path":"c","was":{"path":"a","type":"int","required":true},` +
				`"is":{"path":"c","type":"long","required":false}}]}`},
		{"documented", a, `{"id":1,"name":"a","required":true,"type":"int","doc":"x"}`,
			`{"changed":[{"id":1,"path":"a","was":{"doc":""},"is":{"doc":"x"}}]}`},
		{"default", a, `{"id":1,"name":"a","required":true,"type":"int","write-default":7}`,
			`{"changed":[{"id":1,"path":"a","was":{"write-default":null},"is":{"write-default":7}}]}`},
		{"moved among its siblings", a + `,{"id":2,"name":"b","required":false,"type":"string"}`,
			`{"id":2,"name":"b","required":false,"type":"string"},` + a, `{}`},
		{"a struct renamed, and a field added in it",
			`{"id":1,"name":"s","required":true,"type":{"type":"struct","fields":[{"id":2,"name":"x","required":true,"type":"int"}]}}`,
			`{"id":1,"name":"p","required":true,"type":{"type":"struct","fields":[{"id":2,"name":"x","required":true,"type":"int"},` +
				`{"id":3,"name":"y","required":true,"type":"int"}]}}`,
			`{"added":[{"id":3,"path":"p.y","type":"int","required":true}],` +
				`"changed":[{"id":1,"path":"p","was":{"path":"s"},"is":{"path":"p"}}]}`},
		{"an element of a list promoted",
			`{"id":1,"name":"l","required":true,"type":{"type":"list","element-id":2,"element":"float","element-required":true}}`,
			`{"id":1,"name":"l","required":true,"type":{"type":"list","element-id":2,"element":"double","element-required":true}}`,
			`{"changed":[{"id":2,"path":"l.element","was":{"type":"float"},"is":{"type":"double"}}]}`},
	} {
		got, err := json.Marshal(schema.Diff(mustParse(t, c.from), mustParse(t, c.to)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
