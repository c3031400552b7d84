package metadata_test

import (
	"slices"
	"testing"

	"moorage/metadata"
)

// An update returns the names of its refs and properties, and its location.
func TestUpdateNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		update   string
		names    []string
		location string
	}{
		{`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}`, []string{"main"}, ""},
		{`{"action":"remove-snapshot-ref","ref-name":"audit"}`, []string{"audit"}, ""},
		{`{"action":"set-properties","updates":{"a":"1","b":"2"}}`, []string{"a", "b"}, ""},
		{`{"action":"remove-properties","removals":["b","a"]}`, []string{"b", "a"}, ""},
		{`{"action":"Set-Location","location":"s3://b/x"}`, nil, "s3://b/x"},
		{`{"action":"set-current-schema","schema-id":1}`, nil, ""},
	} {
		updates, err := metadata.StrictUpdates([]byte("[" + tt.update + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if names := updates[0].Names(); !slices.Equal(names, tt.names) || updates[0].Location() != tt.location {
			t.Errorf("%s names %q and %q", tt.update, names, updates[0].Location())
		}
	}
	for _, tt := range []struct {
		update, action string
		names          []string
	}{
		{`{"action":"set-properties","updates":{"b":"1","a":"2"}}`, "set-properties", []string{"a", "b"}},
		{`{"action":"remove-properties","removals":["b","a"]}`, "remove-properties", []string{"a", "b"}},
		{`{"action":"Set-Location","location":"s3://b/x"}`, "set-location", nil},
	} {
		updates, err := metadata.StrictViewUpdates([]byte("[" + tt.update + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if got := updates[0]; got.Action() != tt.action || !slices.Equal(got.Names(), tt.names) {
			t.Errorf("%s: %s names %q", tt.update, got.Action(), got.Names())
		}
	}
}
