package metadata

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// FuzzProperties holds what is read, changed and written of properties against package encoding/json, which knows
// nothing of keeping bytes: the same names and values come out of it, and those that were left alone are spelled as before.
func FuzzProperties(f *testing.F) {
	objects := []string{
		`{}`, `{ }`, `{"a":"1"}`, `{ "a" : "1" , "b" : "2" }`, `{"\u0061":"\u003c\/"}`, `{"a":"<>&"}`, "{\"a\":\"\u2028\u007f\"}", `{"\"":"\\","\u001f":"\n"}`,
		`{"c":"😀","b":"\ud83d\ude00","a":"\uFFFD"}`, `{"":"","A":"upper","a":"lower"}`, `{"write.metadata.previous-versions-max":"1"}`, `null`, `{"a":null}`, `{"a":5}`,
		`{"a":"1","a":"2"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `["a"]`,
	}
	for i, had := range objects {
		f.Add([]byte(had), []byte(objects[(i+1)%len(objects)]), []byte(`["b"]`))
		f.Add([]byte(had), []byte(had), []byte(`["a","a","","\u0062"]`))
		f.Add([]byte(had), []byte(`{"z":"9","y":"8","a":"1"}`), []byte(`[]`))
	}
	table := createTest(f, 2)
	at, _ := table.find(keyProperties)
	f.Fuzz(func(t *testing.T, had, updates, removals []byte) {
		if !json.Valid(had) || !json.Valid(updates) || !json.Valid(removals) { // each within its place
			return
		}
		base, err := Parse(slices.Concat(table.raw[:at.start], had, table.raw[at.end:]))
		if err != nil {
			return
		}
		was := unmarshalTest[map[string]json.RawMessage](t, had)
		want := unmarshalTest[map[string]string](t, had)
		if !maps.Equal(base.Properties(), want) {
			t.Fatalf("%s was read as %q", had, base.Properties())
		}
		change, err := DecodeUpdates(slices.Concat([]byte(`[{"action":"set-properties","updates":`), updates,
			[]byte(`},{"action":"remove-properties","removals":`), removals, []byte(`}]`)))
		if err != nil {
			return
		}
		next, err := base.Apply(change, testEnv(1))
		if err != nil {
			return // some names are reserved, and some values checked
		}
		if want == nil {
			want = make(map[string]string)
		}
		changed := unmarshalTest[map[string]string](t, updates)
		maps.Copy(want, changed)
		for _, name := range unmarshalTest[[]string](t, removals) {
			delete(want, name)
		}
		checkIndex(t, next)
		is := unmarshalTest[struct {
			Properties json.RawMessage `json:"properties"`
		}](t, next.Raw()).Properties
		if !maps.Equal(next.Properties(), want) || !maps.Equal(unmarshalTest[map[string]string](t, is), want) {
			t.Fatalf("%s became %s with %s, without %s; known as %q, want %q", had, is, updates, removals, next.Properties(), want)
		}
		for name, value := range unmarshalTest[map[string]json.RawMessage](t, is) {
			if old, ok := was[name]; ok && want[name] == base.Properties()[name] && string(value) != string(old) {
				t.Errorf("%s became %s: %q was spelled %s", had, is, name, old)
			}
		}
	})
}

// unmarshalTest reads text, which is part of what was accepted, with package encoding/json.
func unmarshalTest[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("accepted %s: %v", text, err)
	}
	return value
}
