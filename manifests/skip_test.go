package manifests

import (
	"testing"

	"github.com/twmb/avro"
)

// everyKind has a field of each kind of type, and named types that are used again.
const everyKind = `{"type":"record","name":"top","namespace":"a.b","fields":[
	{"name":"null","type":"null","field-id":1},
	{"name":"boolean","type":"boolean","field-id":2},
	{"name":"int","type":{"type":"int","logicalType":"date"},"field-id":3},
	{"name":"long","type":"long","field-id":4},
	{"name":"float","type":"float","field-id":5},
	{"name":"double","type":"double","field-id":6},
	{"name":"bytes","type":"bytes","field-id":7},
	{"name":"string","type":"string","field-id":8},
	{"name":"fixed","type":{"type":"fixed","name":"four","size":4},"field-id":9},
	{"name":"enum","type":{"type":"enum","name":"c.colour","symbols":["red","blue"]},"field-id":10},
	{"name":"array","type":{"type":"array","items":"a.b.four","element-id":20},"field-id":11},
	{"name":"map","type":{"type":"map","values":["c.colour","string"],"key-id":21,"value-id":22},"field-id":12},
	{"name":"record","type":{"type":"record","name":"inner","fields":[{"name":"four","type":["null","four"],"field-id":23}]},"field-id":13},
	{"name":"again","type":["inner","null","long"],"field-id":14},
	{"name":"anonymous","type":"int"},
	{"name":"nothing","type":{"type":"record","name":"nothing","fields":[]},"field-id":15}
]}`

// A cursor skips exactly the bytes that twmb/avro encodes, and sees the same fields.
func TestEveryKindIsPassedOver(t *testing.T) {
	t.Parallel()
	oracle := avro.MustParse(everyKind)
	s, err := parseSchema(everyKind)
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]any{
		"null": nil, "number": int64(-1 << 62), "record": map[string]any{"four": [4]byte{4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded, err := oracle.Encode(map[string]any{
				"null": nil, "boolean": true, "int": int32(-3), "long": int64(1) << 40, "float": float32(1.5), "double": 2.5,
				"bytes": []byte{0, 1}, "string": "text", "fixed": [4]byte{1, 2, 3, 4}, "enum": "blue",
				"array": []any{[4]byte{1}, [4]byte{2}}, "map": map[string]any{"k": "blue", "l": "text"},
				"record": map[string]any{"four": nil}, "again": again, "anonymous": int32(9), "nothing": map[string]any{},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[int]value)
			visit := func(id int, v value) error {
				got[id] = v
				return nil
			}
			const rest = "rest"
			c := cursor{text: string(encoded) + rest}
			if err := c.fields(s, visit, nil); err != nil || c.text[c.at:] != rest {
				t.Fatalf("%q is left, %v", c.text[c.at:], err)
			}
			for id, want := range map[int]value{
				3: {kindInt, -3, ""}, 4: {kindLong, 1 << 40, ""}, 7: {kindBytes, 0, "\x00\x01"}, 8: {kindString, 0, "text"},
				9: {kindFixed, 0, "\x01\x02\x03\x04"}, 10: {kindEnum, 1, ""}, 11: {kind: kindArray}, 12: {kind: kindMap}, 13: {kind: kindRecord},
			} {
				if got[id] != want {
					t.Errorf("field %d is %+v, want %+v", id, got[id], want)
				}
			}
			if len(got) != 13 {
				t.Errorf("%d fields were seen", len(got))
			}
			if out, err := convert(nil, s, s, &cursor{text: string(encoded)}); err != nil || string(out) != string(encoded) {
				t.Errorf("converted to itself it is %q, %v", out, err)
			}
			for cut := range encoded {
				if _, err := (&cursor{text: string(encoded[:cut])}).read(s); err == nil {
					t.Errorf("cut at %d of %d it is read", cut, len(encoded))
				}
			}
		})
	}
}
