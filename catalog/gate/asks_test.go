package gate_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"moorage/access"
	"moorage/catalog/gate"
)

// Each update known to package metadata has its own required privileges. An unknown update requires
// the privileges of all known updates together.
func TestEveryUpdateAsks(t *testing.T) {
	t.Parallel()
	actions := []string{"upgrade-format-version"}
	for _, file := range []string{"decode.go", "viewupdate.go"} {
		text, err := os.ReadFile("../../metadata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^\tcase "([a-z-]+)":$`).FindAllSubmatch(text, -1) {
			actions = append(actions, string(line[1]))
		}
	}
	slices.Sort(actions)
	if actions = slices.Compact(actions); len(actions) < 25 {
		t.Fatalf("there are %d actions: %q", len(actions), actions)
	}
	unknown := gate.OfUpdate("fly", nil)
	for _, action := range actions {
		if asked := gate.OfUpdate(action, nil); asked == access.See || asked == unknown || !unknown.Implied().Has(asked) {
			t.Errorf("%s asks for %q", action, asked)
		}
	}
}

func TestOfUpdate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action string
		names  []string
		want   access.Privileges
	}{
		{"add-snapshot", nil, access.Write},
		{"set-snapshot-ref", []string{"main"}, access.Write},
		{"remove-snapshot-ref", []string{"audit"}, access.Write},
		{"remove-snapshot-ref", []string{"main"}, access.Maintain},
		{"remove-snapshots", nil, access.Maintain},
		{"remove-encryption-key", nil, access.Maintain},
		{"add-schema", nil, access.Alter},
		{"set-location", nil, access.Locate},
		{"set-properties", []string{"a"}, access.Alter},
		{"remove-properties", []string{"a"}, access.Alter},
		{"set-properties", []string{"a", "write.data.path"}, access.Alter | access.Locate},
		{"remove-properties", []string{"write.metadata.path"}, access.Alter | access.Locate},
		{"set-properties", []string{"write.object-storage.path"}, access.Alter | access.Locate},
		{"set-properties", []string{"write.folder-storage.path"}, access.Alter | access.Locate},
		{"set-properties", []string{"write.data.path.x"}, access.Alter},
	} {
		if got := gate.OfUpdate(tt.action, tt.names); got != tt.want {
			t.Errorf("%s of %q asks for %q, want %q", tt.action, tt.names, got, tt.want)
		}
	}
}

// Each check asks for a privilege that can be granted on the object or on a container of it.
func TestAsksCanBeGranted(t *testing.T) {
	t.Parallel()
	for _, row := range gate.Table() {
		for _, ask := range row.Asks {
			kinds := []access.Kind{access.Warehouse, access.Namespace, access.Table, access.View}
			if ask.Of == gate.OfServer {
				kinds = []access.Kind{access.Server}
			}
			var standing access.Privileges
			for _, kind := range kinds {
				standing |= access.Grantable(kind)
			}
			if !standing.Has(ask.For) {
				t.Errorf("%s asks for %q, which nobody can have", row.Verb, ask.For)
			}
		}
	}
}
