package rest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// FuzzCheckedJSON: what parseObject accepts is sound as metadata.CheckedJSON asks for it. Each member is read alike by that and by the
// functions for text that nobody has checked.
func FuzzCheckedJSON(f *testing.F) {
	for _, list := range []string{
		`[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`,
		`[{"action":"set-properties","updates":{"a":"1","\u0062":"\ud83d\ude00\\\""}},{"action":"Remove-Properties","removals":["a","é"]}]`,
		`[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":2,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"c","required":false,"type":"int"}]}},{"action":"set-current-schema","schema-id":-1}]`,
		`[{"action":"add-spec","spec":{"fields":[{"source-id":1,"transform":"void","name":"v"}]}},{"action":"add-sort-order","sort-order":{"order-id":9,"fields":[]}}]`,
		`[{"action":"add-view-version","view-version":{"version-id":3,"schema-id":0,"timestamp-ms":1,"summary":{},"default-namespace":[],"representations":[{"type":"sql","sql":"x","dialect":"y"}]}}]`,
		` [ { "action" : "set-location" , "location" : "x" , "y" : [ -0.5e+3 , true , false , null , { } , [ ] ] } ] `,
		`[{"action":"x"},5]`, `[5]`, `["\\"]`, `[[]]`, `[null]`, `{}`, `null`, `-1`, `[{"type":"x"}]`, `[{"action":5}]`, `[{"action":"set-location","location":"` + strings.Repeat("\u0001", 3) + `"}]`,
	} {
		f.Add([]byte(`{"updates":` + list + `}`))
		f.Add([]byte("{\"a\" : 1 ,\t\"requirements\":\r\n" + list + " } "))
	}
	for _, levels := range []int{497, 498, 499, 500, jsonDepthMax - 4, jsonDepthMax - 3, jsonDepthMax - 2} {
		f.Add([]byte(`{"updates":[{"action":"set-location","location":"x","y":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}]}`))
		f.Add([]byte(`{"updates":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`))
	}
	f.Add([]byte(`{"updates":[{"action":"set-location","location":"\udc00\udc00"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := parseObject(nil, body)
		if err != nil {
			return
		}
		for _, m := range members {
			checked := metadata.CheckedJSON(m.value)
			sameReading(t, m, metadata.DecodeUpdates, checked.Updates)
			sameReading(t, m, metadata.DecodeViewRequirements, checked.ViewRequirements)
			sameReading(t, m, decoding(metadata.DecodeRequirements, metadata.Requirement.Type), reading(checked.Requirements, metadata.Requirement.Type))
			sameReading(t, m, decoding(metadata.DecodeViewUpdates, kindless), reading(checked.ViewUpdates, kindless))
		}
	})
}

// sameReading fails t unless read returns what decode makes of the value of m.
func sameReading[T any](t *testing.T, m member, decode func([]byte) ([]T, error), read func() ([]T, error)) {
	t.Helper()
	want, wantErr := decode(m.value)
	got, err := read()
	if !reflect.DeepEqual(got, want) || moorage.KindOf(err) != moorage.KindOf(wantErr) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("%s is read as %+v, %v, want %+v, %v", m.value, got, err, want, wantErr)
	}
}

// decoding and reading return what can be compared of what decode and read return, which has functions in it.
func decoding[T any](decode func([]byte) ([]T, error), kind func(T) string) func([]byte) ([]string, error) {
	return func(raw []byte) ([]string, error) {
		return reading(func() ([]T, error) { return decode(raw) }, kind)()
	}
}

func reading[T any](read func() ([]T, error), kind func(T) string) func() ([]string, error) {
	return func() (kinds []string, err error) {
		all, err := read()
		for _, one := range all {
			kinds = append(kinds, kind(one))
		}
		return kinds, err
	}
}

func kindless(metadata.ViewUpdate) string { return "" }
