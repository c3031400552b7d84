package metadata_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"moorage/metadata"
)

// FuzzProperties compares how properties of tables and views are read, changed and written with
// package encoding/json, which does not keep bytes. Both must get the same names and values.
// Unchanged properties must be spelled as before.
func FuzzProperties(f *testing.F) {
	objects := []string{
		`{}`, `{ }`, `{"a":"1"}`, `{ "a" : "1" , "b" : "2" }`, `{"\u0061":"\u003c\/"}`, `{"a":"<>&"}`, "{\"a\":\"\u2028\u007f\"}", `{"\"":"\\","\u001f":"\n"}`,
		`{"c":"😀","b":"\ud83d\ude00","a":"\uFFFD"}`, `{"":"","A":"upper","a":"lower"}`, `{"write.metadata.previous-versions-max":"1"}`, `null`, `{"a":null}`, `{"a":5}`,
		`{"version.history.num-entries":"1"}`, `{"a":"1","a":"2"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `["a"]`,
	}
	for i, had := range objects {
		f.Add([]byte(had), []byte(objects[(i+1)%len(objects)]), []byte(`["b"]`))
		f.Add([]byte(had), []byte(had), []byte(`["a","a","","\u0062"]`))
		f.Add([]byte(had), []byte(`{"z":"9","y":"8","a":"1"}`), []byte(`[]`))
	}
	appliers := []applyProperties{tableProperties(f), viewProperties(f)}
	f.Fuzz(func(t *testing.T, had, updates, removals []byte) {
		if !json.Valid(had) || !json.Valid(updates) || !json.Valid(removals) { // each within its place
			return
		}
		change := slices.Concat([]byte(`[{"action":"set-properties","updates":`), updates, []byte(`},{"action":"remove-properties","removals":`), removals, []byte(`}]`))
		for _, apply := range appliers {
			was, is, raw, ok := apply(t, had, change)
			if !ok {
				continue
			}
			if !maps.Equal(was, unmarshalTest[map[string]string](t, had)) {
				t.Fatalf("%s was read as %q", had, was)
			}
			want := make(map[string]string)
			maps.Copy(want, was)
			maps.Copy(want, unmarshalTest[map[string]string](t, updates))
			for _, name := range unmarshalTest[[]string](t, removals) {
				delete(want, name)
			}
			written := unmarshalTest[struct {
				Properties json.RawMessage `json:"properties"`
			}](t, raw).Properties
			if !maps.Equal(is, want) || !maps.Equal(unmarshalTest[map[string]string](t, written), want) {
				t.Fatalf("%s became %s by %s; known as %q, want %q", had, written, change, is, want)
			}
			old := unmarshalTest[map[string]json.RawMessage](t, had)
			for name, value := range unmarshalTest[map[string]json.RawMessage](t, written) {
				if text, ok := was[name]; ok && text == want[name] && string(value) != string(old[name]) {
					t.Errorf("%s became %s: %q was spelled %s", had, written, name, old[name])
				}
			}
		}
	})
}

// applyProperties makes a document with the properties had, and applies change to it. It returns
// the parsed properties before and after, and the new document. It returns false if the document or
// the change is refused, because some names are reserved and some values are checked.
type applyProperties func(t *testing.T, had, change []byte) (was, is map[string]string, raw []byte, ok bool)

// aroundProperties returns the text of a document before and after the value of its properties.
func aroundProperties(f *testing.F, document []byte) (before, after []byte) {
	f.Helper()
	for _, m := range membersOf(f, document) {
		if m.name == "properties" {
			before, after, _ = bytes.Cut(document, m.value)
		}
	}
	return before, after
}

func tableProperties(f *testing.F) applyProperties {
	table := createTest(f, 2)
	before, after := aroundProperties(f, table.Raw())
	return func(t *testing.T, had, change []byte) (was, is map[string]string, raw []byte, ok bool) {
		base, err := metadata.Parse(slices.Concat(before, had, after))
		if err != nil {
			return
		}
		updates, err := metadata.StrictUpdates(change)
		if err != nil {
			return
		}
		next, err := base.Apply(updates, testEnv(1))
		if err != nil {
			return
		}
		checkIndex(t, next)
		return base.Properties(), next.Properties(), next.Raw(), true
	}
}

func viewProperties(f *testing.F) applyProperties {
	view := mustView(f, viewDocument)
	before, after := aroundProperties(f, view.Raw())
	return func(_ *testing.T, had, change []byte) (was, is map[string]string, raw []byte, ok bool) {
		base, err := metadata.ParseView(slices.Concat(before, had, after))
		if err != nil {
			return
		}
		updates, err := metadata.StrictViewUpdates(change)
		if err != nil {
			return
		}
		next, err := base.Apply(updates, viewEnv())
		if err != nil {
			return
		}
		return metadata.ViewProperties(base), metadata.ViewProperties(next), next.Raw(), true
	}
}

// unmarshalTest reads text, a part of accepted input, with package encoding/json.
func unmarshalTest[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("accepted %s: %v", text, err)
	}
	return value
}
