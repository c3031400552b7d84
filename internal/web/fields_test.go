package web

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzFields compares Fields with package encoding/json. Both must return the same texts, lists and
// maps, and refuse the same values. The only difference is null within a list or a map: Fields
// refuses it, and that package reads it as an empty text.
func FuzzFields(f *testing.F) {
	for _, value := range []string{
		`null`, `true`, `5`, `""`, `"a"`, `"\"\\\/\b\f\n\r\t\u0000\u001F"`, `"\ud83d\ude00\u2028\uFFFD"`, `"ä 😀"`, `"<>&\u003c"`, "\"\u2028\x7f\"",
		`[]`, `[ ]`, `["a"]`, `[ "a" , "\u00e4\\" ]`, `["a",null]`, `["a",[]]`, `[5]`, `[{"a":"a"}]`, `[true,"a"]`, `[""]`,
		`{}`, `{ }`, `{"k":"v"}`, `{ "k" : "v" , "\u006b2" : "\t" }`, `{"k":null}`, `{"k":1e400}`, `{"k":["v"]}`, `{"":"","K":"upper","k":"lower"}`, `{"k":"v","k":"w"}`, `{"k":{"k":"v"},"l":"x"}`,
	} {
		f.Add([]byte(`{"a":` + value + `}`))
		f.Add([]byte(` { "A" : 1, "\u0061" : ` + value + ` , "b":[]} `))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var members map[string]json.RawMessage
		parsed, err := ParseFields(body, "request")
		if err != nil {
			return // FuzzParseObject tests such input
		}
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatalf("%q is accepted, but: %v", body, err)
		}
		for name, value := range members {
			checkRead(t, parsed, name, value, (*Fields).Text, func(value *string) (string, bool) {
				if value == nil {
					return "", true
				}
				return *value, true
			})
			checkRead(t, parsed, name, value, (*Fields).Texts, func(values []*string) (texts []string, ok bool) {
				if values != nil {
					texts = []string{}
				}
				for _, value := range values {
					if value == nil {
						return nil, false
					}
					texts = append(texts, *value)
				}
				return texts, true
			})
			checkRead(t, parsed, name, value, (*Fields).TextMap, func(values map[string]*string) (texts map[string]string, ok bool) {
				if values != nil {
					texts = make(map[string]string)
				}
				for key, value := range values {
					if value == nil {
						return nil, false
					}
					texts[key] = *value
				}
				return texts, true
			})
		}
	})
}

// checkRead fails t unless read returns the same as package encoding/json for value, the member of
// parsed called name. want converts the result of encoding/json for the comparison, and reports
// whether there is a null in a place where none is allowed.
func checkRead[Got, Decoded any](t *testing.T, parsed *Fields, name string, value []byte, read func(*Fields, string) Got, want func(Decoded) (Got, bool)) {
	t.Helper()
	f := Fields{place: parsed.place, members: parsed.members} // so that each f has a Failure of its own
	got := read(&f, name)
	var decoded Decoded
	var wanted Got
	ok := false
	if json.Unmarshal(value, &decoded) == nil {
		wanted, ok = want(decoded)
	}
	if !reflect.DeepEqual(got, wanted) || (f.Failure == nil) != ok {
		t.Errorf("member %q, which is %s, was read as %#v, %v, want %#v, %v", name, value, got, f.Failure, wanted, ok)
	}
}
