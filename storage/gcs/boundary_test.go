package gcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"moorage/storage"
)

func TestBoundary(t *testing.T) {
	t.Parallel()
	const expression = `resource.name.startsWith('projects/_/buckets/lake/objects/%[1]s') || ` +
		`resource.name.startsWith('projects/_/buckets/lake/folders/%[1]s') || ` +
		`api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('%[1]s')`
	const writing = `(resource.name.startsWith('projects/_/buckets/lake/objects/%[1]s') && ` +
		`!resource.name.endsWith('.metadata.json')) || resource.name.startsWith('projects/_/buckets/lake/folders/%[1]s')`
	for location, want := range map[string]string{
		"gs://lake/wh/tab":     "wh/tab/",
		"gs://lake/wh/it's":    `wh/it\'s/`,
		`gs://lake/wh/a\b`:     `wh/a\\b/`,
		`gs://lake/wh/a\'b`:    `wh/a\\\'b/`,
		`gs://lake/wh/"`:       `wh/"/`,
		"gs://lake/wh/日本":      "wh/日本/",
		"gs://lake/wh/a%2Fb":   "wh/a%2Fb/",
		"gs://lake/wh/a') || ": `wh/a\') || /`,
	} {
		made, err := boundaryFor([]storage.Location{parse(t, location)}, true)
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		got, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		rule := func(role, expression string) string {
			condition, err := json.Marshal(fmt.Sprintf(expression, want))
			if err != nil {
				t.Fatal(err)
			}
			return `{"availablePermissions":["inRole:roles/storage.` + role + `"],` +
				`"availableResource":"//storage.googleapis.com/projects/_/buckets/lake",` +
				`"availabilityCondition":{"expression":` + string(condition) + `}}`
		}
		text := `{"accessBoundary":{"accessBoundaryRules":[` + rule("objectViewer", expression) + `,` +
			rule("objectUser", writing) + `]}}`
		if string(got) != text {
			t.Errorf("%s:\n%s, want\n%s", location, got, text)
		}
	}
}

func TestBoundaryOfReaders(t *testing.T) {
	t.Parallel()
	made, err := boundaryFor([]storage.Location{parse(t, "gs://lake/")}, false)
	if err != nil {
		t.Fatal(err)
	}
	if rule := made.AccessBoundary.Rules[0]; rule.Permissions[0] != "inRole:roles/storage.objectViewer" || rule.Condition != nil {
		t.Errorf("the rule for a whole bucket is %+v, want to read it without a condition", rule)
	}
}

// TestBoundaryRoom: a boundary has at most ten rules, two for each location. If no rule can express
// a location, it is refused if it is the first, and otherwise left out together with all later
// ones.
func TestBoundaryRoom(t *testing.T) {
	t.Parallel()
	var locations []storage.Location
	for i := range 12 {
		locations = append(locations, parse(t, fmt.Sprintf("gs://lake/wh/t%d", i)))
	}
	long := parse(t, "gs://lake/"+strings.Repeat("x", 700))
	for _, tt := range []struct {
		name      string
		locations []storage.Location
		rules     int
	}{
		{"twelve", locations, 10},
		{"the third too long", append(locations[:2:2], long, locations[3]), 4},
		{"the first too long", append([]storage.Location{long}, locations...), 0},
		{"none", nil, 0},
		{"no bucket", []storage.Location{{Scheme: storage.SchemeGCS, Authority: "b'", Path: "/a"}}, 0},
	} {
		made, err := boundaryFor(tt.locations, true)
		if got := len(made.AccessBoundary.Rules); got != tt.rules || errors.Is(err, storage.ErrUnscopable) != (tt.rules == 0) {
			t.Errorf("%s: %d rules, %v; want %d", tt.name, got, err, tt.rules)
		}
	}
}

func parse(t *testing.T, location string) storage.Location {
	t.Helper()
	parsed, err := storage.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
